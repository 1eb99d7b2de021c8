//! What the cases are built from: an engine with its worker, a puppet for a provider, and waiting with a deadline.

use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    limits::Limits,
    mcp::{ServerConfig, Transport},
    name::Name,
    owner::Owner,
    room::{RoomPolicy, WhenBusy},
    run::{Run, RunStatus},
};
use engine::{
    Config, Engine, Error, Folders, Worker,
    commands::{NewRoom, Post, Posted},
};
use providers::{
    Capabilities, CloseFuture, InspectFuture, Inspection, Kept, Place, Provider, Registry, Session, Speaker, Spoken,
    TurnChannel, TurnCommand, TurnEnd, TurnEvent, TurnFuture, TurnOutcome, TurnRequest,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use store::Attempt;
use testkit::database::{OpenStore, TestDatabase};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use workbench::{
    mcp::{Manager, Settings},
    process::Supervisor,
};

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

pub fn me() -> Owner {
    Owner::local()
}

/// A turn that the test plays.
pub struct Turn {
    pub request: TurnRequest,
    channel: TurnChannel,
    end: oneshot::Sender<TurnOutcome>,
}

impl Turn {
    pub async fn says(&self, event: TurnEvent) {
        within("room for an event", self.channel.events.send(event.into())).await.unwrap();
    }

    pub async fn text(&self, text: &str) {
        self.says(TurnEvent::Text { delta: text.into(), item: None }).await;
    }

    pub async fn session(&self, id: &str) {
        self.says(TurnEvent::Session { id: id.into() }).await;
    }

    /// What it would be told if it had no session.
    pub async fn history(&self) -> Vec<String> {
        told(&self.request.history.read().await.unwrap())
    }

    pub async fn told(&mut self) -> TurnCommand {
        within("a command", self.channel.commands.recv()).await.unwrap()
    }

    pub fn ends(self, end: TurnEnd, kept: Kept) {
        drop(self.channel);
        self.end.send(TurnOutcome { kept, ..TurnOutcome::of(end) }).unwrap();
    }

    pub fn completes(self) {
        self.ends(TurnEnd::Completed, Kept::PromptAndAnswer);
    }

    /// Says one thing in one session, and is done.
    pub async fn answers(self, session: &str, text: &str) {
        self.session(session).await;
        self.text(text).await;
        self.completes();
    }

    pub fn agent(&self) -> AgentId {
        self.request.agent().id
    }

    pub fn resumed(&self) -> &Session {
        self.request.session.as_ref().expect("a session to go on with")
    }
}

/// A prompt on which a puppet takes its driver with it.
pub const CRASH: &str = "crash";

/// Whose every word the test says.
pub struct Puppet {
    name: &'static str,
    can: Capabilities,
    turns: mpsc::Sender<Turn>,
    pub seen: Arc<Seen>,
}

#[derive(Default)]
pub struct Seen {
    pub prepared: Mutex<Vec<Place>>,
    pub inspected: AtomicUsize,
    pub closed: AtomicUsize,
}

impl Provider for Puppet {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), String> {
        match spec.model.as_deref() {
            Some("impossible") => Err("a puppet has no such model".into()),
            _ => Ok(()),
        }
    }

    fn inspect(&self) -> InspectFuture {
        self.seen.inspected.fetch_add(1, Ordering::SeqCst);
        let program = Some("/somewhere/bin/puppet".into());
        Box::pin(async { Inspection::Ready { version: Some("1.2".into()), program } })
    }

    fn prepare(&self, coming: Place) {
        self.seen.prepared.lock().unwrap().push(coming);
    }

    fn close(&self) -> CloseFuture {
        self.seen.closed.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        assert_ne!(request.prompt, CRASH, "crashed as it was told to");
        let turns = self.turns.clone();
        Box::pin(async move {
            let (end, ended) = oneshot::channel();
            if turns.send(Turn { request, channel, end }).await.is_err() {
                return TurnOutcome::of(TurnEnd::Stopped);
            }
            ended.await.unwrap_or_else(|_| TurnOutcome::of(TurnEnd::Stopped))
        })
    }
}

/// A server without doors.
pub struct Stage {
    pub engine: Engine,
    pub store: OpenStore,
    pub seen: Arc<Seen>,
    pub database: TestDatabase,
    turns: mpsc::Receiver<Turn>,
    worker: JoinSet<()>,
    cancel: CancellationToken,
}

impl Stage {
    pub async fn new(database: TestDatabase) -> Self {
        Self::with(database, |_| {}).await
    }

    /// With two puppets: `p`, which can do everything, and `q`, which cannot be steered.
    pub async fn with(database: TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        let store = database.open().await;
        let (sender, turns) = mpsc::channel(16);
        let seen = Arc::new(Seen::default());
        let puppet = |name, steer| {
            let can = Capabilities { resume: true, steer, mcp: true, skills: true, ..Capabilities::default() };
            Arc::new(Puppet { name, can, turns: sender.clone(), seen: seen.clone() }) as Arc<dyn Provider>
        };
        let files = Transport::Http { url: "http://127.0.0.1:1/mcp".into(), headers: BTreeMap::new() };
        let mut config = Config {
            concurrency: 8,
            lease: Duration::from_secs(1),
            limits: Limits::default(),
            stop_grace: Duration::from_secs(10),
            folders: Folders { data: database.folder().join("data"), workspace: None },
            mcp_servers: BTreeMap::from([("files".to_owned(), Ok(ServerConfig::new(files)))]),
            mcp_variables: engine::Variables::default(),
        };
        change(&mut config);
        let mcp = Manager::new(Supervisor::new("none".into()), Settings::new(database.folder().to_owned()));
        let engine = Engine::new(store.clone(), Registry::new([puppet("p", true), puppet("q", false)]), mcp, config);
        let (worker, cancel) = (JoinSet::new(), CancellationToken::new());
        let mut stage = Self { engine, store, seen, database, turns, worker, cancel };
        stage.start().await;
        stage
    }

    pub async fn start(&mut self) {
        let worker = Worker::new(self.engine.clone());
        worker.recover_at_start().await.unwrap();
        self.worker.spawn(worker.run(self.cancel.clone()));
    }

    /// The worker and everything it runs are gone from one moment to the next.
    pub async fn crash(&mut self) {
        self.worker.shutdown().await;
    }

    pub async fn agent(&self, name: &str, provider: &str) -> Agent {
        self.agent_of(AgentSpec::new(Name::parse(name).unwrap(), provider)).await
    }

    pub async fn agent_of(&self, spec: AgentSpec) -> Agent {
        self.store.create_agent(&me(), spec, None).await.unwrap()
    }

    pub async fn room(&self, agents: &[&Agent]) -> RoomId {
        let agents = agents.iter().map(|agent| agent.id).collect();
        let name = Name::parse("A room").unwrap();
        let new = NewRoom { name, agents, project_id: None, policy: RoomPolicy::default() };
        self.engine.create_room(&me(), new, None).await.unwrap().id
    }

    pub async fn post(&self, room: RoomId, text: &str) -> Posted {
        self.post_when(room, text, WhenBusy::Enqueue, &[]).await
    }

    pub async fn post_when(&self, room: RoomId, text: &str, when_busy: WhenBusy, mentions: &[AgentId]) -> Posted {
        self.engine.post(&me(), room, post(text, when_busy, mentions), None).await.unwrap()
    }

    /// Posts a message for the answer under way.
    pub async fn steer(&self, room: RoomId, mentions: &[AgentId], attempt: Option<&Attempt>) -> Result<Posted, Error> {
        self.engine.post(&me(), room, post("left", WhenBusy::Steer, mentions), attempt).await
    }

    /// The next turn that a puppet is asked to take, when its start is stored: a provider begins a little before that.
    pub async fn turn(&mut self) -> Turn {
        let turn = within("a turn", self.turns.recv()).await.unwrap();
        within("its start", async {
            while self.store.run(&me(), turn.request.run_id).await.unwrap().status == RunStatus::Queued {
                tokio::task::yield_now().await;
            }
        })
        .await;
        turn
    }

    /// Posts a message and answers it.
    pub async fn talk(&mut self, room: RoomId, text: &str, session: &str, answer: &str) {
        let posted = self.post(room, text).await;
        self.turn().await.answers(session, answer).await;
        self.ended(posted.runs[0].id).await;
    }

    pub async fn ended(&self, run: RunId) -> Run {
        self.engine.wait_for_end(&me(), run, DEADLINE).await.unwrap()
    }

    pub async fn stop(mut self) {
        self.cancel.cancel();
        within("the worker's end", async { while self.worker.join_next().await.is_some() {} }).await;
        self.engine.close().await;
    }
}

pub fn post(text: &str, when_busy: WhenBusy, mentions: &[AgentId]) -> Post {
    Post { text: text.into(), when_busy: Some(when_busy), attachments: Vec::new(), mentions: mentions.to_vec() }
}

/// `local: hello`, `you: hi`, `Ann: hi`
pub fn told(spoken: &[Spoken]) -> Vec<String> {
    let line = |spoken: &Spoken| match &spoken.speaker {
        Speaker::Itself => format!("you: {}", spoken.text),
        Speaker::Person(name) | Speaker::OtherAgent(name) => format!("{name}: {}", spoken.text),
    };
    spoken.iter().map(line).collect()
}
