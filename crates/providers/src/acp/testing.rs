//! Shared test helpers: an agent workspace, and a harness in which the test acts as the agent.

use super::{
    gemini::WorkspaceOverrides,
    preset::{Preset, SessionLoadPolicy},
    process::{AcpLaunchSettings, AcpLauncher, AcpProcess as Running},
    turn::{AcpShared, turn},
};
use crate::{
    AgentWorkspace, HistoryAuthor, HistoryMessage, ProviderEvent, ResumableSession, TurnChannel, TurnCommand,
    TurnEvent, TurnOutcome, TurnRequest,
    agent_tokens::{AgentTokenScope, AgentTokens, HostToolRequest, HostToolsAccess},
    crash_breaker::CrashBreaker,
    fake_launcher::{self, FakeEnd, FakeProcessCount},
    jsonrpc::fake_peer::FakeRpcPeer,
    pool::{ConversationKey, PoolLimits, ProcessPool, SlotRequest},
    program::AgentProgram,
};
use domain::{
    agent::{Agent, AgentSpec},
    event::Decision,
    ids::{AgentId, ApprovalId, RoomId, RunId},
    name::Name,
    run::Receipt,
    time::Timestamp,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet};
use workbench::process::{ProcessSpec, ProgramExit, Supervisor};

/// An agent workspace with its folders in `folder`.
pub fn workspace(folder: &Path) -> AgentWorkspace {
    let (workplace, home) = (folder.join("workplace"), folder.join("home"));
    fs::create_dir_all(&workplace).unwrap();
    fs::create_dir_all(&home).unwrap();
    let (spec, created) = (AgentSpec::new(Name::parse("ann").unwrap(), "gemini"), Timestamp::from_millis(0));
    AgentWorkspace {
        owner: domain::owner::Owner::local(),
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: created, updated_at: created },
        folder: workplace.clone(),
        space: std::sync::Arc::new(domain::project::ProjectSpace::scratch(
            domain::owner::Owner::local(),
            RoomId::generate(),
            workplace,
        )),
        home,
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

pub fn program(command: &str) -> AgentProgram {
    AgentProgram {
        command: command.into(),
        args: Vec::new(),
        allowed_variables: Vec::new(),
        share_login: false,
        environment: BTreeMap::new(),
        launcher: Arc::new(Supervisor::new("keeper".into())),
        gateway: crate::gateway::ModelGateway::default(),
    }
}

/// An endpoint without a server; tests use its tokens directly.
pub fn endpoint() -> HostToolsAccess {
    HostToolsAccess {
        address: ([127, 0, 0, 1], 7878).into(),
        program: "greenroom".into(),
        tokens: AgentTokens::default(),
    }
}

/// An agent without peculiarities.
pub fn custom_preset() -> Preset {
    Preset {
        load: SessionLoadPolicy::WhenSupported,
        ..Preset::custom("tame", "there-is-no-such-program", &["--acp".into()])
    }
}

/// A turn, with the fake agent at the other side.
pub struct AcpHarness {
    pub shared: Arc<AcpShared>,
    pub request: TurnRequest,
    pub agent: FakeRpcPeer,
    pub events: mpsc::Receiver<ProviderEvent>,
    pub commands: mpsc::Sender<TurnCommand>,
    turns: JoinSet<TurnOutcome>,
    _folder: TempDir,
}

impl AcpHarness {
    pub fn new(preset: Preset) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let request = TurnRequest {
            run_id: RunId::generate(),
            workspace: workspace(folder.path()),
            prompt: "hello".into(),
            attachments: Vec::new(),
            later: crate::LaterMessages::default(),
            history: vec![HistoryMessage::new(HistoryAuthor::Person("bea".into()), "earlier")].into(),
            session: None,
            meter: crate::gateway::RunMeter::default(),
        };
        let launcher = AcpLauncher {
            program: program(&preset.command),
            preset,
            host_tools_endpoint: endpoint(),
            can_steer: AtomicBool::new(false),
        };
        let pool = ProcessPool::new(PoolLimits { slots: 2, idle_timeout: Duration::from_secs(600), spares: 1 });
        let shared = Arc::new(AcpShared { launcher, pool, crash_breaker: CrashBreaker::new("tame") });
        let (_, _, agent) = FakeRpcPeer::new();
        let (events, commands) = (mpsc::channel(1).1, mpsc::channel(1).0);
        Self { shared, request, agent, events, commands, turns: JoinSet::new(), _folder: folder }
    }

    /// Provides an idle agent and starts the turn.
    pub async fn begin(&mut self) {
        self.begin_with(|_| {}).await;
    }

    /// Like `begin`, with a modified agent.
    pub async fn begin_with(&mut self, change: impl FnOnce(&mut Running)) {
        let spec = ProcessSpec {
            program: "tame".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            folder: self.request.workspace.folder.clone(),
            sandbox: None,
        };
        let end = FakeEnd { exit: ProgramExit::Unknown, stderr: "", stop: (Duration::ZERO, Receipt::default()) };
        let (launched, agent) = fake_launcher::start(spec, &end, &FakeProcessCount::default());
        self.agent = FakeRpcPeer::of(agent);
        let made_for = AcpLaunchSettings::new(
            &self.shared.launcher.preset,
            &self.request.workspace,
            WorkspaceOverrides::default(),
        );
        let tokens = &self.shared.launcher.host_tools_endpoint.tokens;
        let token = tokens.issue(&self.request.workspace, &[AgentTokenScope::HostTools]).unwrap();
        let mut running = Running::new(launched, made_for, token);
        change(&mut running);
        let Some(SlotRequest::Granted(slot)) = self.shared.pool.acquire(ConversationKey::of(&self.request.workspace))
        else {
            panic!("no free slot")
        };
        slot.put_back(running).await;
        self.begin_next(64);
    }

    /// Starts the next turn with the current agent.
    pub fn begin_next(&mut self, capacity: usize) {
        let (events, receiver) = mpsc::channel(capacity);
        let (sender, commands) = mpsc::channel(4);
        (self.events, self.commands) = (receiver, sender);
        self.turns.spawn(turn(
            self.shared.clone(),
            self.request.clone(),
            TurnChannel { events, commands, keeps_raw: false },
        ));
    }

    /// Answers the next request, which must have this method.
    pub async fn answer(&mut self, method: &str, result: Value) -> Value {
        let message = self.agent.expect(method).await;
        self.agent.send(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
        message["params"].clone()
    }

    pub async fn refuse(&mut self, method: &str, code: i64, message: &str) {
        let request = self.agent.expect(method).await;
        let error = json!({"code": code, "message": message});
        self.agent.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    pub async fn accept_initialize(&mut self, load: bool) {
        self.answer("initialize", json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": load}})).await;
    }

    /// As `accept_session`, of an agent that takes messages during a prompt.
    pub async fn accept_steerable_session(&mut self) {
        let extension = json!({"steering": {"supported": true}});
        self.answer("initialize", json!({"protocolVersion": 1, "agentCapabilities": {}, "_meta": extension})).await;
        self.answer("session/new", json!({"sessionId": "s1"})).await;
    }

    /// Accepts the initialization and creates a session; the prompt comes next.
    pub async fn accept_session(&mut self) -> Value {
        self.accept_initialize(true).await;
        self.answer("session/new", json!({"sessionId": "s1"})).await
    }

    /// A request to the host tools with this token.
    pub fn call(&self, secret: &str) -> HostToolRequest {
        self.shared.launcher.host_tools_endpoint.tokens.find(secret.as_bytes()).unwrap().begin_request("1").unwrap()
    }

    /// Accepts the prompt. Returns its id and its text.
    pub async fn accept_prompt(&mut self) -> (Value, String) {
        let prompt = self.agent.expect("session/prompt").await;
        assert_eq!(prompt["params"]["sessionId"].as_str(), Some("s1"));
        (prompt["id"].clone(), prompt["params"]["prompt"][0]["text"].as_str().unwrap().to_owned())
    }

    pub async fn update(&mut self, update: Value) {
        let params = json!({"sessionId": "s1", "update": update});
        self.agent.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params})).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})).await;
    }

    pub async fn ask_permission(&mut self, id: u64, call: &str) {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"},
            {"optionId": "yes", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"},
        ]);
        let call = json!({"toolCallId": call, "kind": "execute", "title": "ls", "rawInput": {"command": "ls"}});
        let params = json!({"sessionId": "s1", "options": options, "toolCall": call});
        let method = "session/request_permission";
        self.agent.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    pub async fn end(&mut self, prompt: &Value, stop_reason: &str) {
        self.agent.send(json!({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": stop_reason}})).await;
    }

    pub async fn next_event(&mut self) -> TurnEvent {
        self.events.recv().await.expect("the turn is still running").event
    }

    /// Skips events until the next approval.
    pub async fn approval(&mut self) -> (ApprovalId, TurnEvent) {
        loop {
            let event = self.next_event().await;
            if let TurnEvent::Approval { id, .. } = event {
                return (id, event);
            }
        }
    }

    pub async fn decide(&self, approval: ApprovalId, decision: Decision, input: Option<Value>) {
        self.commands.send(TurnCommand::ResolveApproval { approval, decision, input }).await.unwrap();
    }

    /// Returns the remaining events and the outcome.
    pub async fn outcome(&mut self) -> (Vec<TurnEvent>, TurnOutcome) {
        let mut events = Vec::new();
        while let Some(reported) = self.events.recv().await {
            events.push(reported.event);
        }
        (events, self.wait_for_outcome().await)
    }

    pub async fn wait_for_outcome(&mut self) -> TurnOutcome {
        self.turns.join_next().await.unwrap().unwrap()
    }

    /// Sets the session for the next turn, like the engine.
    pub fn remember(&mut self, id: &str) {
        let unheard = vec![HistoryMessage::new(HistoryAuthor::Person("cem".into()), "meanwhile")];
        self.request.session = Some(ResumableSession { id: id.into(), missed: unheard });
    }
}
