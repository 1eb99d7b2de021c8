//! The model gateway: how programs inside of a sandbox reach model APIs and remote MCP servers, without a network and without
//! the real keys.
//!
//! ```text
//!  program ── http://127.0.0.1:8080/gateway/anthropic/v1/messages, its token ──▶ server ── the real key ──▶ model API
//! ```
//!
//! A provider asks for a [`GatewayAccess`] when it starts a process: a random token and the variables by which the program
//! finds the gateway. The token is revoked when the process is gone. A process outlives its turns, so a token is bound to
//! the runs of its turns, one after another, by [`GatewayTurns`]: model calls belong to a run, and there are none between
//! turns. [`ModelGateway::forward`] passes a request on, to the routes of its token and nowhere else, and counts with the
//! [`RunMeter`] of the run. `crates/server` serves it, in sandboxes only.

mod access;
mod forward;
mod meter;
mod metered_answer;
mod turns;
mod wire;

pub use access::{GatewayAccess, GatewayRoute, TOKEN_PLACE, server_inside};
pub use forward::{GatewayBody, GatewayRefusal, GatewayRequest, GatewayResponse};
pub use meter::{MeteredCalls, RunMeter};
pub use turns::{GatewayTurn, GatewayTurns};
pub use wire::ModelWire;

use crate::agent_tokens::secret::AgentTokenSecret;
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::Semaphore;
use workbench::{egress::EgressPolicy, project_sandbox::SandboxKey};

/// Ports inside of every sandbox.
pub const GATEWAY_PORT: u16 = 8080;
pub const HOST_TOOLS_PORT: u16 = 8081;

/// Requests of one process at the same time. A further one is answered with 429.
const MAX_REQUESTS: usize = 32;

/// All valid tokens of programs in sandboxes. Cheap to clone; one per server.
#[derive(Clone, Default)]
pub struct ModelGateway(Arc<GatewayInner>);

#[derive(Default)]
struct GatewayInner {
    grants: Mutex<Vec<Arc<GatewayGrant>>>,
    issued: AtomicU64,
    /// Which addresses the MCP servers of others than the operator may be at.
    egress: Arc<EgressPolicy>,
    http: OnceLock<Result<reqwest::Client, String>>,
    guarded_http: OnceLock<Result<reqwest::Client, String>>,
}

/// What the token of one process gives access to.
struct GatewayGrant {
    number: u64,
    secret: AgentTokenSecret,
    /// A token is of no use in another sandbox.
    sandbox: SandboxKey,
    routes: Vec<GatewayRoute>,
    requests: Arc<Semaphore>,
    /// The runs whose turns the process has now.
    turns: GatewayTurns,
}

impl ModelGateway {
    pub fn new(egress: EgressPolicy) -> Self {
        Self(Arc::new(GatewayInner { egress: Arc::new(egress), ..GatewayInner::default() }))
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Arc<GatewayGrant>>> {
        // Every change is a single step, so a panic cannot leave the state inconsistent.
        self.0.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the grant with this secret. Compares with all of them: there are as many as processes.
    fn find(&self, shown: &[u8], sandbox: &str) -> Option<Arc<GatewayGrant>> {
        let matching = |found, grant: &Arc<GatewayGrant>| match grant.secret.is(shown) {
            true => Some(Arc::clone(grant)),
            false => found,
        };
        self.grants().iter().fold(None, matching).filter(|grant| grant.sandbox.as_str() == sandbox)
    }

    fn add(
        &self,
        secret: AgentTokenSecret,
        sandbox: SandboxKey,
        routes: Vec<GatewayRoute>,
        turns: GatewayTurns,
    ) -> GatewayLease {
        let number = self.0.issued.fetch_add(1, Ordering::Relaxed);
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        self.grants().push(Arc::new(GatewayGrant { number, secret, sandbox, routes, requests, turns }));
        GatewayLease { number, gateway: self.clone() }
    }
}

impl fmt::Debug for ModelGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelGateway").field("grants", &self.grants().len()).finish_non_exhaustive()
    }
}

/// Dropping it revokes the token: requests that are still open go on to their end, new ones are refused.
#[derive(Debug)]
struct GatewayLease {
    number: u64,
    gateway: ModelGateway,
}

impl Drop for GatewayLease {
    fn drop(&mut self) {
        self.gateway.grants().retain(|grant| grant.number != self.number);
    }
}
