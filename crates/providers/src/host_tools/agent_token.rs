//! Agent tokens: access to the host tools for an agent that is an MCP client, at the server's MCP endpoint.
//!
//! An agent token is a secret of one process. The provider [issues](AgentTokens::issue) it and gives it to that process
//! only; the endpoint [finds](AgentTokens::find) the [`AgentToken`] by its secret. It grants access to the host tools
//! and to nothing else. It is never stored, and it is revoked as soon as the provider drops its lease.

use super::{
    HOST_TOOLS, HostToolOutcome, HostToolReply, call,
    questions::{QuestionRouter, TurnQuestions},
};
use domain::time::Timestamp;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    io::{self, Read as _},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// Distinguishes agent tokens from user tokens.
pub const AGENT_TOKEN_PREFIX: &str = "grp_";

/// The name of `ask_user` over MCP: Gemini CLI has a tool `ask_user` of its own, and in headless mode it hides every
/// tool of that name from its model.
pub const ASK_PEOPLE: &str = "ask_people";
const ASK_USER: &str = "ask_user";

/// Concurrent requests of one process: more than the questions that may be open.
pub const MAX_REQUESTS: usize = 32;

/// How an agent's program reaches the host tools.
#[derive(Clone, Debug)]
pub struct HostToolsAccess {
    /// The server's address on this machine.
    pub address: SocketAddr,
    /// Our own binary: `greenroom mcp` connects stdio to the server, for agents that only support stdio servers.
    pub program: PathBuf,
    pub tokens: AgentTokens,
}

/// Returns the name of a host tool over MCP.
pub fn name_over_mcp(tool: &str) -> &str {
    if tool == ASK_USER { ASK_PEOPLE } else { tool }
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
    pub fn issue(&self) -> io::Result<AgentTokenLease> {
        let secret = AgentTokenSecret::random()?;
        let mut table = lock(&self.0);
        table.issued += 1;
        let (number, questions) = (table.issued, QuestionRouter::default());
        let token = Arc::new(AgentToken { number, secret, questions, requests: Mutex::default() });
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
        &self.token.secret.0
    }

    /// Routes questions to this turn from now on.
    pub fn begin_turn(&self) -> TurnQuestions {
        self.token.questions.begin_turn()
    }
}

impl Drop for AgentTokenLease {
    fn drop(&mut self) {
        lock(&self.tokens.0).valid.retain(|token| token.number != self.token.number);
        // Open requests have no client any more.
        lock(&self.token.requests).open.values().for_each(|(_, cancel)| cancel.cancel());
    }
}

/// The endpoint's view of a token.
#[derive(Debug)]
pub struct AgentToken {
    number: u64,
    secret: AgentTokenSecret,
    questions: QuestionRouter,
    requests: Mutex<OpenRequests>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    begun: u64,
    /// By our own number: a process may have several MCP clients whose request ids overlap.
    open: BTreeMap<u64, (String, CancellationToken)>,
}

impl AgentToken {
    /// Identifies the token, for rate limits; unrelated to the secret.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Registers a request under the id that its client gave it. `None` if too many are open.
    pub fn begin_request(self: &Arc<Self>, id: &str) -> Option<HostToolRequest> {
        let mut requests = lock(&self.requests);
        if requests.open.len() >= MAX_REQUESTS {
            return None;
        }
        requests.begun += 1;
        let (number, cancel) = (requests.begun, CancellationToken::new());
        requests.open.insert(number, (id.to_owned(), cancel.clone()));
        Some(HostToolRequest { token: Arc::clone(self), number, cancel })
    }

    /// Cancels the request with this id. If two clients of the process have the same id open, it is ambiguous and
    /// neither is canceled.
    pub fn cancel(&self, id: &str) {
        let requests = lock(&self.requests);
        let mut matching = requests.open.values().filter(|(open, _)| open == id);
        if let (Some((_, cancel)), None) = (matching.next(), matching.next()) {
            cancel.cancel();
        }
    }
}

/// An open request.
#[derive(Debug)]
pub struct HostToolRequest {
    token: Arc<AgentToken>,
    number: u64,
    cancel: CancellationToken,
}

impl HostToolRequest {
    /// Calls a tool by its name over MCP. `None` if the client canceled the request. Dropping the future withdraws an
    /// open question.
    pub async fn call_tool(&self, name: &str, arguments: &Value) -> Option<HostToolOutcome> {
        self.cancel.run_until_cancelled(self.run(name, arguments)).await
    }

    async fn run(&self, name: &str, arguments: &Value) -> HostToolOutcome {
        let Some(tool) = HOST_TOOLS.iter().find(|tool| name_over_mcp(tool.name) == name) else {
            let names: Vec<&str> = HOST_TOOLS.iter().map(|tool| name_over_mcp(tool.name)).collect();
            let text = format!("there is no tool {name:?}; there are: {}", names.join(", "));
            return HostToolOutcome { text, is_error: true };
        };
        match call(tool.name, arguments, Timestamp::now()) {
            HostToolReply::Done(outcome) => outcome,
            HostToolReply::Ask { input } => self.token.questions.ask(input).await,
        }
    }
}

impl Drop for HostToolRequest {
    fn drop(&mut self) {
        lock(&self.token.requests).open.remove(&self.number);
    }
}

/// Every change is a single step, so a panic cannot leave the state inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct AgentTokenSecret(String);

impl AgentTokenSecret {
    fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().fold(AGENT_TOKEN_PREFIX.to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").unwrap_or_default();
            text
        })))
    }

    /// Compares in constant time.
    fn is(&self, shown: &[u8]) -> bool {
        let different = shown.iter().zip(self.0.as_bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
        shown.len() == self.0.len() && std::hint::black_box(different) == 0
    }
}

impl fmt::Debug for AgentTokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{AGENT_TOKEN_PREFIX}***")
    }
}
