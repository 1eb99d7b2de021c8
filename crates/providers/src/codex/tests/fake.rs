//! A Codex without the program: the test reads what it is sent and says what it answers.

use crate::{
    Place, Provider as _, Reported, Session, TurnChannel, TurnCommand, TurnEvent, TurnOutcome, TurnRequest,
    codex::{
        Codex, Config,
        launch::{Launch, LaunchFuture, Launched, Process},
    },
    jsonrpc::far_end::FarEnd,
    program::Program,
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
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet};
use workbench::process::{Ended, Supervisor};

/// Long enough for a loaded machine; no test waits for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn program(command: &str, environment: &[(&str, &str)]) -> Program {
    Program {
        command: command.into(),
        args: Vec::new(),
        pass: Vec::new(),
        share_login: false,
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        supervisor: Supervisor::new(PathBuf::from("keeper")),
    }
}

pub fn place(home: &Path) -> Place {
    let spec = AgentSpec::new(Name::parse("coder").unwrap(), "codex");
    let now = Timestamp::from_millis(0);
    Place {
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: now, updated_at: now },
        workplace: home.join("workplace"),
        home: home.to_owned(),
        skills: Vec::new(),
        mcp_servers: Vec::new(),
    }
}

/// Hands each program that is started to the test.
struct FakeLaunch {
    started: mpsc::Sender<Server>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct FakeProcess {
    running: Arc<AtomicUsize>,
}

impl Drop for FakeProcess {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Process for FakeProcess {
    fn last_words(&self) -> String {
        "thread 'main' panicked".into()
    }

    fn ended(&mut self) -> Pin<Box<dyn Future<Output = Ended> + Send + '_>> {
        Box::pin(async { Ended::Code(101) })
    }

    fn stop(self: Box<Self>) -> Pin<Box<dyn Future<Output = Receipt> + Send>> {
        Box::pin(async move {
            // Ending takes a while; until then it runs.
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(self);
            Receipt { processes: 1, signals: vec!["SIGKILL".into()], millis: 1 }
        })
    }
}

impl Launch for FakeLaunch {
    fn launch(&self, home: &Path) -> LaunchFuture {
        let (started, running, home) = (self.started.clone(), Arc::clone(&self.running), home.to_owned());
        let most = Arc::clone(&self.most);
        Box::pin(async move {
            let (output, input, far_end) = FarEnd::new();
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let process = Box::new(FakeProcess { running });
            started.send(Server { far_end, home, threads: 0, turns: 0 }).await.unwrap();
            Ok(Launched { output, input: Box::new(input), process, api_key: None })
        })
    }
}

/// A program that was started: the other end of its pipes.
pub struct Server {
    pub far_end: FarEnd,
    pub home: PathBuf,
    threads: usize,
    turns: usize,
}

impl Server {
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

    pub async fn greet(mut self) -> Self {
        let hello = self.expect("initialize").await;
        assert_eq!(hello["params"]["capabilities"]["experimentalApi"], true);
        self.answer(&hello, json!({"userAgent": "fake"})).await;
        self.expect("initialized").await;
        let account = self.expect("account/read").await;
        self.answer(&account, json!({"account": {"type": "apiKey"}, "requiresOpenaiAuth": true})).await;
        self
    }

    /// Answers `thread/start`; the thread's name.
    pub async fn start_thread(&mut self) -> String {
        let start = self.expect("thread/start").await;
        self.threads += 1;
        let thread = format!("thread-{}-{}", self.home.file_name().unwrap().to_string_lossy(), self.threads);
        self.answer(&start, json!({"thread": {"id": thread}, "model": "m"})).await;
        thread
    }

    /// Answers `turn/start` and begins the turn; its thread, its name and its prompt.
    pub async fn start_turn(&mut self) -> Running {
        let start = self.expect("turn/start").await;
        let thread = start["params"]["threadId"].as_str().unwrap().to_owned();
        let prompt = start["params"]["input"][0]["text"].as_str().unwrap().to_owned();
        self.turns += 1;
        let turn = format!("turn-{}", self.turns);
        self.answer(&start, json!({"turn": {"id": turn}})).await;
        self.notify("turn/started", json!({"threadId": thread, "turn": {"id": turn}})).await;
        Running { thread, turn, prompt }
    }

    pub async fn item(&mut self, running: &Running, method: &str, item: Value) {
        self.notify(method, json!({"threadId": running.thread, "turnId": running.turn, "item": item})).await;
    }

    pub async fn say(&mut self, running: &Running, item: &str, delta: &str) {
        let params = json!({"threadId": running.thread, "turnId": running.turn, "itemId": item, "delta": delta});
        self.notify("item/agentMessage/delta", params).await;
    }

    pub async fn end(&mut self, running: &Running, status: &str) {
        let turn = json!({"id": running.turn, "status": status, "items": [], "error": null});
        self.notify("turn/completed", json!({"threadId": running.thread, "turn": turn})).await;
    }

    /// A request of its own; the answer.
    pub async fn ask(&mut self, id: u64, method: &str, running: &Running, mut params: Value) {
        params["threadId"] = json!(running.thread);
        params["turnId"] = json!(running.turn);
        self.far_end.send(json!({"id": id, "method": method, "params": params})).await;
    }

    pub async fn result_of(&mut self, id: u64) -> Value {
        let answer = self.far_end.next().await.expect("its input is open");
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    /// Plays the other side of an interrupt.
    pub async fn be_interrupted(&mut self, running: &Running) {
        let interrupt = self.expect("turn/interrupt").await;
        assert_eq!(interrupt["params"], json!({"threadId": running.thread, "turnId": running.turn}));
        self.answer(&interrupt, json!({})).await;
        self.end_interrupted(running).await;
    }

    pub async fn end_interrupted(&mut self, running: &Running) {
        self.end(running, "interrupted").await;
        let clean = self.expect("thread/backgroundTerminals/clean").await;
        assert_eq!(clean["params"], json!({"threadId": running.thread}));
        self.answer(&clean, json!({})).await;
        let list = self.expect("thread/backgroundTerminals/list").await;
        self.answer(&list, json!({"data": []})).await;
    }
}

#[derive(Debug)]
pub struct Running {
    pub thread: String,
    pub turn: String,
    pub prompt: String,
}

pub struct Stage {
    pub codex: Codex,
    started: mpsc::Receiver<Server>,
    pub running: Arc<AtomicUsize>,
    /// The most that ever ran at once.
    pub most: Arc<AtomicUsize>,
}

pub fn stage(instances: usize) -> Stage {
    stage_with(instances, Duration::from_secs(3600))
}

pub fn stage_with(instances: usize, idle: Duration) -> Stage {
    let (told, started) = mpsc::channel(16);
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let launch = FakeLaunch { started: told, running: Arc::clone(&running), most: Arc::clone(&most) };
    let config = Config { program: program("codex", &[]), instances, idle };
    Stage { codex: Codex::with(Box::new(launch), config), started, running, most }
}

impl Stage {
    pub async fn next_server(&mut self) -> Server {
        self.next_raw_server().await.greet().await
    }

    /// One that nobody has answered yet.
    pub async fn next_raw_server(&mut self) -> Server {
        tokio::time::timeout(PATIENCE, self.started.recv()).await.expect("one is started").unwrap()
    }

    pub fn ask(&self, place: &Place, prompt: &str, session: Option<&str>) -> Asking {
        let (events, heard) = mpsc::channel(64);
        let (commands, received) = mpsc::channel(16);
        let session = session.map(|id| Session { id: id.to_owned(), unheard: Vec::new() });
        let request = TurnRequest {
            run_id: RunId::generate(),
            place: place.clone(),
            prompt: prompt.into(),
            history: vec![crate::Spoken::new(crate::Speaker::Person("ann".into()), "before")].into(),
            session,
            memory: crate::Memory::default(),
        };
        let turn = self.codex.turn(request, TurnChannel { events, commands: received });
        let mut task = JoinSet::new();
        task.spawn(turn);
        Asking { heard, commands, task, early: VecDeque::new() }
    }
}

/// A turn as the engine holds it.
pub struct Asking {
    pub heard: mpsc::Receiver<Reported>,
    pub commands: mpsc::Sender<TurnCommand>,
    pub task: JoinSet<TurnOutcome>,
    early: VecDeque<Reported>,
}

impl Asking {
    pub async fn next(&mut self) -> TurnEvent {
        if let Some(reported) = self.early.pop_front() {
            return reported.event;
        }
        tokio::time::timeout(PATIENCE, self.heard.recv()).await.expect("something is said").expect("it goes on").event
    }

    /// The next event that `wanted` takes; what comes before is passed over.
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

    /// How it ends, however long that takes.
    pub async fn end_whenever(mut self) -> TurnOutcome {
        while self.heard.recv().await.is_some() {}
        self.task.join_next().await.unwrap().unwrap()
    }

    /// The rest of what is said, and how it ends.
    pub async fn end(mut self) -> (Vec<TurnEvent>, TurnOutcome) {
        let mut rest: Vec<TurnEvent> = self.early.drain(..).map(|reported| reported.event).collect();
        let all = async {
            while let Some(reported) = self.heard.recv().await {
                rest.push(reported.event);
            }
            self.task.join_next().await.unwrap().unwrap()
        };
        let outcome = tokio::time::timeout(PATIENCE, all).await.expect("it ends");
        (rest, outcome)
    }
}
