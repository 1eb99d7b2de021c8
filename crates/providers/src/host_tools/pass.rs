//! The host tools for an agent that speaks MCP itself: it finds them at the server's own door for MCP, where it shows a pass.
//!
//! A pass is a secret of one process. The provider has it [issued](Passes::issue) and gives it to the process alone; the door
//! [finds](Passes::find) the [`Pass`] by what was shown. It opens these tools and nothing else of the server. It is never
//! written down, and it is worth nothing from the moment that the provider lets go of the process.

use super::{
    Called, Outcome, TOOLS, call,
    questions::{Line, Questions},
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

/// Tells a pass from a token, to the door and to the eye.
pub const PREFIX: &str = "grp_";

/// What `ask_user` is called on this way: Gemini CLI has a tool of that name which it hides from its model when it is
/// driven by a program, and with it every other tool of that name.
pub const ASK: &str = "ask_people";
const ASK_USER: &str = "ask_user";

/// Requests of one process that are under way at once: every question that may be open, and some more.
pub const MAX_CALLS: usize = 32;

/// How an agent's program comes to the host tools.
#[derive(Clone, Debug)]
pub struct Door {
    /// Where this machine reaches the server.
    pub address: SocketAddr,
    /// Our own binary: `greenroom mcp` carries standard input and output there, for agents that only start processes.
    pub program: PathBuf,
    pub passes: Passes,
}

/// The name under which an agent sees a tool of ours on this way.
pub fn agents_name(tool: &str) -> &str {
    if tool == ASK_USER { ASK } else { tool }
}

/// Every pass that is good.
#[derive(Clone, Debug, Default)]
pub struct Passes(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    issued: u64,
    good: Vec<Arc<Pass>>,
}

impl Passes {
    pub fn issue(&self) -> io::Result<Issued> {
        let secret = Secret::random()?;
        let mut book = lock(&self.0);
        book.issued += 1;
        let pass = Arc::new(Pass { number: book.issued, secret, line: Line::default(), calls: Mutex::default() });
        book.good.push(Arc::clone(&pass));
        drop(book);
        Ok(Issued { pass, passes: self.clone() })
    }

    /// Compares with every one of them, which are as many as there are processes.
    pub fn find(&self, shown: &[u8]) -> Option<Arc<Pass>> {
        let book = lock(&self.0);
        book.good.iter().fold(None, |found, pass| if pass.secret.is(shown) { Some(Arc::clone(pass)) } else { found })
    }
}

/// The provider's side. Dropped, the pass is no longer good.
#[derive(Debug)]
pub struct Issued {
    pass: Arc<Pass>,
    passes: Passes,
}

impl Issued {
    /// For the process that it is for, and for nobody else.
    pub fn reveal(&self) -> &str {
        &self.pass.secret.0
    }

    /// From now on questions go to this turn.
    pub fn begin(&self) -> Questions {
        self.pass.line.begin()
    }
}

impl Drop for Issued {
    fn drop(&mut self) {
        lock(&self.passes.0).good.retain(|pass| pass.number != self.pass.number);
        // What is still under way has nobody to answer to.
        lock(&self.pass.calls).open.values().for_each(|(_, given_up)| given_up.cancel());
    }
}

/// The door's side.
#[derive(Debug)]
pub struct Pass {
    number: u64,
    secret: Secret,
    line: Line,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    begun: u64,
    /// By our own count: a process may have several clients, and each of them counts its requests from the start.
    open: BTreeMap<u64, (String, CancellationToken)>,
}

impl Pass {
    /// For limits; tells nothing of the secret.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes a request on, under the id that its client gave it. `None` when too many are under way.
    pub fn begin(self: &Arc<Self>, id: &str) -> Option<Call> {
        let mut calls = lock(&self.calls);
        if calls.open.len() >= MAX_CALLS {
            return None;
        }
        calls.begun += 1;
        let (number, given_up) = (calls.begun, CancellationToken::new());
        calls.open.insert(number, (id.to_owned(), given_up.clone()));
        Some(Call { pass: Arc::clone(self), number, given_up })
    }

    /// The client no longer waits for this one. Where two clients of the process have the same id open, it is not known which
    /// is meant, and neither ends.
    pub fn cancel(&self, id: &str) {
        let calls = lock(&self.calls);
        let mut meant = calls.open.values().filter(|(open, _)| open == id);
        if let (Some((_, given_up)), None) = (meant.next(), meant.next()) {
            given_up.cancel();
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Call {
    pass: Arc<Pass>,
    number: u64,
    given_up: CancellationToken,
}

impl Call {
    /// Calls a tool by the name that it has on this way. `None` when the client has given it up. Whoever drops this withdraws
    /// the question that it may be.
    pub async fn tool(&self, name: &str, arguments: &Value) -> Option<Outcome> {
        self.given_up.run_until_cancelled(self.carry_out(name, arguments)).await
    }

    async fn carry_out(&self, name: &str, arguments: &Value) -> Outcome {
        let Some(tool) = TOOLS.iter().find(|tool| agents_name(tool.name) == name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| agents_name(tool.name)).collect();
            let text = format!("there is no tool {name:?}; there are: {}", names.join(", "));
            return Outcome { text, is_error: true };
        };
        match call(tool.name, arguments, Timestamp::now()) {
            Called::Done(outcome) => outcome,
            Called::Ask { input } => self.pass.line.ask(input).await,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.pass.calls).open.remove(&self.number);
    }
}

/// Nothing here is changed in more than one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Secret(String);

impl Secret {
    fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().fold(PREFIX.to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").unwrap_or_default();
            text
        })))
    }

    /// Takes the same time wherever the difference is.
    fn is(&self, shown: &[u8]) -> bool {
        let different = shown.iter().zip(self.0.as_bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
        shown.len() == self.0.len() && std::hint::black_box(different) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}***")
    }
}
