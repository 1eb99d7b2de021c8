//! What the tests of this folder share: a place, and a stage on which an agent is played by the test itself.

use super::{
    agent::{Agent as Running, MadeFor, Maker},
    gemini::Surroundings,
    preset::{Load, Preset},
    turn::{Shared, key, turn},
};
use crate::{
    Place, Reported, Session, Speaker, Spoken, TurnChannel, TurnCommand, TurnEvent, TurnOutcome, TurnRequest,
    crashes::Crashes,
    host_tools::pass::{Call, Door, Passes},
    jsonrpc::far_end::FarEnd,
    pool::{Asked, Limits, Pool},
    program::Program,
};
use domain::{
    agent::{Agent, AgentSpec},
    event::Decision,
    ids::{AgentId, ApprovalId, RoomId, RunId},
    name::Name,
    time::Timestamp,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet};
use workbench::process::Supervisor;

/// A place whose folders lie in `folder`.
pub fn place(folder: &Path) -> Place {
    let (workplace, home) = (folder.join("workplace"), folder.join("home"));
    fs::create_dir_all(&workplace).unwrap();
    fs::create_dir_all(&home).unwrap();
    let (spec, born) = (AgentSpec::new(Name::parse("ann").unwrap(), "gemini"), Timestamp::from_millis(0));
    Place {
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: born, updated_at: born },
        workplace,
        home,
        skills: Vec::new(),
        mcp_servers: Vec::new(),
    }
}

pub fn program(command: &str) -> Program {
    Program {
        command: command.into(),
        args: Vec::new(),
        pass: Vec::new(),
        share_login: false,
        environment: BTreeMap::new(),
        supervisor: Supervisor::new("keeper".into()),
    }
}

/// A door that nobody serves; whoever has its passes can stand in for it.
pub fn door() -> Door {
    Door { address: ([127, 0, 0, 1], 7878).into(), program: "greenroom".into(), passes: Passes::default() }
}

/// An agent that does as the protocol says.
pub fn tame() -> Preset {
    Preset { load: Load::Declared, ..Preset::custom("tame", "there-is-no-such-program", &["--acp".into()]) }
}

/// A turn, and the other side of it.
pub struct Stage {
    pub shared: Arc<Shared>,
    pub request: TurnRequest,
    pub agent: FarEnd,
    pub events: mpsc::Receiver<Reported>,
    pub commands: mpsc::Sender<TurnCommand>,
    turns: JoinSet<TurnOutcome>,
    _folder: TempDir,
}

impl Stage {
    pub fn new(preset: Preset) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let request = TurnRequest {
            run_id: RunId::generate(),
            place: place(folder.path()),
            prompt: "hello".into(),
            history: vec![Spoken::new(Speaker::Person("bea".into()), "earlier")].into(),
            session: None,
            memory: crate::Memory::default(),
        };
        let maker = Maker { program: program(&preset.command), preset, door: door() };
        let pool = Pool::new(Limits { places: 2, idle: Duration::from_secs(600), spares: 1 });
        let shared = Arc::new(Shared { maker, pool, crashes: Crashes::new("tame") });
        let (_, _, agent) = FarEnd::new();
        let (events, commands) = (mpsc::channel(1).1, mpsc::channel(1).0);
        Self { shared, request, agent, events, commands, turns: JoinSet::new(), _folder: folder }
    }

    /// An agent is there, and the turn begins.
    pub async fn begin(&mut self) {
        self.begin_with(|_| {}).await;
    }

    /// The same with another one.
    pub async fn begin_with(&mut self, change: impl FnOnce(&mut Running)) {
        let (output, input, agent) = FarEnd::new();
        self.agent = agent;
        let made_for = MadeFor::new(&self.shared.maker.preset, &self.request.place, Surroundings::default());
        let pass = self.shared.maker.door.passes.issue().unwrap();
        let mut running = Running::over(output, input, None, made_for, pass);
        change(&mut running);
        let Some(Asked::Granted(place)) = self.shared.pool.ask(key(&self.request.place)) else { panic!("no place") };
        place.keep(running).await;
        self.again(64);
    }

    /// The next turn, with whatever agent is there.
    pub fn again(&mut self, room_for: usize) {
        let (events, receiver) = mpsc::channel(room_for);
        let (sender, commands) = mpsc::channel(4);
        (self.events, self.commands) = (receiver, sender);
        self.turns.spawn(turn(self.shared.clone(), self.request.clone(), TurnChannel { events, commands }));
    }

    /// Answers the request that comes next, which must be this one.
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

    pub async fn greeted(&mut self, load: bool) {
        self.answer("initialize", json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": load}})).await;
    }

    /// Greets it and makes a session; the prompt is the next to come.
    pub async fn opened(&mut self) -> Value {
        self.greeted(true).await;
        self.answer("session/new", json!({"sessionId": "s1"})).await
    }

    /// A request that comes to the door with this secret.
    pub fn call(&self, secret: &str) -> Call {
        self.shared.maker.door.passes.find(secret.as_bytes()).unwrap().begin("1").unwrap()
    }

    /// Takes the prompt; its id and its text.
    pub async fn prompted(&mut self) -> (Value, String) {
        let prompt = self.agent.expect("session/prompt").await;
        assert_eq!(prompt["params"]["sessionId"].as_str(), Some("s1"));
        (prompt["id"].clone(), prompt["params"]["prompt"][0]["text"].as_str().unwrap().to_owned())
    }

    pub async fn update(&mut self, update: Value) {
        let params = json!({"sessionId": "s1", "update": update});
        self.agent.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params})).await;
    }

    pub async fn say(&mut self, text: &str) {
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

    pub async fn next(&mut self) -> TurnEvent {
        self.events.recv().await.expect("there is more to tell").event
    }

    /// Events up to the next approval.
    pub async fn approval(&mut self) -> (ApprovalId, TurnEvent) {
        loop {
            let event = self.next().await;
            if let TurnEvent::Approval { id, .. } = event {
                return (id, event);
            }
        }
    }

    pub async fn decide(&self, approval: ApprovalId, decision: Decision, input: Option<Value>) {
        self.commands.send(TurnCommand::Answer { approval, decision, input }).await.unwrap();
    }

    /// All further events, and the end.
    pub async fn outcome(&mut self) -> (Vec<TurnEvent>, TurnOutcome) {
        let mut told = Vec::new();
        while let Some(reported) = self.events.recv().await {
            told.push(reported.event);
        }
        (told, self.ended().await)
    }

    pub async fn ended(&mut self) -> TurnOutcome {
        self.turns.join_next().await.unwrap().unwrap()
    }

    /// As the engine would, after a turn that made this session.
    pub fn remember(&mut self, id: &str) {
        let unheard = vec![Spoken::new(Speaker::Person("cem".into()), "meanwhile")];
        self.request.session = Some(Session { id: id.into(), unheard });
    }
}
