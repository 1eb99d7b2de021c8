//! An open request of a process to the host tools.

use super::{AgentToken, lock, turn::CurrentTurn};
use crate::host_tools::{HostToolOutcome, name_over_mcp, unknown_tool};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Concurrent requests of one process: more than the questions that may be open.
pub const MAX_REQUESTS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    begun: u64,
    /// By our own number: a process may have several MCP clients whose request ids overlap.
    open: BTreeMap<u64, (String, CancellationToken)>,
}

impl OpenRequests {
    pub fn cancel(&self, id: &str) {
        let mut matching = self.open.values().filter(|(open, _)| open == id);
        if let (Some((_, cancel)), None) = (matching.next(), matching.next()) {
            cancel.cancel();
        }
    }

    pub fn cancel_all(&self) {
        self.open.values().for_each(|(_, cancel)| cancel.cancel());
    }
}

#[derive(Debug)]
pub struct HostToolRequest {
    token: Arc<AgentToken>,
    number: u64,
    cancel: CancellationToken,
}

impl HostToolRequest {
    pub(super) fn begin(token: &Arc<AgentToken>, id: &str) -> Option<Self> {
        let mut requests = lock(&token.requests);
        if requests.open.len() >= MAX_REQUESTS {
            return None;
        }
        requests.begun += 1;
        let (number, cancel) = (requests.begun, CancellationToken::new());
        requests.open.insert(number, (id.to_owned(), cancel.clone()));
        Some(Self { token: Arc::clone(token), number, cancel })
    }

    pub fn token(&self) -> &AgentToken {
        &self.token
    }

    /// Calls a tool by its name over MCP. `None` if the client canceled the request. Dropping the future cancels the
    /// call, and withdraws an open question.
    pub async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Option<HostToolOutcome> {
        self.cancel.run_until_cancelled(self.run(name, arguments)).await
    }

    async fn run(&self, name: &str, arguments: Map<String, Value>) -> HostToolOutcome {
        let offered = self.token.host_tools();
        let Some(tool) = offered.iter().find(|tool| name_over_mcp(&tool.name) == name) else {
            return unknown_tool(name, &offered, name_over_mcp);
        };
        let turn: Option<CurrentTurn> = lock(&self.token.turn).clone();
        match turn {
            Some(turn) => turn.call(&tool.name, arguments).await,
            None => HostToolOutcome::error("The tool was not called: no turn is running."),
        }
    }
}

impl Drop for HostToolRequest {
    fn drop(&mut self) {
        lock(&self.token.requests).open.remove(&self.number);
    }
}
