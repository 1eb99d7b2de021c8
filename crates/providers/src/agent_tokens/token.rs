//! The server's view of a token: what it is bound to, what it grants, and its open requests.

use super::{
    lock,
    request::{HostToolRequest, OpenRequests},
    secret::AgentTokenSecret,
    turn::{AgentTokenTurn, CurrentTurn},
};
use crate::host_tools::{HostToolAgent, HostToolDefinition};
use domain::{
    ids::{AgentId, RoomId, RunId},
    owner::Owner,
};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub struct AgentToken {
    number: u64,
    pub(super) secret: AgentTokenSecret,
    scopes: Vec<AgentTokenScope>,
    agent: HostToolAgent,
    pub(super) turn: Arc<Mutex<Option<CurrentTurn>>>,
    pub(super) requests: Mutex<OpenRequests>,
}

/// What a token gives access to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentTokenScope {
    /// The host tools, at the server's MCP endpoint.
    HostTools,
}

/// Whom a token belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentTokenBinding {
    pub owner: Owner,
    pub agent_id: AgentId,
    pub room_id: RoomId,
    /// The current run; `None` between turns.
    pub run_id: Option<RunId>,
}

impl AgentToken {
    pub(super) fn new(number: u64, secret: AgentTokenSecret, scopes: &[AgentTokenScope], agent: HostToolAgent) -> Self {
        Self { number, secret, scopes: scopes.to_vec(), agent, turn: Arc::default(), requests: Mutex::default() }
    }

    /// Identifies the token, for rate limits; unrelated to the secret.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn allows(&self, scope: AgentTokenScope) -> bool {
        self.scopes.contains(&scope)
    }

    pub fn binding(&self) -> AgentTokenBinding {
        let workspace = &self.agent.workspace;
        AgentTokenBinding {
            owner: workspace.owner.clone(),
            agent_id: workspace.agent.id,
            room_id: workspace.room_id,
            run_id: lock(&self.turn).as_ref().map(|turn| turn.run_id),
        }
    }

    /// The host tools that the agent is offered.
    pub fn host_tools(&self) -> Vec<HostToolDefinition> {
        self.agent.workspace.host_tools.offered(&self.agent)
    }

    /// Registers a request under the id that its client gave it. `None` if too many are open.
    pub fn begin_request(self: &Arc<Self>, id: &str) -> Option<HostToolRequest> {
        HostToolRequest::begin(self, id)
    }

    /// Cancels the request with this id. If two clients of the process have the same id open, it is ambiguous and
    /// neither is canceled.
    pub fn cancel(&self, id: &str) {
        lock(&self.requests).cancel(id);
    }

    pub(super) fn cancel_all(&self) {
        lock(&self.requests).cancel_all();
    }

    pub(super) fn begin_turn(&self, agent: HostToolAgent, run_id: RunId) -> AgentTokenTurn {
        let (current, turn) = CurrentTurn::begin(agent, run_id, &self.turn);
        *lock(&self.turn) = Some(current);
        turn
    }
}
