//! Test helpers: an engine with its worker, a provider that the test controls, and waits with a deadline.

use domain::{
    actor::Actor,
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    limits::Limits,
    mcp::{McpServerConfig, McpTransport},
    name::Name,
    room::{RoomPolicy, WhenBusy},
    run::{Run, RunStatus},
};
use engine::{
    Engine, EngineConfig, EngineError, Folders, Worker,
    commands::{NewPost, NewRoom, PostResult},
};
use providers::{
    AgentWorkspace, Capabilities, CloseFuture, HistoryAuthor, HistoryMessage, InspectFuture, Inspection, Provider,
    ProviderRegistry, RefusedSetting, ResumableSession, SavedInSession, TurnChannel, TurnCommand, TurnEnd, TurnEvent,
    TurnFuture, TurnOutcome, TurnRequest,
    host_tools::{self, HostTools},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use store::IdempotentRequest;
use testkit::database::{OpenStore, TestDatabase};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use workbench::{
    mcp::{McpClientSettings, McpManager},
    process::Supervisor,
};

/// Longer than any test takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

pub fn me() -> Actor {
    Actor::local()
}

/// A turn that the test controls.
pub struct TestTurn {
    pub request: TurnRequest,
    channel: TurnChannel,
    end: oneshot::Sender<TurnOutcome>,
}

impl TestTurn {
    pub async fn report(&self, event: TurnEvent) {
        within("space for an event", self.channel.events.send(event.into())).await.unwrap();
    }

    pub async fn text(&self, text: &str) {
        self.report(TurnEvent::Text { delta: text.into(), item: None }).await;
    }

    pub async fn session(&self, id: &str) {
        self.report(TurnEvent::Session { id: id.into() }).await;
    }

    /// The history that the provider would get without a session.
    pub async fn history(&self) -> Vec<String> {
        transcript_lines(&self.request.history.read().await.unwrap())
    }

    /// What was said after the message that the turn answers.
    pub fn later(&self) -> Vec<String> {
        transcript_lines(&self.request.later.messages)
    }

    pub async fn next_command(&mut self) -> TurnCommand {
        within("a command", self.channel.commands.recv()).await.unwrap()
    }

    pub fn end(self, end: TurnEnd, kept: SavedInSession) {
        drop(self.channel);
        self.end.send(TurnOutcome { saved: kept, ..TurnOutcome::from_end(end) }).unwrap();
    }

    pub fn complete(self) {
        self.end(TurnEnd::Completed, SavedInSession::PromptAndAnswer);
    }

    /// Reports a session and a text, and completes the turn.
    pub async fn answer(self, session: &str, text: &str) {
        self.session(session).await;
        self.text(text).await;
        self.complete();
    }

    pub fn agent(&self) -> AgentId {
        self.request.agent().id
    }

    pub fn session_to_resume(&self) -> &ResumableSession {
        self.request.session.as_ref().expect("a session to resume")
    }
}

/// A prompt on which the provider panics, and its driver with it.
pub const CRASH: &str = "crash";

/// A provider that passes every turn to the test.
pub struct ManualProvider {
    name: &'static str,
    can: Capabilities,
    turns: mpsc::Sender<TestTurn>,
    pub seen: Arc<ProviderCalls>,
}

#[derive(Default)]
pub struct ProviderCalls {
    pub prepared: Mutex<Vec<AgentWorkspace>>,
    pub inspected: AtomicUsize,
    pub closed: AtomicUsize,
}

impl Provider for ManualProvider {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), RefusedSetting> {
        match spec.model.as_deref() {
            Some("impossible") => Err("this provider has no such model".into()),
            _ => Ok(()),
        }
    }

    fn inspect(&self) -> InspectFuture {
        self.seen.inspected.fetch_add(1, Ordering::SeqCst);
        let program = Some("/somewhere/bin/manual".into());
        Box::pin(async { Inspection::Ready { version: Some("1.2".into()), program } })
    }

    fn prepare(&self, place: AgentWorkspace) {
        self.seen.prepared.lock().unwrap().push(place);
    }

    fn close(&self) -> CloseFuture {
        self.seen.closed.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        assert_ne!(request.prompt, CRASH, "the crash that the test asked for");
        let turns = self.turns.clone();
        Box::pin(async move {
            let (end, ended) = oneshot::channel();
            if turns.send(TestTurn { request, channel, end }).await.is_err() {
                return TurnOutcome::from_end(TurnEnd::Stopped);
            }
            ended.await.unwrap_or_else(|_| TurnOutcome::from_end(TurnEnd::Stopped))
        })
    }
}

/// An engine with its worker and store, without a network server.
pub struct EngineHarness {
    pub engine: Engine,
    pub store: OpenStore,
    pub seen: Arc<ProviderCalls>,
    pub database: TestDatabase,
    turns: mpsc::Receiver<TestTurn>,
    worker: JoinSet<()>,
    cancel: CancellationToken,
}

impl EngineHarness {
    pub async fn new(database: TestDatabase) -> Self {
        Self::with(database, |_| {}).await
    }

    /// With two providers: `p`, which can do everything, and `q`, which cannot be steered.
    pub async fn with(database: TestDatabase, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let store = database.open().await;
        let (sender, turns) = mpsc::channel(16);
        let seen = Arc::new(ProviderCalls::default());
        let provider = |name, steer| {
            let can = Capabilities { resume: true, steer, mcp: true, skills: true, ..Capabilities::default() };
            Arc::new(ManualProvider { name, can, turns: sender.clone(), seen: seen.clone() }) as Arc<dyn Provider>
        };
        let files = McpTransport::Http { url: "http://127.0.0.1:1/mcp".into(), headers: BTreeMap::new() };
        let mut config = EngineConfig {
            concurrency: 8,
            concurrency_per_workspace: 8,
            unfinished_runs_per_workspace: 100,
            erase_after: Duration::from_secs(7 * 24 * 3600),
            workspace_limits: engine::WorkspaceLimits { rooms: 1000, stored_bytes: 1 << 30 },
            lease: Duration::from_secs(1),
            limits: Limits::default(),
            stop_grace: Duration::from_secs(10),
            folders: Folders { data: database.folder().join("data"), shared_workspace: None },
            mcp_servers: BTreeMap::from([("files".to_owned(), Ok(McpServerConfig::new(files)))]),
            mcp_variables: engine::McpVariables::default(),
            host_tools: HostTools::new(host_tools::tools::all()).unwrap(),
            projects: engine::ProjectServices::without_sandboxes(),
        };
        change(&mut config);
        let mcp = McpManager::new(Supervisor::new("none".into()), McpClientSettings::new(database.folder().to_owned()));
        let engine =
            Engine::new(store.clone(), ProviderRegistry::new([provider("p", true), provider("q", false)]), mcp, config);
        let (worker, cancel) = (JoinSet::new(), CancellationToken::new());
        let mut harness = Self { engine, store, seen, database, turns, worker, cancel };
        harness.start().await;
        harness
    }

    pub async fn start(&mut self) {
        let worker = Worker::new(self.engine.clone());
        worker.recover_at_start().await.unwrap();
        self.worker.spawn(worker.run(self.cancel.clone()));
    }

    /// Aborts the worker and all its runs, like a crash.
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
        self.room_with(agents, RoomPolicy::default()).await
    }

    pub async fn room_with(&self, agents: &[&Agent], policy: RoomPolicy) -> RoomId {
        let agents = agents.iter().map(|agent| agent.id).collect();
        let name = Name::parse("A room").unwrap();
        let new = NewRoom { name, agents, project_id: None, policy };
        self.engine.create_room(&me(), new, None).await.unwrap().id
    }

    pub async fn post(&self, room: RoomId, text: &str) -> PostResult {
        self.post_when(room, text, WhenBusy::Enqueue, &[]).await
    }

    pub async fn post_when(&self, room: RoomId, text: &str, when_busy: WhenBusy, mentions: &[AgentId]) -> PostResult {
        self.engine.post_message(&me(), room, post(text, when_busy, mentions), None).await.unwrap()
    }

    /// Posts a message for the answer in progress.
    pub async fn steer(
        &self,
        room: RoomId,
        mentions: &[AgentId],
        attempt: Option<&IdempotentRequest>,
    ) -> Result<PostResult, EngineError> {
        self.engine.post_message(&me(), room, post("left", WhenBusy::Steer, mentions), attempt).await
    }

    /// The next turn of a provider. Reads nothing from the store.
    pub async fn unstored_turn(&mut self) -> TestTurn {
        within("a turn", self.turns.recv()).await.unwrap()
    }

    /// The next turn of a provider, once its start is stored: the provider starts a little earlier.
    pub async fn turn(&mut self) -> TestTurn {
        let turn = self.unstored_turn().await;
        within("its start", async {
            while self.store.run(&me().workspace, turn.request.run_id).await.unwrap().status == RunStatus::Queued {
                tokio::task::yield_now().await;
            }
        })
        .await;
        turn
    }

    /// Posts a message and answers it.
    pub async fn post_and_answer(&mut self, room: RoomId, text: &str, session: &str, answer: &str) {
        let posted = self.post(room, text).await;
        self.turn().await.answer(session, answer).await;
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

pub fn post(text: &str, when_busy: WhenBusy, mentions: &[AgentId]) -> NewPost {
    NewPost { when_busy: Some(when_busy), mentions: mentions.to_vec(), ..NewPost::new(text) }
}

/// `local: hello`, `you: hi`, `Ann: hi`
pub fn transcript_lines(spoken: &[HistoryMessage]) -> Vec<String> {
    let line = |spoken: &HistoryMessage| match &spoken.author {
        HistoryAuthor::ThisAgent => format!("you: {}", spoken.text),
        HistoryAuthor::Person(name) | HistoryAuthor::OtherAgent(name) => format!("{name}: {}", spoken.text),
    };
    spoken.iter().map(line).collect()
}
