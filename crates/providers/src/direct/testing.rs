//! Shared by the tests of this folder: a fake model API on loopback, and fake MCP servers.

use super::{
    ApiAccess, ApiKey, Deadlines, DirectProvider, DirectProviderConfig, ModelApiKind, ModelHttp, ToolCallOutcome,
    tools::{McpToolbox, ServerCallOutcome, ServerTool, ServerToolList, ToolReport, ToolboxFuture},
};
use crate::{
    AgentWorkspace, Provider as _, ProviderEvent, TurnChannel, TurnCommand, TurnEvent, TurnOutcome, TurnRequest,
};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    mcp::{McpServerConfig, McpTransport, NamedMcpServer},
    name::Name,
    time::Timestamp,
};
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use workbench::mcp::PlacedMcpServer;

pub const DEADLINE: Duration = Duration::from_secs(60);

/// How one request is answered.
#[derive(Clone, Debug)]
pub enum FakeReply {
    /// Status, headers and a body.
    Whole(u16, &'static str, String),
    /// Events, then the end.
    Frames(Vec<Value>),
    /// Events, then nothing until the client disconnects.
    Hangs(Vec<Value>),
}

/// Answers each request with the next reply, in Anthropic's format.
pub struct FakeModelApi {
    pub url: String,
    pub requests: Arc<Mutex<Vec<Value>>>,
    /// One message per hanging connection that the client closed.
    pub disconnects: mpsc::Receiver<()>,
    _tasks: JoinSet<()>,
}

impl FakeModelApi {
    pub async fn start(replies: Vec<FakeReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (left, gone) = mpsc::channel(8);
        let mut tasks = JoinSet::new();
        let log = Arc::clone(&asked);
        tasks.spawn(async move {
            for reply in replies {
                let (mut socket, _) = listener.accept().await.unwrap();
                let body = request(&mut socket).await;
                log.lock().unwrap().push(body);
                answer(&mut socket, reply, &left).await;
            }
        });
        Self { url, requests: asked, disconnects: gone, _tasks: tasks }
    }

    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

async fn request(socket: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        let mut block = [0; 8192];
        let count = socket.read(&mut block).await.unwrap();
        assert!(count > 0, "the request is complete");
        bytes.extend_from_slice(&block[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return serde_json::from_str(body).unwrap();
        }
    }
}

async fn answer(socket: &mut TcpStream, reply: FakeReply, left: &mpsc::Sender<()>) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let frames = |frames: &[Value]| {
        let frame = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or("x"));
        frames.iter().map(frame).collect::<String>()
    };
    match reply {
        FakeReply::Whole(status, headers, body) => {
            let length = body.len();
            let whole =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}");
            socket.write_all(whole.as_bytes()).await.unwrap();
        }
        FakeReply::Frames(list) => socket.write_all(format!("{head}{}", frames(&list)).as_bytes()).await.unwrap(),
        FakeReply::Hangs(list) => {
            socket.write_all(format!("{head}{}", frames(&list)).as_bytes()).await.unwrap();
            let mut block = [0; 64];
            while socket.read(&mut block).await.is_ok_and(|count| count > 0) {}
            left.send(()).await.unwrap();
        }
    }
}

pub fn says(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    ]
}

pub fn ends() -> Vec<Value> {
    vec![
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

pub fn calls(name: &str, input: &Value) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": name}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

/// Tools that return their input; one of them returns only when it is canceled.
#[derive(Debug)]
pub struct EchoToolbox;

impl McpToolbox for EchoToolbox {
    fn list(&self, servers: Vec<PlacedMcpServer>) -> ToolboxFuture<Vec<ServerToolList>> {
        let tool =
            |name: &str| ServerTool { name: name.into(), description: "x".into(), schema: json!({"type": "object"}) };
        let listing = move |server: PlacedMcpServer| ServerToolList {
            tools: match server.server.name.as_str() {
                "broken" => Err("it does not start".into()),
                _ => Ok(vec![tool("read.file"), tool("hang")]),
            },
            server,
        };
        Box::pin(async move { servers.into_iter().map(listing).collect() })
    }

    fn call(
        &self,
        server: PlacedMcpServer,
        tool: String,
        input: Map<String, Value>,
        cancel: CancellationToken,
        _: mpsc::Sender<ToolReport>,
        _: String,
    ) -> ToolboxFuture<ServerCallOutcome> {
        Box::pin(async move {
            if tool == "hang" {
                cancel.cancelled().await;
                return ServerCallOutcome { outcome: ToolCallOutcome::text("cancelled", true), notices: Vec::new() };
            }
            let text = format!("{} {tool} {}", server.server.name, Value::Object(input));
            let restarted = TurnEvent::Status { status: "mcp_restarted".into(), message: "it is back".into() };
            ServerCallOutcome { outcome: ToolCallOutcome::text(text, false), notices: vec![restarted] }
        })
    }
}

/// A running turn.
pub struct RunningDirectTurn {
    pub events: mpsc::Receiver<ProviderEvent>,
    pub commands: mpsc::Sender<TurnCommand>,
    task: JoinSet<TurnOutcome>,
}

impl RunningDirectTurn {
    pub async fn next(&mut self) -> TurnEvent {
        timeout(DEADLINE, self.events.recv()).await.expect("an event").expect("the turn continues").event
    }

    pub async fn until(&mut self, fits: impl Fn(&TurnEvent) -> bool) -> TurnEvent {
        loop {
            let event = self.next().await;
            if fits(&event) {
                return event;
            }
        }
    }

    /// Returns the remaining events, and the outcome.
    pub async fn rest(mut self) -> (Vec<TurnEvent>, TurnOutcome) {
        let mut events = Vec::new();
        while let Some(reported) = timeout(DEADLINE, self.events.recv()).await.expect("an event or the end") {
            events.push(reported.event);
        }
        (events, self.task.join_next().await.unwrap().unwrap())
    }
}

pub fn deadlines(millis: u64) -> Deadlines {
    let some = Duration::from_millis(millis);
    Deadlines { connect: some, first_byte: some, idle: some }
}

pub fn direct(url: &str, deadlines: Deadlines) -> DirectProvider {
    let config = DirectProviderConfig {
        name: "anthropic".into(),
        label: "Anthropic".into(),
        settings: "anthropic".into(),
        is_vendor: true,
        api: ModelApiKind::Messages,
        access: ApiAccess {
            base_url: url.into(),
            base_url_variable: None,
            key: ApiKey::new("sk-0123456789", "KEY"),
            key_variables: vec!["KEY".into()],
            headers: Vec::new(),
            is_guarded: false,
        },
        prices: Default::default(),
        deadlines,
        retries: 1,
        default_model: Some("m".into()),
        context_window: 100_000,
        answer_tokens: 1000,
    };
    let http = ModelHttp::new(config.deadlines.connect, Default::default());
    DirectProvider::new(config, Arc::new(EchoToolbox), http)
}

pub fn workspace(servers: &[&str]) -> AgentWorkspace {
    let spec = AgentSpec::new(Name::parse("Ann").unwrap(), "anthropic");
    let born = Timestamp::from_millis(0);
    let server = |name: &&str| NamedMcpServer {
        name: (*name).to_owned(),
        config: McpServerConfig::new(McpTransport::Http {
            url: "http://127.0.0.1:1".into(),
            headers: Default::default(),
        }),
        owner: None,
    };
    AgentWorkspace {
        owner: domain::owner::Owner::local(),
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: born, updated_at: born },
        folder: ".".into(),
        space: std::sync::Arc::new(domain::project::ProjectSpace::scratch(
            domain::owner::Owner::local(),
            RoomId::generate(),
            ".".into(),
        )),
        home: ".".into(),
        sandbox: None,
        servers_sandbox: None,
        skills: Vec::new(),
        mcp_servers: servers.iter().map(server).collect(),
        host_tools: crate::host_tools::HostTools::new(crate::host_tools::tools::all()).unwrap(),
        provider_settings: Default::default(),
        has_company: false,
        depth: 0,
    }
}

pub fn begin(direct: &DirectProvider, prompt: &str, servers: &[&str]) -> RunningDirectTurn {
    let request = TurnRequest {
        run_id: RunId::generate(),
        workspace: workspace(servers),
        prompt: prompt.into(),
        attachments: Vec::new(),
        later: crate::LaterMessages::default(),
        history: Vec::new().into(),
        session: None,
        meter: crate::gateway::RunMeter::default(),
    };
    let ((events, heard), (commands, received)) = (mpsc::channel(64), mpsc::channel(16));
    let mut task = JoinSet::new();
    task.spawn(direct.turn(request, TurnChannel { events, commands: received, keeps_raw: false }));
    RunningDirectTurn { events: heard, commands, task }
}

/// No MCP servers.
#[derive(Clone, Copy, Debug)]
pub struct EmptyToolbox;

impl McpToolbox for EmptyToolbox {
    fn list(&self, servers: Vec<PlacedMcpServer>) -> ToolboxFuture<Vec<ServerToolList>> {
        let none = |server| ServerToolList { server, tools: Err("this server cannot reach MCP servers".into()) };
        Box::pin(async move { servers.into_iter().map(none).collect() })
    }

    fn call(
        &self,
        _: PlacedMcpServer,
        _: String,
        _: Map<String, Value>,
        _: CancellationToken,
        _: mpsc::Sender<ToolReport>,
        _: String,
    ) -> ToolboxFuture<ServerCallOutcome> {
        Box::pin(async {
            ServerCallOutcome { outcome: ToolCallOutcome::text("There is no such tool.", true), notices: Vec::new() }
        })
    }
}
