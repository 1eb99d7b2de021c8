//! One agent program that runs, with one session: what is kept between the turns of a conversation.
//!
//! The protocol allows many sessions in one process, and some agents run them side by side. There is one process for each
//! room and agent nevertheless: a program that does not obey an interrupt is killed, and that must not end the turn of
//! another room.

use super::{
    ending, folder,
    gemini::{self, Surroundings},
    preset::{Home, ModelChoice, Preset},
    session::Opened,
};
use crate::{
    Place, TurnEvent,
    host_tools::pass::{Door, Issued},
    jsonrpc::{CallError, CloseReason, Connection, Dialect, Incoming, Peer, RpcError},
    pool::Resident,
    program::{self, Program, STOP},
    turn::SeenSkill,
};
use domain::run::{Receipt, RunError};
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{io::AsyncWrite, sync::mpsc};
use workbench::process::{Command, Ended, Handle, Lines};

/// Some take seconds to load, on a busy machine many.
const START: Duration = Duration::from_secs(60);
/// Some go on telling the history of a session after they have said that it is loaded: it has ended when nothing came
/// for so long,
const QUIET: Duration = Duration::from_millis(300);
/// or when it never ends.
const REPLAY: Duration = Duration::from_secs(30);
/// How much of a program's last words goes into a message.
const LAST_WORDS: usize = 2048;

pub struct Agent {
    pub peer: Peer,
    pub incoming: mpsc::Receiver<Incoming>,
    /// `None` until one was opened.
    pub session: Option<Opened>,
    /// By which it has the host tools.
    pub pass: Issued,
    /// It reaches others by a proxy.
    pub is_proxied: bool,
    /// What it was started with. Another place needs another process.
    pub made_for: MadeFor,
    connection: Connection,
    /// In tests there is no process.
    handle: Option<Handle>,
    /// `None` until it has said so.
    pub can: Option<Abilities>,
}

/// What of a place a running process cannot take on.
#[derive(Clone, PartialEq, Debug)]
pub struct MadeFor {
    workplace: PathBuf,
    model: Option<String>,
    system_prompt: Option<String>,
    skills: Vec<SeenSkill>,
    mcp_servers: Vec<domain::mcp::Server>,
    /// What its policy means to the program itself.
    rules: String,
    pub surroundings: Surroundings,
}

impl MadeFor {
    pub fn new(preset: &Preset, place: &Place, surroundings: Surroundings) -> Self {
        let has_rules = preset.home == Home::Gemini;
        Self {
            workplace: place.workplace.clone(),
            model: place.agent.spec.model.clone(),
            system_prompt: place.agent.spec.system_prompt.clone(),
            skills: SeenSkill::all(&place.skills),
            mcp_servers: place.mcp_servers.clone(),
            rules: if has_rules { gemini::rules(&place.agent.spec.tools) } else { String::new() },
            surroundings,
        }
    }
}

/// What the agent said it can do.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Find an earlier session again.
    pub load: bool,
    /// Use MCP servers over HTTP.
    pub http: bool,
    /// Use MCP servers over SSE.
    pub sse: bool,
}

/// How to make agents; shared by all turns of a provider.
#[derive(Debug)]
pub struct Maker {
    pub preset: Preset,
    pub program: Program,
    pub door: Door,
}

impl Maker {
    /// Starts the program; it has not said anything yet.
    pub async fn start(&self, place: &Place) -> Result<Agent, RunError> {
        let name = &self.preset.name;
        let Some(path) = self.program.locate() else {
            return Err(RunError::new("program_missing", self.missing()));
        };
        let (preset, program, at) = (self.preset.clone(), self.program.clone(), place.clone());
        let prepared = tokio::task::spawn_blocking(move || folder::prepare(&preset, &program, &at)).await;
        let cannot =
            |why: &dyn std::fmt::Display| RunError::new("program_crashed", format!("{name} cannot start: {why}"));
        let folder::Prepared { environment: env, args: further, surroundings, folder } =
            prepared.map_err(|panic| cannot(&panic))?.map_err(|error| cannot(&error))?;
        let mut args: Vec<OsString> = self.preset.args.iter().map(OsString::from).chain(further).collect();
        if let (ModelChoice::Flag(flag), Some(model)) = (self.preset.model, &place.agent.spec.model) {
            args.extend([OsString::from(flag), model.into()]);
        }
        args.extend(self.program.args.iter().map(OsString::from));
        let is_proxied = program::is_proxied(&env);
        let command = Command { program: path, args, env, folder };
        let pass = self.door.passes.issue().map_err(|error| cannot(&error))?;
        let child = self.program.supervisor.start(command).await.map_err(|error| cannot(&error))?;
        let made_for = MadeFor::new(&self.preset, place, surroundings);
        let agent = Agent::over(child.stdout, child.stdin, Some(child.handle), made_for, pass);
        Ok(Agent { is_proxied, ..agent })
    }

    pub fn missing(&self) -> String {
        format!("{} is not on this machine: {}.", self.program.command, self.preset.install)
    }

    /// Why it is of no use, in words; the program has ended when this returns.
    pub async fn not_opened(&self, agent: Agent, reason: &CallError) -> (RunError, Receipt) {
        match reason {
            // It has said what is wrong; its log adds nothing.
            CallError::Refused { .. } => (ending::of_error(&self.preset, reason), agent.stop().await),
            _ => self.crashed(agent, reason).await,
        }
    }

    /// Why it ended, in words; the program has ended when this returns.
    pub async fn crashed(&self, agent: Agent, reason: &CallError) -> (RunError, Receipt) {
        let (ended, last_words, receipt) = agent.end().await;
        let mut error = ending::of_error(&self.preset, reason);
        match ended {
            Some(Ended::Code(code)) => error.message.push_str(&format!(" (it ended with code {code})")),
            Some(Ended::Signal(signal)) => error.message.push_str(&format!(" (it was ended by signal {signal})")),
            Some(Ended::Unknown) | None => {}
        }
        if !last_words.is_empty() {
            error.message.push_str(&format!("\n{last_words}"));
        }
        (error, receipt)
    }
}

impl Agent {
    pub fn over(
        output: Lines,
        input: impl AsyncWrite + Send + Unpin + 'static,
        handle: Option<Handle>,
        made_for: MadeFor,
        pass: Issued,
    ) -> Self {
        let (connection, peer, incoming) = Connection::start(output, input, Dialect { with_version_field: true });
        Self { peer, incoming, session: None, pass, is_proxied: false, made_for, connection, handle, can: None }
    }

    /// Whether it can take another turn, as far as one can see.
    pub fn is_alive(&self) -> bool {
        self.peer.closed().is_none()
    }

    /// Greets it, if nobody has yet.
    pub async fn initialize(&mut self) -> Result<(), CallError> {
        if self.can.is_some() {
            return Ok(());
        }
        // Neither files nor terminals are offered: the agent's program works on the room's folder by itself, inside
        // its kill domain, and what it does there it asks permission for.
        let nothing = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let client = json!({"name": "greenroom", "title": "Greenroom", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": 1, "clientCapabilities": nothing, "clientInfo": client});
        let result = self.ask("initialize", params, START).await?;
        if let Some(version) = result["protocolVersion"].as_u64().filter(|version| *version != 1) {
            return Err(wrong(&format!("it speaks version {version} of the protocol, and only 1 is spoken here")));
        }
        let abilities = &result["agentCapabilities"];
        let can = |ability: &Value| ability.as_bool().unwrap_or(false);
        let load = can(&abilities["loadSession"]);
        let mcp = &abilities["mcpCapabilities"];
        self.can = Some(Abilities { load, http: can(&mcp["http"]), sse: can(&mcp["sse"]) });
        tracing::debug!(agent = %result["agentInfo"], can = ?self.can, "an agent is there");
        Ok(())
    }

    /// Asks, and meanwhile hears out what the agent says by itself; outside of a prompt none of it is for people.
    pub async fn ask(&mut self, method: &str, params: Value, deadline: Duration) -> Result<Value, CallError> {
        let Self { peer, incoming, .. } = self;
        let answer = peer.request(method, params, deadline);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return answer,
                Some(said) = incoming.recv() => unasked(peer, said),
            }
        }
    }

    /// The history of a loaded session, which the room knows already.
    pub async fn listen_out(&mut self) -> Result<(), CallError> {
        let (peer, incoming) = (&self.peer, &mut self.incoming);
        let all = async {
            while let Ok(Some(said)) = tokio::time::timeout(QUIET, incoming.recv()).await {
                unasked(peer, said);
            }
        };
        tokio::time::timeout(REPLAY, all).await.map_err(|_| CallError::Timeout)
    }

    /// What it said while nobody listened.
    pub fn catch_up(&mut self) {
        while let Ok(said) = self.incoming.try_recv() {
            unasked(&self.peer, said);
        }
    }

    /// Ends what its tools have left running; how many processes that were.
    pub fn end_strays(&self) -> usize {
        self.handle.as_ref().map_or(0, Handle::end_strays)
    }

    /// Ends the program and everything it started.
    pub async fn stop(self) -> Receipt {
        let Self { connection, handle, peer, pass, .. } = self;
        drop((peer, pass));
        connection.close().await;
        match handle {
            Some(handle) => handle.stop(STOP).await,
            None => Receipt::default(),
        }
    }

    /// How it ended by itself, its last words, and what it took to end what it left.
    async fn end(mut self) -> (Option<Ended>, String, Receipt) {
        let mut ended = None;
        let mut last_words = String::new();
        if let Some(handle) = &mut self.handle {
            ended = tokio::time::timeout(Duration::from_secs(1), handle.ended()).await.ok();
            let tail = handle.stderr().tail();
            let from = tail.len().saturating_sub(LAST_WORDS);
            let from = (from..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
            last_words = tail[from..].to_owned();
        }
        (ended, last_words, self.stop().await)
    }
}

impl Resident for Agent {
    async fn leave(self) {
        let receipt = self.stop().await;
        tracing::debug!(?receipt, "an idle agent has left");
    }
}

/// Something that was said outside of a prompt.
fn unasked(peer: &Peer, said: Incoming) {
    if let Incoming::Request { id, method, .. } = said {
        let answer = refuse(&method);
        if let Err(error) = peer.respond(id, answer) {
            tracing::debug!(%error, method, "a request could not be answered");
        }
    }
}

/// The answer to a request that is not granted, or not known here.
pub fn refuse(method: &str) -> Result<Value, RpcError> {
    match method {
        "session/request_permission" => Ok(json!({"outcome": {"outcome": "cancelled"}})),
        _ => Err(RpcError::unknown_method(method)),
    }
}

/// The program does not do as the protocol says.
pub fn wrong(what: &str) -> CallError {
    CallError::Closed(CloseReason::BadOutput(what.to_owned()))
}

pub fn status(status: &str, message: String) -> TurnEvent {
    TurnEvent::Status { status: status.to_owned(), message }
}

/// The first line of what the program prints for `--version`.
pub async fn version(program: &Program, path: &Path) -> Option<String> {
    let env = program.environment(&[], &[("NO_COLOR", std::ffi::OsStr::new("1"))]);
    let folder = PathBuf::from("/");
    let command = Command { program: path.to_owned(), args: vec!["--version".into()], env, folder };
    let mut child = program.supervisor.start(command).await.ok()?;
    drop(child.stdin);
    let line = child.stdout.next().await.ok()??;
    let version: String = line.trim().chars().take(100).collect();
    (!version.is_empty()).then_some(version)
}
