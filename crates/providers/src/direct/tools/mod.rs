//! The tools of an agent on a model API: host tools, and the tools of its MCP servers.
//!
//! [`ToolSet::load`] lists the tools for one turn; [`ToolSet::run`] runs a call of an MCP tool. The turn itself runs the
//! host tools; [`McpToolbox`] is the access to MCP servers.

mod manager;
#[cfg(test)]
mod tests;
mod toolbox;

pub use manager::ManagedToolbox;
pub use toolbox::{McpToolbox, ServerCallOutcome, ServerTool, ServerToolList, ToolReport, ToolboxFuture};

use super::{
    conversation::ToolResultContent,
    tool_loop::{ApprovalMode, LoopTool, ToolCallOutcome},
    wire::OfferedTool,
};
use crate::{
    TurnEvent,
    host_tools::{HostToolAgent, HostToolDefinition, HostToolOutcome},
    truncate::truncate_middle,
};
use domain::{
    agent::{PolicyDecision, ToolPolicy},
    mcp::tool_name,
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use workbench::mcp::PlacedMcpServer;

/// The maximum text of one result that the model gets.
const MAX_RESULT_BYTES: usize = 200 * 1024;
/// The maximum size of one result's images, base64-encoded.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// The tools of one turn.
#[derive(Debug, Default)]
pub struct ToolSet {
    pub offered: Vec<OfferedTool>,
    pub tools: BTreeMap<String, LoopTool>,
    sources: BTreeMap<String, ToolSource>,
}

#[derive(Clone, Debug)]
enum ToolSource {
    Host,
    Mcp { toolbox: Arc<dyn McpToolbox>, server: PlacedMcpServer, tool: String },
}

/// A tool call that has ended, and notices for the room.
#[derive(Debug)]
pub struct FinishedCall {
    pub call: String,
    pub outcome: ToolCallOutcome,
    pub notices: Vec<TurnEvent>,
}

impl ToolSet {
    /// Loads the tools of one turn. A server that cannot be reached becomes a notice and does not affect the others.
    pub async fn load(
        agent: &HostToolAgent,
        toolbox: &Arc<dyn McpToolbox>,
        policy: &ToolPolicy,
    ) -> (Self, Vec<TurnEvent>) {
        let mut tool_set = Self::default();
        for HostToolDefinition { name, description, schema, .. } in agent.workspace.host_tools.offered(agent) {
            let offer = OfferedTool { name, description, schema };
            // A host tool that needs consent asks for it itself.
            tool_set.add(offer, ApprovalMode::NotNeeded, ToolSource::Host, policy);
        }
        let mut notices = Vec::new();
        let sandbox = agent.workspace.servers_sandbox.as_ref();
        let servers = agent.workspace.mcp_servers.iter().map(|server| PlacedMcpServer::new(server.clone(), sandbox));
        for ServerToolList { server, tools } in toolbox.list(servers.collect()).await {
            let server_name = server.server.name.clone();
            match tools {
                Ok(tools) => {
                    for ServerTool { name, description, schema } in tools {
                        let full = tool_name(&server_name, &name);
                        let offer = OfferedTool { name: full, description, schema };
                        let toolbox = Arc::clone(toolbox);
                        let source = ToolSource::Mcp { toolbox, server: server.clone(), tool: name };
                        tool_set.add(offer, ApprovalMode::Required, source, policy);
                    }
                }
                Err(message) => notices.push(TurnEvent::Status {
                    status: "mcp_server_failed".into(),
                    message: format!("The tools of the MCP server {} are unavailable: {message}", server_name),
                }),
            }
        }
        (tool_set, notices)
    }

    /// Adds a tool, unless the policy denies it.
    fn add(&mut self, offer: OfferedTool, mode: ApprovalMode, source: ToolSource, policy: &ToolPolicy) {
        if policy.decide(&offer.name) == PolicyDecision::Deny || self.tools.contains_key(&offer.name) {
            return;
        }
        self.tools.insert(offer.name.clone(), LoopTool { schema: offer.schema.clone(), approval: mode });
        self.sources.insert(offer.name.clone(), source);
        self.offered.push(offer);
    }

    /// The size of the tool definitions in a model request.
    pub fn bytes(&self) -> usize {
        let bytes = |offer: &OfferedTool| offer.name.len() + offer.description.len() + offer.schema.to_string().len();
        self.offered.iter().map(bytes).sum()
    }

    pub fn is_host_tool(&self, name: &str) -> bool {
        matches!(self.sources.get(name), Some(ToolSource::Host))
    }

    /// Runs a call of an MCP tool. Its progress goes to `output`, with the call's id.
    pub fn run(
        &self,
        call: String,
        name: &str,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<ToolReport>,
    ) -> impl Future<Output = FinishedCall> + Send + 'static {
        let source = self.sources.get(name).cloned();
        async move {
            let (outcome, notices) = match source {
                None | Some(ToolSource::Host) => (ToolCallOutcome::text("There is no such tool.", true), Vec::new()),
                Some(ToolSource::Mcp { toolbox, server, tool }) => {
                    let ServerCallOutcome { outcome, notices } =
                        toolbox.call(server, tool, input, cancel, output, call.clone()).await;
                    (outcome, notices)
                }
            };
            FinishedCall { call, outcome: bounded(outcome), notices }
        }
    }
}

/// The outcome of a host tool, as the tool loop gets it.
pub fn host_tool_outcome(outcome: HostToolOutcome) -> ToolCallOutcome {
    bounded(ToolCallOutcome::text(outcome.text, outcome.is_error))
}

/// Limits the total text and the images of a result, so that it does not fill the model's context.
fn bounded(mut outcome: ToolCallOutcome) -> ToolCallOutcome {
    let (mut texts, mut images) = (MAX_RESULT_BYTES, MAX_IMAGE_BYTES);
    for content in &mut outcome.for_model {
        match content {
            ToolResultContent::Text(text) if text.len() > texts => {
                *text = truncate_middle(text, texts);
                texts = 0;
            }
            ToolResultContent::Text(text) => texts -= text.len(),
            ToolResultContent::Image { data, .. } if data.len() > images => {
                *content = ToolResultContent::Text("(An image was left out: it is too large.)".into());
            }
            ToolResultContent::Image { data, .. } => images -= data.len(),
        }
    }
    outcome
}
