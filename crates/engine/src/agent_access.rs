//! What an agent's program may do at `/mcp`, in the engine's own words: endpoints must not know the types of providers.

use crate::Engine;
use domain::ids::{AgentId, RoomId, RunId};
use providers::{
    agent_tokens::{AGENT_TOKEN_PREFIX, AgentToken, AgentTokenBinding, AgentTokenScope, HostToolRequest},
    host_tools::{HostToolDefinition, HostToolOutcome, SERVER_NAME, name_over_mcp},
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The name of the MCP server that offers the host tools.
pub const HOST_TOOLS_SERVER: &str = SERVER_NAME;

/// Returns whether a bearer token is an agent token, valid or not.
pub fn is_agent_token(secret: &[u8]) -> bool {
    secret.starts_with(AGENT_TOKEN_PREFIX.as_bytes())
}

/// The access of one process of an agent to its host tools.
#[derive(Debug, Clone)]
pub struct AgentAccess(Arc<AgentToken>);

/// Whom an access belongs to. `run_id` is `None` between turns.
#[derive(Debug, Clone, Copy)]
pub struct AgentAccessOwner {
    pub agent_id: AgentId,
    pub room_id: RoomId,
    pub run_id: Option<RunId>,
}

/// A tool that the agent is offered.
pub struct AgentTool {
    /// The name at the MCP endpoint.
    pub name: String,
    pub description: String,
    /// A JSON schema of the arguments.
    pub schema: Map<String, Value>,
    pub is_read_only: bool,
}

pub struct AgentToolResult {
    pub text: String,
    pub is_error: bool,
}

/// A request of the process that is in progress.
#[derive(Debug)]
pub struct AgentRequest(HostToolRequest);

impl Engine {
    /// Finds the process that a secret was issued to, if it may call host tools.
    pub fn agent_access(&self, secret: &[u8]) -> Option<AgentAccess> {
        let token = self.providers().agent_tokens().find(secret)?;
        token.allows(AgentTokenScope::HostTools).then_some(AgentAccess(token))
    }
}

impl AgentAccess {
    /// Identifies the process, for rate limits; unrelated to the secret.
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    pub fn belongs_to(&self) -> AgentAccessOwner {
        let AgentTokenBinding { agent_id, room_id, run_id, .. } = self.0.binding();
        AgentAccessOwner { agent_id, room_id, run_id }
    }

    /// Registers a request under the id that its client gave it. `None` if too many are open.
    pub fn begin_request(&self, id: &str) -> Option<AgentRequest> {
        self.0.begin_request(id).map(AgentRequest)
    }

    /// Cancels the request with this id, unless two clients of the process have the same id open.
    pub fn cancel(&self, id: &str) {
        self.0.cancel(id);
    }
}

impl AgentRequest {
    /// The host tools that the agent is offered.
    pub fn tools(&self) -> Vec<AgentTool> {
        let offered = |tool: HostToolDefinition| AgentTool {
            name: name_over_mcp(&tool.name).to_owned(),
            description: tool.description,
            schema: tool.schema.as_object().cloned().unwrap_or_default(),
            is_read_only: tool.is_read_only,
        };
        self.0.token().host_tools().into_iter().map(offered).collect()
    }

    /// Calls a tool. `None` if the client canceled the request. Dropping the future cancels the call, and withdraws an
    /// open question.
    pub async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Option<AgentToolResult> {
        let HostToolOutcome { text, is_error, .. } = self.0.call_tool(name, arguments).await?;
        Some(AgentToolResult { text, is_error })
    }
}
