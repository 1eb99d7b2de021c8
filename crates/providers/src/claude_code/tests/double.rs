//! A theatre: instead of processes there are pipes, and the test plays the program at their other end.

use crate::{
    History, Place, Provider as _, Reported, Session, TurnChannel, TurnCommand, TurnEvent, TurnOutcome, TurnRequest,
    claude_code::{
        ClaudeCode, Config,
        launch::{Launched, Launcher, Life, Soon},
    },
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
    collections::BTreeMap,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncWriteExt as _, DuplexStream, duplex},
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::timeout,
};
use workbench::process::{Command, Ended, Lines, Supervisor};

/// Long enough for anything that is to happen; the clock of these tests runs ahead when nothing does.
const PATIENCE: Duration = Duration::from_secs(300);

pub struct Theatre {
    pub provider: Arc<ClaudeCode>,
    pub place: Place,
    pub alive: Arc<AtomicUsize>,
    actors: Mutex<mpsc::Receiver<Actor>>,
    _folder: TempDir,
}

/// The program, as played by a test.
pub struct Actor {
    pub command: Command,
    hears: Lines,
    says: DuplexStream,
    messages: u32,
}

struct Stage {
    actors: mpsc::Sender<Actor>,
    alive: Arc<AtomicUsize>,
}

struct PlayedLife(Arc<AtomicUsize>);

/// A turn under way.
pub struct Running {
    pub events: mpsc::Receiver<Reported>,
    pub commands: mpsc::Sender<TurnCommand>,
    pub turn: JoinHandle<TurnOutcome>,
}

impl Theatre {
    pub fn new(pool: usize, spares: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("claude");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (workplace, home) = (folder.path().join("workplace"), folder.path().join("agent"));
        std::fs::create_dir_all(&workplace).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let (sender, actors) = mpsc::channel(16);
        let alive = Arc::new(AtomicUsize::new(0));
        let config = Config {
            program: Program {
                command: program.to_str().unwrap().to_owned(),
                args: Vec::new(),
                pass: Vec::new(),
                share_login: false,
                environment: BTreeMap::new(),
                supervisor: Supervisor::new("unused".into()),
            },
            pool,
            idle: Duration::from_secs(600),
            spares,
        };
        let stage = Stage { actors: sender, alive: Arc::clone(&alive) };
        let place = Place {
            room_id: RoomId::generate(),
            agent: Agent {
                id: AgentId::generate(),
                spec: AgentSpec::new(Name::parse("Ada").unwrap(), "claude_code"),
                created_at: Timestamp::default(),
                updated_at: Timestamp::default(),
            },
            workplace,
            home,
            skills: Vec::new(),
            mcp_servers: Vec::new(),
        };
        let provider = Arc::new(ClaudeCode::with(config, Arc::new(stage)));
        Self { provider, place, alive, actors: Mutex::new(actors), _folder: folder }
    }

    /// The same agent in another room.
    pub fn another_room(&self) -> Place {
        Place { room_id: RoomId::generate(), ..self.place.clone() }
    }

    pub fn request(&self, prompt: &str) -> TurnRequest {
        self.request_in(self.place.clone(), prompt)
    }

    pub fn request_in(&self, place: Place, prompt: &str) -> TurnRequest {
        let history = History::from(Vec::new());
        let memory = crate::Memory::default();
        TurnRequest { run_id: RunId::generate(), place, prompt: prompt.into(), history, session: None, memory }
    }

    /// In the session that every actor says it has.
    pub fn resuming(&self, prompt: &str) -> TurnRequest {
        let session = Some(Session { id: SESSION.into(), unheard: Vec::new() });
        TurnRequest { session, ..self.request(prompt) }
    }

    pub fn begin(&self, request: TurnRequest) -> Running {
        self.begin_with_room_for(1024, request)
    }

    #[expect(clippy::disallowed_methods, reason = "the test ends it")]
    pub fn begin_with_room_for(&self, events: usize, request: TurnRequest) -> Running {
        let (events_in, events) = mpsc::channel(events);
        let (commands, commands_out) = mpsc::channel(16);
        let turn = self.provider.turn(request, TurnChannel { events: events_in, commands: commands_out });
        Running { events, commands, turn: tokio::spawn(turn) }
    }

    /// The next process that is started.
    pub async fn actor(&self) -> Actor {
        timeout(PATIENCE, async { self.actors.lock().await.recv().await }).await.expect("nothing was started").unwrap()
    }

    /// Whether a process was started that no test has looked at.
    pub fn has_started(&self) -> bool {
        self.actors.try_lock().unwrap().try_recv().is_ok()
    }

    pub fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// One turn that goes well, in a process that is started for it; leaves the process idle.
    pub async fn warmed(&self) -> Actor {
        let running = self.begin(self.request("say hello"));
        let mut actor = self.actor().await;
        actor.greet().await;
        let prompt = actor.prompt().await;
        actor.answer(&prompt, "Hello").await;
        assert_eq!(running.outcome().await.end, crate::TurnEnd::Completed);
        actor
    }
}

impl Launcher for Stage {
    fn launch(&self, command: Command) -> Soon<'_, Result<Launched, String>> {
        Box::pin(async {
            let (output, says) = duplex(64 * 1024);
            let (hears, input) = duplex(64 * 1024);
            self.alive.fetch_add(1, Ordering::SeqCst);
            let actor = Actor { command, hears: Lines::new(hears), says, messages: 0 };
            self.actors.send(actor).await.map_err(|_| "the play is over".to_owned())?;
            let life = Box::new(PlayedLife(Arc::clone(&self.alive)));
            Ok(Launched { lines: Lines::new(output), input: Box::new(input), life })
        })
    }
}

impl Life for PlayedLife {
    fn ended(&mut self) -> Soon<'_, Ended> {
        Box::pin(async { Ended::Code(1) })
    }

    fn stop(self: Box<Self>) -> Soon<'static, Receipt> {
        Box::pin(async move { Receipt { processes: 1, signals: vec!["term".into()], millis: 0 } })
    }

    fn end_strays(&self) -> usize {
        0
    }

    fn last_words(&self) -> String {
        "segmentation fault".to_owned()
    }
}

impl Drop for PlayedLife {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Running {
    pub async fn event(&mut self) -> TurnEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("nothing is said").expect("the turn is over").event
    }

    /// The next approval that is asked for.
    pub async fn approval(&mut self) -> (domain::ids::ApprovalId, String, Value, bool) {
        loop {
            if let TurnEvent::Approval { id, name, input, is_question, .. } = self.event().await {
                return (id, name, input, is_question);
            }
        }
    }

    pub async fn tell(&self, command: TurnCommand) {
        self.commands.send(command).await.unwrap();
    }

    pub async fn outcome(self) -> TurnOutcome {
        self.both().await.0
    }

    /// How it ended, and all that was said and not yet looked at.
    pub async fn both(mut self) -> (TurnOutcome, Vec<TurnEvent>) {
        let events = async {
            let mut events = Vec::new();
            while let Some(reported) = self.events.recv().await {
                events.push(reported.event);
            }
            events
        };
        let all = async { tokio::join!(async { self.turn.await.unwrap() }, events) };
        timeout(PATIENCE, all).await.expect("the turn does not end")
    }
}

pub const SESSION: &str = "0d9b0b8e-5f1e-4a53-9a39-5d2b4d1b3e5f";

impl Actor {
    pub async fn hear(&mut self) -> Value {
        let line =
            timeout(PATIENCE, self.hears.next()).await.expect("nothing is heard").unwrap().expect("the input ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Whether we were let go.
    pub async fn is_let_go(&mut self) -> bool {
        matches!(timeout(PATIENCE, self.hears.next()).await, Ok(Ok(None)))
    }

    pub async fn say(&mut self, value: Value) {
        self.say_line(&value.to_string()).await;
    }

    pub async fn say_line(&mut self, line: &str) {
        self.says.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn say_bytes(&mut self, bytes: &[u8]) {
        // It may be cut short: whoever listens may have heard enough.
        let _cut_short = self.says.write_all(bytes).await.is_err();
    }

    /// Answers the first request.
    pub async fn greet(&mut self) -> Value {
        let hello = self.hear().await;
        assert_eq!(hello["request"]["subtype"], "initialize");
        self.agree(&hello).await;
        hello
    }

    /// Says yes to a request.
    pub async fn agree(&mut self, request: &Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": {}});
        self.say(json!({"type": "control_response", "response": response})).await;
    }

    /// Takes the next prompt and begins a turn.
    pub async fn prompt(&mut self) -> Value {
        let prompt = self.hear().await;
        assert_eq!(prompt["type"], "user", "{prompt}");
        for state in ["queued", "started"] {
            let line = json!({"type": "command_lifecycle", "command_uuid": prompt["uuid"], "state": state});
            self.say(line).await;
        }
        self.say(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
        prompt
    }

    /// Streams words under a new message id.
    pub async fn stream(&mut self, words: &[&str]) -> String {
        self.messages += 1;
        let id = format!("msg_{}", self.messages);
        let usage = json!({"input_tokens": 10, "output_tokens": 1});
        let message = json!({"id": id, "model": "m", "usage": usage});
        self.say(json!({"type": "stream_event", "event": {"type": "message_start", "message": message}})).await;
        for word in words {
            let delta = json!({"type": "text_delta", "text": word});
            let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            self.say(json!({"type": "stream_event", "event": event})).await;
        }
        id
    }

    pub async fn result(&mut self, prompt: &Value, more: Value) {
        let mut result = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "",
            "user_message_uuids": [prompt["uuid"]],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.say(result).await;
    }

    /// A whole answer.
    pub async fn answer(&mut self, prompt: &Value, text: &str) {
        let id = self.stream(&[text]).await;
        let content = json!([{"type": "text", "text": text}]);
        self.say(json!({"type": "assistant", "message": {"id": id, "model": "m", "content": content}})).await;
        self.result(prompt, json!({"result": text})).await;
    }

    /// Asks for a tool.
    pub async fn ask(&mut self, tool: &str, input: Value) {
        let request = json!({
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "toolu_1",
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        });
        self.request("ask-1", request).await;
    }

    pub async fn request(&mut self, id: &str, request: Value) {
        self.say(json!({"type": "control_request", "request_id": id, "request": request})).await;
    }

    /// The answer to a request of ours.
    pub async fn reply(&mut self, id: &str) -> Value {
        let reply = self.hear().await;
        assert_eq!(reply["response"]["request_id"], id, "{reply}");
        reply["response"].clone()
    }

    /// Obeys the next request, which is an interrupt, and ends the turn as the real one does.
    pub async fn be_interrupted(&mut self, prompt: &Value) {
        let interrupt = self.hear().await;
        assert_eq!(interrupt["request"]["subtype"], "interrupt", "{interrupt}");
        self.agree(&interrupt).await;
        self.stop(prompt).await;
    }

    /// Ends the turn as one that was interrupted.
    pub async fn stop(&mut self, prompt: &Value) {
        let content = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
        self.say(json!({"type": "user", "message": {"role": "user", "content": content}})).await;
        let zero = json!({"input_tokens": 0, "output_tokens": 0});
        let result = json!({
            "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
            "errors": ["[ede_diagnostic]"], "usage": zero, "model_usage_since_last_result": {},
        });
        self.result(prompt, result).await;
    }
}
