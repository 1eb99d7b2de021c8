//! A fake Codex: the test reads its requests and sends its responses.

use crate::{
    AgentWorkspace, Provider as _, ProviderEvent, ResumableSession, TurnChannel, TurnCommand, TurnEvent, TurnOutcome,
    TurnRequest,
    codex::{CodexConfig, CodexProvider},
    fake_launcher::{FakeEnd, FakeLauncher, FakeProcessCount, FakeProgram, program_file},
    jsonrpc::fake_peer::FakeRpcPeer,
    program::AgentProgram,
};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    name::Name,
    run::Receipt,
    time::Timestamp,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet};
use workbench::process::{ProgramExit, Supervisor};

/// Long enough for a loaded machine; no passing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn program(command: &str, environment: &[(&str, &str)]) -> AgentProgram {
    AgentProgram {
        command: command.into(),
        args: Vec::new(),
        allowed_variables: Vec::new(),
        share_login: false,
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        launcher: Arc::new(Supervisor::new(PathBuf::from("keeper"))),
        gateway: crate::gateway::ModelGateway::default(),
    }
}

pub fn workspace(home: &Path) -> AgentWorkspace {
    let spec = AgentSpec::new(Name::parse("coder").unwrap(), "codex");
    let now = Timestamp::from_millis(0);
    AgentWorkspace {
        owner: domain::owner::Owner::local(),
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: now, updated_at: now },
        folder: home.join("workplace"),
        space: std::sync::Arc::new(domain::project::ProjectSpace::scratch(
            domain::owner::Owner::local(),
            RoomId::generate(),
            home.join("workplace"),
        )),
        home: home.to_owned(),
        sandbox: None,
        servers_sandbox: None,
        skills: Vec::new(),
        mcp_servers: Vec::new(),
        host_tools: crate::host_tools::HostTools::new(crate::host_tools::tools::all()).unwrap(),
        provider_settings: Default::default(),
        has_company: false,
        depth: 0,
    }
}

/// A started program: the other end of its pipes.
pub struct FakeCodexServer {
    pub far_end: FakeRpcPeer,
    pub home: PathBuf,
    threads: usize,
    turns: usize,
}

impl FakeCodexServer {
    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.far_end.send(json!({"id": request["id"], "result": result})).await;
    }

    pub async fn refuse(&mut self, request: &Value, message: &str) {
        self.far_end.send(json!({"id": request["id"], "error": {"code": -32600, "message": message}})).await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.far_end.send(json!({"method": method, "params": params})).await;
    }

    pub async fn expect(&mut self, method: &str) -> Value {
        self.far_end.expect(method).await
    }

    pub async fn accept_initialize(mut self) -> Self {
        let request = self.expect("initialize").await;
        assert_eq!(request["params"]["capabilities"]["experimentalApi"], true);
        self.answer(&request, json!({"userAgent": "fake"})).await;
        self.expect("initialized").await;
        let account = self.expect("account/read").await;
        self.answer(&account, json!({"account": {"type": "apiKey"}, "requiresOpenaiAuth": true})).await;
        self
    }

    /// Answers `thread/start`. Returns the thread's id.
    pub async fn start_thread(&mut self) -> String {
        let start = self.expect("thread/start").await;
        self.threads += 1;
        let thread = format!("thread-{}-{}", self.home.file_name().unwrap().to_string_lossy(), self.threads);
        self.answer(&start, json!({"thread": {"id": thread}, "model": "m"})).await;
        thread
    }

    /// Answers `turn/start` and starts the turn.
    pub async fn start_turn(&mut self) -> RunningCodexTurn {
        let start = self.expect("turn/start").await;
        let thread = start["params"]["threadId"].as_str().unwrap().to_owned();
        let prompt = start["params"]["input"][0]["text"].as_str().unwrap().to_owned();
        self.turns += 1;
        let turn = format!("turn-{}", self.turns);
        self.answer(&start, json!({"turn": {"id": turn}})).await;
        self.notify("turn/started", json!({"threadId": thread, "turn": {"id": turn}})).await;
        RunningCodexTurn { thread, turn, prompt }
    }

    pub async fn item(&mut self, running: &RunningCodexTurn, method: &str, item: Value) {
        self.notify(method, json!({"threadId": running.thread, "turnId": running.turn, "item": item})).await;
    }

    pub async fn send_text(&mut self, running: &RunningCodexTurn, item: &str, delta: &str) {
        let params = json!({"threadId": running.thread, "turnId": running.turn, "itemId": item, "delta": delta});
        self.notify("item/agentMessage/delta", params).await;
    }

    pub async fn end(&mut self, running: &RunningCodexTurn, status: &str) {
        let turn = json!({"id": running.turn, "status": status, "items": [], "error": null});
        self.notify("turn/completed", json!({"threadId": running.thread, "turn": turn})).await;
    }

    /// Sends a request of its own.
    pub async fn send_request(&mut self, id: u64, method: &str, running: &RunningCodexTurn, mut params: Value) {
        params["threadId"] = json!(running.thread);
        params["turnId"] = json!(running.turn);
        self.far_end.send(json!({"id": id, "method": method, "params": params})).await;
    }

    pub async fn result_of(&mut self, id: u64) -> Value {
        let answer = self.far_end.next().await.expect("the input is open");
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    /// Accepts an interrupt and ends the turn.
    pub async fn accept_interrupt(&mut self, running: &RunningCodexTurn) {
        let interrupt = self.expect("turn/interrupt").await;
        assert_eq!(interrupt["params"], json!({"threadId": running.thread, "turnId": running.turn}));
        self.answer(&interrupt, json!({})).await;
        self.end_interrupted(running).await;
    }

    pub async fn end_interrupted(&mut self, running: &RunningCodexTurn) {
        self.end(running, "interrupted").await;
        let clean = self.expect("thread/backgroundTerminals/clean").await;
        assert_eq!(clean["params"], json!({"threadId": running.thread}));
        self.answer(&clean, json!({})).await;
        let list = self.expect("thread/backgroundTerminals/list").await;
        self.answer(&list, json!({"data": []})).await;
    }
}

#[derive(Debug)]
pub struct RunningCodexTurn {
    pub thread: String,
    pub turn: String,
    pub prompt: String,
}

pub struct CodexHarness {
    pub codex: CodexProvider,
    started: mpsc::Receiver<FakeProgram>,
    pub count: FakeProcessCount,
    folder: TempDir,
}

pub fn harness(instances: usize) -> CodexHarness {
    harness_with(instances, Duration::from_secs(3600))
}

pub fn harness_with(instances: usize, idle: Duration) -> CodexHarness {
    let folder = tempfile::tempdir().unwrap();
    // Stopping takes a while.
    let stop = (Duration::from_millis(30), Receipt { processes: 1, signals: vec!["SIGKILL".into()], millis: 1 });
    let end = FakeEnd { exit: ProgramExit::Code(101), stderr: "thread 'main' panicked", stop };
    let (launcher, started, count) = FakeLauncher::new(end);
    let program = program(&program_file(folder.path(), "codex"), &[]);
    let program = AgentProgram { launcher: Arc::new(launcher), ..program };
    CodexHarness { codex: CodexProvider::new(CodexConfig { program, instances, idle }), started, count, folder }
}

impl CodexHarness {
    /// An agent whose home folder has this name.
    pub fn workspace(&self, home: &str) -> AgentWorkspace {
        workspace(&self.folder.path().join(home))
    }

    pub async fn next_server(&mut self) -> FakeCodexServer {
        self.next_raw_server().await.accept_initialize().await
    }

    /// Returns the next started program without initializing it.
    pub async fn next_raw_server(&mut self) -> FakeCodexServer {
        let started = tokio::time::timeout(PATIENCE, self.started.recv()).await;
        let program = started.expect("a program is started").unwrap();
        let home = PathBuf::from(program.spec.env[OsStr::new("HOME")].clone());
        FakeCodexServer { far_end: FakeRpcPeer::of(program), home, threads: 0, turns: 0 }
    }

    pub fn begin_turn(&self, workspace: &AgentWorkspace, prompt: &str, session: Option<&str>) -> CodexTurnHandle {
        let (events, heard) = mpsc::channel(64);
        let (commands, received) = mpsc::channel(16);
        let session = session.map(|id| ResumableSession { id: id.to_owned(), missed: Vec::new() });
        let request = TurnRequest {
            run_id: RunId::generate(),
            workspace: workspace.clone(),
            prompt: prompt.into(),
            attachments: Vec::new(),
            later: crate::LaterMessages::default(),
            history: vec![crate::HistoryMessage::new(crate::HistoryAuthor::Person("ann".into()), "before")].into(),
            session,
            meter: crate::gateway::RunMeter::default(),
        };
        let turn = self.codex.turn(request, TurnChannel { events, commands: received, keeps_raw: false });
        let mut task = JoinSet::new();
        task.spawn(turn);
        CodexTurnHandle { events: heard, commands, task, early: VecDeque::new() }
    }
}

/// The engine's side of a turn.
pub struct CodexTurnHandle {
    pub events: mpsc::Receiver<ProviderEvent>,
    pub commands: mpsc::Sender<TurnCommand>,
    pub task: JoinSet<TurnOutcome>,
    early: VecDeque<ProviderEvent>,
}

impl CodexTurnHandle {
    pub async fn next(&mut self) -> TurnEvent {
        if let Some(reported) = self.early.pop_front() {
            return reported.event;
        }
        tokio::time::timeout(PATIENCE, self.events.recv())
            .await
            .expect("an event arrives in time")
            .expect("the turn is still running")
            .event
    }

    /// Returns the next event that `wanted` accepts, and skips the others.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&TurnEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.next().await) {
                return found;
            }
        }
    }

    pub async fn text(&mut self) -> String {
        self.until(|event| match event {
            TurnEvent::Text { delta, .. } => Some(delta.clone()),
            _ => None,
        })
        .await
    }

    pub async fn session(&mut self) -> String {
        self.until(|event| match event {
            TurnEvent::Session { id } => Some(id.clone()),
            _ => None,
        })
        .await
    }

    pub async fn command(&self, command: TurnCommand) {
        self.commands.send(command).await.unwrap();
    }

    /// Waits for the outcome without a timeout.
    pub async fn end_whenever(mut self) -> TurnOutcome {
        while self.events.recv().await.is_some() {}
        self.task.join_next().await.unwrap().unwrap()
    }

    /// Returns the remaining events and the outcome.
    pub async fn end(mut self) -> (Vec<TurnEvent>, TurnOutcome) {
        let mut rest: Vec<TurnEvent> = self.early.drain(..).map(|reported| reported.event).collect();
        let all = async {
            while let Some(reported) = self.events.recv().await {
                rest.push(reported.event);
            }
            self.task.join_next().await.unwrap().unwrap()
        };
        let outcome = tokio::time::timeout(PATIENCE, all).await.expect("the turn ends");
        (rest, outcome)
    }
}
