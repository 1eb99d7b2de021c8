//! The interface to MCP servers; the tool loop knows nothing else about them.

use crate::{TurnEvent, direct::tool_loop::ToolCallOutcome};
use serde_json::{Map, Value};
use std::{fmt, future::Future, pin::Pin};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use workbench::mcp::PlacedMcpServer;

pub type ToolboxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Progress of a running tool: the call's id, and text.
pub type ToolReport = (String, String);

pub trait McpToolbox: fmt::Debug + Send + Sync + 'static {
    /// Lists the tools of all servers concurrently; starts servers as needed. Returns within a bounded time.
    fn list(&self, servers: Vec<PlacedMcpServer>) -> ToolboxFuture<Vec<ServerToolList>>;

    /// Calls a tool. Returns soon after it was canceled. Failures are outcomes too.
    fn call(
        &self,
        server: PlacedMcpServer,
        tool: String,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<ToolReport>,
        call: String,
    ) -> ToolboxFuture<ServerCallOutcome>;
}

#[derive(Clone, Debug)]
pub struct ServerToolList {
    pub server: PlacedMcpServer,
    /// The tools, or why they are unavailable.
    pub tools: Result<Vec<ServerTool>, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// The server's name of the tool.
    pub name: String,
    pub description: String,
    pub schema: Value,
}

#[derive(Clone, Debug)]
pub struct ServerCallOutcome {
    pub outcome: ToolCallOutcome,
    /// Notices for the room, such as a restart of the server.
    pub notices: Vec<TurnEvent>,
}
