//! A test harness with pipes instead of processes: the test acts as the program at the other end.

use crate::{
    AgentWorkspace, Provider as _, ProviderEvent, ResumableSession, TurnChannel, TurnCommand, TurnEvent, TurnHistory,
    TurnOutcome, TurnRequest,
    claude_code::{ClaudeCodeConfig, ClaudeCodeProvider},
    fake_launcher::{FakeEnd, FakeLauncher, FakeProcessCount, FakeProgram, program_file},
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
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncWriteExt as _, DuplexStream},
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::timeout,
};
use workbench::process::{OutputLines, ProcessSpec, ProgramExit};

/// Long enough for any step; the paused clock advances when every task is idle.
const PATIENCE: Duration = Duration::from_secs(300);

pub struct ClaudeHarness {
    pub provider: Arc<ClaudeCodeProvider>,
    pub workspace: AgentWorkspace,
    alive: FakeProcessCount,
    started: Mutex<mpsc::Receiver<FakeProgram>>,
    _folder: TempDir,
}

/// A fake Claude Code process, controlled by the test.
pub struct FakeClaudeProcess {
    pub command: ProcessSpec,
    input: OutputLines,
    output: DuplexStream,
    messages: u32,
}

/// A running turn.
pub struct RunningClaudeTurn {
    pub events: mpsc::Receiver<ProviderEvent>,
    pub commands: mpsc::Sender<TurnCommand>,
    pub turn: JoinHandle<TurnOutcome>,
}

impl ClaudeHarness {
    pub fn new(pool: usize, spares: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (workplace, home) = (folder.path().join("workplace"), folder.path().join("agent"));
        std::fs::create_dir_all(&workplace).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let receipt = Receipt { processes: 1, signals: vec!["term".into()], millis: 0 };
        let (launcher, started, alive) = FakeLauncher::new(FakeEnd {
            exit: ProgramExit::Code(1),
            stderr: "segmentation fault",
            stop: (Duration::ZERO, receipt),
        });
        let config = ClaudeCodeConfig {
            program: AgentProgram {
                command: program_file(folder.path(), "claude"),
                args: Vec::new(),
                allowed_variables: Vec::new(),
                share_login: false,
                environment: BTreeMap::new(),
                launcher: Arc::new(launcher),
                gateway: crate::gateway::ModelGateway::default(),
            },
            pool,
            idle: Duration::from_secs(600),
            spares,
        };
        let workspace = AgentWorkspace {
            owner: domain::owner::Owner::local(),
            room_id: RoomId::generate(),
            agent: Agent {
                id: AgentId::generate(),
                spec: AgentSpec::new(Name::parse("Ada").unwrap(), "claude_code"),
                created_at: Timestamp::default(),
                updated_at: Timestamp::default(),
            },
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
        };
        let provider = Arc::new(ClaudeCodeProvider::new(config));
        Self { provider, workspace, alive, started: Mutex::new(started), _folder: folder }
    }

    /// The same agent in another room.
    pub fn another_room(&self) -> AgentWorkspace {
        AgentWorkspace { room_id: RoomId::generate(), ..self.workspace.clone() }
    }

    pub fn request(&self, prompt: &str) -> TurnRequest {
        self.request_in(self.workspace.clone(), prompt)
    }

    pub fn request_in(&self, workspace: AgentWorkspace, prompt: &str) -> TurnRequest {
        let history = TurnHistory::from(Vec::new());
        TurnRequest {
            run_id: RunId::generate(),
            workspace,
            prompt: prompt.into(),
            attachments: Vec::new(),
            later: crate::LaterMessages::default(),
            history,
            session: None,
            meter: crate::gateway::RunMeter::default(),
        }
    }

    /// A request that resumes the session of the fake process.
    pub fn resuming(&self, prompt: &str) -> TurnRequest {
        let session = Some(ResumableSession { id: SESSION.into(), missed: Vec::new() });
        TurnRequest { session, ..self.request(prompt) }
    }

    pub fn begin(&self, request: TurnRequest) -> RunningClaudeTurn {
        self.begin_with_capacity(1024, request)
    }

    #[expect(clippy::disallowed_methods, reason = "the test ends it")]
    pub fn begin_with_capacity(&self, events: usize, request: TurnRequest) -> RunningClaudeTurn {
        let (events_in, events) = mpsc::channel(events);
        let (commands, commands_out) = mpsc::channel(16);
        let turn =
            self.provider.turn(request, TurnChannel { events: events_in, commands: commands_out, keeps_raw: false });
        RunningClaudeTurn { events, commands, turn: tokio::spawn(turn) }
    }

    /// Returns the next process that is started.
    pub async fn next_process(&self) -> FakeClaudeProcess {
        let started = timeout(PATIENCE, async { self.started.lock().await.recv().await });
        let FakeProgram { spec, stdin, stdout } = started.await.expect("a process is started").unwrap();
        FakeClaudeProcess { command: spec, input: stdin, output: stdout, messages: 0 }
    }

    /// Whether a process was started that the test has not taken yet.
    pub fn has_started(&self) -> bool {
        self.started.try_lock().unwrap().try_recv().is_ok()
    }

    pub fn alive(&self) -> usize {
        self.alive.running()
    }

    /// Runs one successful turn in a new process, and leaves the process idle.
    pub async fn run_first_turn(&self) -> FakeClaudeProcess {
        let running = self.begin(self.request("say hello"));
        let mut claude = self.next_process().await;
        claude.accept_initialize().await;
        let prompt = claude.accept_prompt().await;
        claude.send_answer(&prompt, "Hello").await;
        assert_eq!(running.outcome().await.end, crate::TurnEnd::Completed);
        claude
    }
}

impl RunningClaudeTurn {
    pub async fn next_event(&mut self) -> TurnEvent {
        timeout(PATIENCE, self.events.recv())
            .await
            .expect("an event arrives in time")
            .expect("the turn is still running")
            .event
    }

    /// Returns the next approval request.
    pub async fn approval(&mut self) -> (domain::ids::ApprovalId, String, Value, bool) {
        loop {
            if let TurnEvent::Approval { id, name, input, is_question, .. } = self.next_event().await {
                return (id, name, input, is_question);
            }
        }
    }

    pub async fn send(&self, command: TurnCommand) {
        self.commands.send(command).await.unwrap();
    }

    pub async fn outcome(self) -> TurnOutcome {
        self.outcome_and_events().await.0
    }

    /// Returns the outcome and all remaining events.
    pub async fn outcome_and_events(mut self) -> (TurnOutcome, Vec<TurnEvent>) {
        let events = async {
            let mut events = Vec::new();
            while let Some(reported) = self.events.recv().await {
                events.push(reported.event);
            }
            events
        };
        let all = async { tokio::join!(async { self.turn.await.unwrap() }, events) };
        timeout(PATIENCE, all).await.expect("the turn ends")
    }
}

pub const SESSION: &str = "0d9b0b8e-5f1e-4a53-9a39-5d2b4d1b3e5f";

impl FakeClaudeProcess {
    pub async fn receive(&mut self) -> Value {
        let line = timeout(PATIENCE, self.input.next())
            .await
            .expect("a line arrives in time")
            .unwrap()
            .expect("the input is open");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits until the input is closed.
    pub async fn input_closed(&mut self) -> bool {
        matches!(timeout(PATIENCE, self.input.next()).await, Ok(Ok(None)))
    }

    pub async fn send(&mut self, value: Value) {
        self.send_line(&value.to_string()).await;
    }

    pub async fn send_line(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        // The write may fail, because the reader may have stopped reading.
        let _cut_short = self.output.write_all(bytes).await.is_err();
    }

    /// Accepts the first request.
    pub async fn accept_initialize(&mut self) -> Value {
        let hello = self.receive().await;
        assert_eq!(hello["request"]["subtype"], "initialize");
        self.accept(&hello).await;
        hello
    }

    /// Sends a successful response to a request.
    pub async fn accept(&mut self, request: &Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": {}});
        self.send(json!({"type": "control_response", "response": response})).await;
    }

    /// Accepts the next prompt and starts a turn.
    pub async fn accept_prompt(&mut self) -> Value {
        let prompt = self.receive().await;
        assert_eq!(prompt["type"], "user", "{prompt}");
        for state in ["queued", "started"] {
            self.send_state(&prompt, state).await;
        }
        self.send(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
        prompt
    }

    /// Reports what becomes of a message.
    pub async fn send_state(&mut self, message: &Value, state: &str) {
        let line = json!({"type": "command_lifecycle", "command_uuid": message["uuid"], "state": state});
        self.send(line).await;
    }

    /// Streams text deltas under a new message id.
    pub async fn send_stream(&mut self, words: &[&str]) -> String {
        self.messages += 1;
        let id = format!("msg_{}", self.messages);
        let usage = json!({"input_tokens": 10, "output_tokens": 1});
        let message = json!({"id": id, "model": "m", "usage": usage});
        self.send(json!({"type": "stream_event", "event": {"type": "message_start", "message": message}})).await;
        for word in words {
            let delta = json!({"type": "text_delta", "text": word});
            let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            self.send(json!({"type": "stream_event", "event": event})).await;
        }
        id
    }

    pub async fn send_result(&mut self, prompt: &Value, more: Value) {
        let mut result = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "",
            "user_message_uuids": [prompt["uuid"]],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send(result).await;
    }

    /// Sends a complete answer.
    pub async fn send_answer(&mut self, prompt: &Value, text: &str) {
        let id = self.send_stream(&[text]).await;
        let content = json!([{"type": "text", "text": text}]);
        self.send(json!({"type": "assistant", "message": {"id": id, "model": "m", "content": content}})).await;
        self.send_result(prompt, json!({"result": text})).await;
    }

    /// Requests permission for a tool.
    pub async fn request_permission(&mut self, tool: &str, input: Value) {
        let request = json!({
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "toolu_1",
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        });
        self.send_request("ask-1", request).await;
    }

    pub async fn send_request(&mut self, id: &str, request: Value) {
        self.send(json!({"type": "control_request", "request_id": id, "request": request})).await;
    }

    /// Returns the response to a request of the fake process.
    pub async fn expect_reply(&mut self, id: &str) -> Value {
        let reply = self.receive().await;
        assert_eq!(reply["response"]["request_id"], id, "{reply}");
        reply["response"].clone()
    }

    /// Accepts the next request, which must be an interrupt, and ends the turn like the real program.
    pub async fn accept_interrupt(&mut self, prompt: &Value) {
        let interrupt = self.receive().await;
        assert_eq!(interrupt["request"]["subtype"], "interrupt", "{interrupt}");
        self.accept(&interrupt).await;
        self.end_interrupted(prompt).await;
    }

    /// Ends the turn as interrupted.
    pub async fn end_interrupted(&mut self, prompt: &Value) {
        let content = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
        self.send(json!({"type": "user", "message": {"role": "user", "content": content}})).await;
        let zero = json!({"input_tokens": 0, "output_tokens": 0});
        let result = json!({
            "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
            "errors": ["[ede_diagnostic]"], "usage": zero, "model_usage_since_last_result": {},
        });
        self.send_result(prompt, result).await;
    }
}

pub fn text_of(events: &[TurnEvent]) -> String {
    let text = events.iter().filter_map(|event| match event {
        TurnEvent::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    text.collect()
}
