//! What MCP servers are reached through: the loop knows no more of them than this.

use crate::{TurnEvent, direct::machine::Outcome};
use domain::mcp::Server;
use serde_json::{Map, Value};
use std::{fmt, future::Future, pin::Pin};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub type ToolboxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a tool says while it works: the call's id, and text.
pub type Report = (String, String);

pub trait Toolbox: fmt::Debug + Send + Sync + 'static {
    /// The tools of each server, side by side; starts what has to be started. Never hangs.
    fn list(&self, servers: Vec<Server>) -> ToolboxFuture<Vec<Listing>>;

    /// Calls a tool. Returns soon after it was cancelled. What goes wrong is an outcome.
    fn call(
        &self,
        server: Server,
        tool: String,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<Report>,
        call: String,
    ) -> ToolboxFuture<Called>;
}

#[derive(Clone, Debug)]
pub struct Listing {
    pub server: Server,
    /// Or why there are none.
    pub tools: Result<Vec<Listed>, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// As the server calls it.
    pub name: String,
    pub description: String,
    pub schema: Value,
}

#[derive(Clone, Debug)]
pub struct Called {
    pub outcome: Outcome,
    /// What the room should hear besides, such as that the server was started anew.
    pub notices: Vec<TurnEvent>,
}
