//! The host tools for an agent that starts MCP servers by itself: our own binary, started by the agent, carries lines
//! between it and the provider in the server.
//!
//! The provider's side is a [`Carrier`]: one for each agent process, on an abstract socket whose name nobody can guess.
//! Whoever connects must be of the same user and say a secret first, which the agent hands to the relay in its
//! environment. The relay itself ([`run`]) knows nothing: the tools are answered in the server, where the turn is.

use super::{Called, Outcome, answered, call, mcp};
use domain::{event::Decision, time::Timestamp};
use serde_json::Value;
use std::{
    fmt::Write as _,
    io::{self, Read as _, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::MetadataExt as _,
            net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream},
        },
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use workbench::process::Lines;

/// The subcommand of our binary that calls [`run`].
pub const SUBCOMMAND: &str = "__host-tools";
/// The variable in which the relay finds the secret; on a command line others could read it.
pub const SECRET: &str = "GREENROOM_HOST_TOOLS_SECRET";

/// What `ask_user` is called on this way: Gemini CLI has a tool of that name which it hides from its model when it is
/// driven by a program, and with it every other tool of that name.
pub const ASK: &str = "ask_people";
const ASK_USER: &str = "ask_user";

/// An agent has one relay; a few more while it starts a session anew.
const MAX_RELAYS: usize = 8;
/// Calls of one relay that wait for a person.
const MAX_QUESTIONS: usize = 16;
/// The secret is the first thing that is said.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// The relay: carries bytes both ways until one side ends. Needs no runtime.
pub fn run(socket: &str, secret: &str) -> io::Result<()> {
    let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(socket)?)?;
    let (mut from_server, mut to_server) = (stream.try_clone()?, stream);
    to_server.write_all(format!("{secret}\n").as_bytes())?;
    std::thread::spawn(move || {
        // Either way there is nothing more to say: the agent has closed our input, or the server is gone.
        let ended = io::copy(&mut io::stdin().lock(), &mut to_server);
        let closed = to_server.shutdown(std::net::Shutdown::Write);
        ended.and(closed)
    });
    let mut output = io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from_server.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        output.write_all(&buffer[..count])?;
        output.flush()?;
    }
}

/// A question of an agent's to the people in the room, for the turn under way.
#[derive(Debug)]
pub struct Question {
    pub input: Value,
    pub answer: oneshot::Sender<(Decision, Option<Value>)>,
}

/// The provider's side. Dropped, the socket and all connections are closed.
#[derive(Debug)]
pub struct Carrier {
    pub socket: String,
    pub secret: String,
    turn: Turn,
    _tasks: JoinSet<()>,
}

/// Who answers questions just now, if anybody.
type Asker = mpsc::Sender<Question>;

#[derive(Clone, Debug, Default)]
struct Turn(Arc<Mutex<Option<Asker>>>);

/// While it lives, questions come out of it.
#[derive(Debug)]
pub struct Questions {
    questions: mpsc::Receiver<Question>,
    turn: Turn,
}

impl Turn {
    fn lock(&self) -> MutexGuard<'_, Option<Asker>> {
        // Set and cleared in one step each.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier {
    pub fn open() -> io::Result<Self> {
        let socket = format!("greenroom-{}", random()?);
        let secret = random()?;
        let listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(&socket)?)?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        // Of the process itself: the same user that its agents run as.
        let user = std::fs::metadata("/proc/self")?.uid();
        let turn = Turn::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, user, secret.clone(), turn.clone()));
        Ok(Self { socket, secret, turn, _tasks: tasks })
    }

    /// From now on questions go to this turn.
    pub fn begin(&self) -> Questions {
        let (asker, questions) = mpsc::channel(MAX_QUESTIONS);
        *self.turn.lock() = Some(asker);
        Questions { questions, turn: self.turn.clone() }
    }
}

impl Questions {
    pub async fn next(&mut self) -> Option<Question> {
        self.questions.recv().await
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        *self.turn.lock() = None;
    }
}

async fn accept(listener: UnixListener, user: u32, secret: String, turn: Turn) {
    let mut relays = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = relays.join_next() => {}
            accepted = listener.accept(), if relays.len() < MAX_RELAYS => match accepted {
                Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == user) => {
                    relays.spawn(serve(stream, secret.clone(), turn.clone()));
                }
                Ok(_) => tracing::warn!("somebody else tried to reach an agent's host tools"),
                Err(error) => {
                    tracing::warn!(%error, "an agent's host tools can no longer be reached");
                    return;
                }
            },
        }
    }
}

async fn serve(stream: UnixStream, secret: String, turn: Turn) {
    let (input, mut output) = stream.into_split();
    let mut lines = Lines::new(input);
    let said = tokio::time::timeout(INTRODUCTION, lines.next()).await;
    if !matches!(said, Ok(Ok(Some(said))) if same(&said, &secret)) {
        tracing::warn!("a relay of host tools did not know the secret");
        return;
    }
    let mut waiting = JoinSet::new();
    loop {
        let reply = tokio::select! {
            Some(Ok(reply)) = waiting.join_next() => Some(reply),
            line = lines.next() => match line {
                Ok(Some(line)) => step(&line, &turn, &mut waiting),
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%error, "a relay of host tools ended");
                    return;
                }
            },
        };
        if let Some(reply) = reply
            && let Err(error) = write(&mut output, &reply).await
        {
            tracing::debug!(%error, "a relay of host tools takes no answer");
            return;
        }
    }
}

/// What to answer at once. What waits for a person is put aside, so that the agent is heard meanwhile.
fn step(line: &str, turn: &Turn, waiting: &mut JoinSet<Value>) -> Option<Value> {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return None };
    match mcp::step(&message) {
        mcp::Step::Reply(reply) => Some(renamed(reply)),
        mcp::Step::Nothing => None,
        mcp::Step::Call { id, name, arguments } => match call(own_name(&name), &arguments, Timestamp::now()) {
            Called::Done(outcome) => Some(mcp::result(&id, &outcome)),
            Called::Ask { .. } if waiting.len() >= MAX_QUESTIONS => {
                Some(mcp::result(&id, &cannot("Too many questions are open already.")))
            }
            Called::Ask { input } => {
                let asker = turn.lock().clone();
                waiting.spawn(async move { mcp::result(&id, &ask(asker, input).await) });
                None
            }
        },
    }
}

/// The name under which an agent sees a tool of ours.
pub fn agents_name(tool: &str) -> &str {
    if tool == ASK_USER { ASK } else { tool }
}

fn own_name(tool: &str) -> &str {
    if tool == ASK { ASK_USER } else { tool }
}

fn renamed(mut reply: Value) -> Value {
    for tool in reply.pointer_mut("/result/tools").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(name) = tool["name"].as_str().map(agents_name).map(str::to_owned) {
            tool["name"] = name.into();
        }
    }
    reply
}

async fn ask(asker: Option<Asker>, input: Value) -> Outcome {
    let (answer, waiting) = oneshot::channel();
    let Some(asker) = asker else { return cannot("Nobody can be asked: no turn is under way.") };
    if asker.send(Question { input, answer }).await.is_err() {
        return cannot("Nobody can be asked: the turn has ended.");
    }
    // No deadline here: the engine answers every approval, at the latest when it expires, and the end of the turn drops it.
    match waiting.await {
        Ok((decision, input)) => answered(decision, input.as_ref()),
        Err(_) => cannot("The turn ended before anybody answered."),
    }
}

fn cannot(why: &str) -> Outcome {
    Outcome { text: why.to_owned(), is_error: true }
}

async fn write(output: &mut OwnedWriteHalf, reply: &Value) -> io::Result<()> {
    output.write_all(format!("{reply}\n").as_bytes()).await
}

/// Takes the same time wherever the difference is.
fn same(said: &str, secret: &str) -> bool {
    let different = said.bytes().zip(secret.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    said.len() == secret.len() && different == 0
}

fn random() -> io::Result<String> {
    let mut bytes = [0; 24];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::{ASK, Carrier, Lines};
    use domain::event::Decision;
    use serde_json::{Value, json};
    use std::os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixStream as StdStream},
    };
    use tokio::{
        io::AsyncWriteExt as _,
        net::{UnixStream, unix::OwnedWriteHalf},
    };

    struct Relay {
        heard: Lines,
        output: OwnedWriteHalf,
    }

    impl Relay {
        /// What `run` does, without the pipes of a process.
        async fn connect(socket: &str, secret: &str) -> Self {
            let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(socket).unwrap()).unwrap();
            stream.set_nonblocking(true).unwrap();
            let (input, output) = UnixStream::from_std(stream).unwrap().into_split();
            let mut relay = Self { heard: Lines::new(input), output };
            relay.output.write_all(format!("{secret}\n").as_bytes()).await.unwrap();
            relay
        }

        async fn send(&mut self, message: Value) {
            self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }

        async fn next(&mut self) -> Option<Value> {
            let line = self.heard.next().await.ok()??;
            Some(serde_json::from_str(&line).unwrap())
        }
    }

    fn calling(id: u64, name: &str, arguments: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    }

    #[tokio::test]
    async fn tools_are_listed_and_called() {
        let carrier = Carrier::open().unwrap();
        let mut relay = Relay::connect(&carrier.socket, &carrier.secret).await;
        relay.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        let list = relay.next().await.unwrap();
        let names: Vec<&Value> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["current_time", ASK]);
        relay.send(calling(2, "current_time", json!({}))).await;
        assert_eq!(relay.next().await.unwrap()["result"]["isError"], false);
    }

    #[tokio::test]
    async fn a_question_waits_for_its_answer_and_holds_up_nothing() {
        let carrier = Carrier::open().unwrap();
        let mut questions = carrier.begin();
        let mut relay = Relay::connect(&carrier.socket, &carrier.secret).await;
        relay.send(calling(1, ASK, json!({"question": "Which?"}))).await;
        let question = questions.next().await.unwrap();
        assert_eq!(question.input, json!({"question": "Which?"}));
        relay.send(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
        assert_eq!(relay.next().await.unwrap()["id"], 2);
        question.answer.send((Decision::Allow, Some(json!({"answer": "this"})))).unwrap();
        let reply = relay.next().await.unwrap();
        assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(1), &json!("this")));
    }

    #[tokio::test]
    async fn without_a_turn_a_question_is_an_error_and_so_is_one_whose_turn_ends() {
        let carrier = Carrier::open().unwrap();
        let mut relay = Relay::connect(&carrier.socket, &carrier.secret).await;
        relay.send(calling(1, ASK, json!({"question": "Which?"}))).await;
        assert_eq!(relay.next().await.unwrap()["result"]["isError"], true);
        let mut questions = carrier.begin();
        relay.send(calling(2, ASK, json!({"question": "Which?"}))).await;
        drop(questions.next().await.unwrap());
        drop(questions);
        let reply = relay.next().await.unwrap();
        assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(2), &json!(true)));
        relay.send(calling(3, ASK, json!({"question": "Which?"}))).await;
        assert_eq!(relay.next().await.unwrap()["result"]["isError"], true);
    }

    #[tokio::test]
    async fn invariant_17_secrets_stay_who_does_not_know_it_is_not_served() {
        let carrier = Carrier::open().unwrap();
        for wrong in [String::new(), "0".repeat(48), format!("{}0", carrier.secret)] {
            let mut relay = Relay::connect(&carrier.socket, &wrong).await;
            // The write may already find the connection closed.
            let written = relay.output.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").await;
            assert_eq!(relay.next().await, None, "{written:?}");
        }
    }
}
