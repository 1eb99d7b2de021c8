//! Agent tokens: how the program of an agent authenticates at this server.
//!
//! An agent token is a secret of one process. The provider [issues](AgentTokens::issue) it and gives it to that process
//! only; the server [finds](AgentTokens::find) the [`AgentToken`] by its secret. It is bound to an agent in a room and,
//! during a turn, to its run; it grants its scopes and nothing else. It is never stored, and it is revoked as soon as
//! the provider drops its lease.

mod request;
pub(crate) mod secret;
#[cfg(test)]
mod tests;
mod token;
mod turn;

pub use request::{HostToolRequest, MAX_REQUESTS};
pub use secret::{AGENT_TOKEN_PREFIX, AgentTokenError};
pub use token::{AgentToken, AgentTokenBinding, AgentTokenScope};
pub use turn::AgentTokenTurn;

use crate::{AgentWorkspace, host_tools::HostToolAgent};
use domain::ids::RunId;
use secret::AgentTokenSecret;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How an agent's program reaches the host tools.
#[derive(Clone, Debug)]
pub struct HostToolsAccess {
    /// The server's address on this machine.
    pub address: SocketAddr,
    /// Our own binary: `greenroom mcp` connects stdio to the server, for agents that only support stdio servers.
    pub program: PathBuf,
    pub tokens: AgentTokens,
}

/// All valid agent tokens.
#[derive(Clone, Debug, Default)]
pub struct AgentTokens(Arc<Mutex<TokenTable>>);

#[derive(Debug, Default)]
struct TokenTable {
    issued: u64,
    valid: Vec<Arc<AgentToken>>,
}

impl AgentTokens {
    /// Issues a token for a process of this agent.
    pub fn issue(
        &self,
        workspace: &AgentWorkspace,
        scopes: &[AgentTokenScope],
    ) -> Result<AgentTokenLease, AgentTokenError> {
        let (secret, agent) = (AgentTokenSecret::generate()?, HostToolAgent::with_program(workspace.clone()));
        let mut table = lock(&self.0);
        table.issued += 1;
        let token = Arc::new(AgentToken::new(table.issued, secret, scopes, agent));
        table.valid.push(Arc::clone(&token));
        drop(table);
        Ok(AgentTokenLease { token, tokens: self.clone() })
    }

    /// Finds the token with this secret. Compares with all of them: there are as many as processes.
    pub fn find(&self, shown: &[u8]) -> Option<Arc<AgentToken>> {
        let table = lock(&self.0);
        let matching =
            |found, token: &Arc<AgentToken>| if token.secret.is(shown) { Some(Arc::clone(token)) } else { found };
        table.valid.iter().fold(None, matching)
    }
}

/// The provider's handle of a token. Dropping it revokes the token.
#[derive(Debug)]
pub struct AgentTokenLease {
    token: Arc<AgentToken>,
    tokens: AgentTokens,
}

impl AgentTokenLease {
    /// The secret; only for the process that the token belongs to.
    pub fn reveal(&self) -> &str {
        self.token.secret.reveal()
    }

    /// Binds the token to a run: calls belong to this turn from now on.
    pub fn begin_turn(&self, workspace: &AgentWorkspace, run_id: RunId) -> AgentTokenTurn {
        self.token.begin_turn(HostToolAgent::with_program(workspace.clone()), run_id)
    }
}

impl Drop for AgentTokenLease {
    fn drop(&mut self) {
        lock(&self.tokens.0).valid.retain(|token| token.number() != self.token.number());
        // Open requests have no client any more.
        self.token.cancel_all();
    }
}

/// Every change is a single step, so a panic cannot leave the state inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
