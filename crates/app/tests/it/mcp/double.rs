//! A double of the server's `/mcp`: real wire format, sessions that can be dropped, streams that break, and a record of
//! all requests.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
};

/// One received request.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// `POST tools/call`, `GET`, `DELETE`.
    pub what: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl SeenRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Inner {
    /// The number of sessions so far; their ids are `s1`, `s2` …
    sessions: usize,
    known: BTreeSet<String>,
    seen: Vec<SeenRequest>,
    streams: Vec<mpsc::Sender<String>>,
    token: Option<String>,
    has_stream: bool,
    /// Request streams: currently open, maximum open, and closed.
    open: usize,
    most_open: usize,
    closed_streams: usize,
}

#[derive(Clone)]
pub struct Double {
    inner: Arc<Mutex<Inner>>,
    /// Counts changes, so that a test can wait for them.
    changed: watch::Sender<usize>,
    /// Calls of `slow` return when this has reached their number.
    released: watch::Sender<u64>,
    pub address: SocketAddr,
    #[expect(dead_code, reason = "dropped with the last handle, which ends the server")]
    tasks: Arc<JoinSet<()>>,
}

#[derive(Clone)]
struct Shared {
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<usize>,
    released: watch::Sender<u64>,
}

impl Double {
    pub async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Mutex::new(Inner { has_stream: true, ..Inner::default() }));
        let shared = Shared { inner, changed: watch::Sender::new(0), released: watch::Sender::new(0) };
        let Shared { inner, changed, released } = shared.clone();
        let app = Router::new().route("/mcp", post(posted).get(listened).delete(deleted)).with_state(shared);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { inner, changed, released, address, tasks: Arc::new(tasks) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Simulates a restart: drops all sessions and streams.
    pub fn restart(&self) {
        let mut inner = self.inner.lock().unwrap();
        inner.known.clear();
        inner.streams.clear();
    }

    pub fn want_token(&self, token: &str) {
        self.inner.lock().unwrap().token = Some(token.to_owned());
    }

    pub fn refuse_streams(&self) {
        self.inner.lock().unwrap().has_stream = false;
    }

    pub fn release(&self, number: u64) {
        self.released.send_replace(number);
    }

    /// Sends a frame on every open stream.
    pub async fn announce(&self, frame: &str) {
        let streams = self.inner.lock().unwrap().streams.clone();
        assert!(!streams.is_empty(), "a stream must be open");
        for stream in streams {
            stream.send(frame.to_owned()).await.ok();
        }
    }

    pub fn seen(&self) -> Vec<SeenRequest> {
        self.inner.lock().unwrap().seen.clone()
    }

    pub fn request_names(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.what).collect()
    }

    pub fn most_open(&self) -> usize {
        self.inner.lock().unwrap().most_open
    }

    pub fn closed_streams(&self) -> usize {
        self.inner.lock().unwrap().closed_streams
    }

    /// Waits until this is true.
    pub async fn until(&self, what: &str, fits: impl Fn(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = tokio::time::timeout(crate::DEADLINE, async {
            while !fits(self) {
                changed.changed().await.unwrap();
            }
        });
        assert!(waiting.await.is_ok(), "{what}; seen: {:?}", self.request_names());
    }

    pub async fn until_listened(&self, times: usize) {
        let listened = |double: &Self| double.request_names().iter().filter(|what| *what == "GET").count() >= times;
        self.until("a stream is opened", listened).await;
        self.until_open().await;
    }

    pub async fn until_open(&self) {
        self.until("a stream is open", |double| !double.inner.lock().unwrap().streams.is_empty()).await;
    }
}

impl Shared {
    fn changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Records a request and returns an error response if the token or session is invalid.
    fn enter(&self, what: &str, headers: &HeaderMap, body: Value) -> Option<Response> {
        let mut inner = self.inner.lock().unwrap();
        inner.seen.push(SeenRequest { what: what.to_owned(), headers: headers.clone(), body });
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let session = header("mcp-session-id");
        let is_known = session.is_none_or(|session| inner.known.contains(&session));
        let wanted = inner.token.as_ref().map(|token| format!("Bearer {token}"));
        let is_allowed = wanted.is_none() || header("authorization") == wanted;
        drop(inner);
        self.changed();
        let problem = |status: StatusCode, code: &str, detail: &str| {
            let body = json!({"status": status.as_u16(), "code": code, "title": "No", "detail": detail}).to_string();
            (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
        };
        if !is_allowed {
            return Some(problem(StatusCode::UNAUTHORIZED, "unauthorized", "Send an access token."));
        }
        (!is_known).then(|| problem(StatusCode::NOT_FOUND, "session_not_found", "There is no such session."))
    }
}

async fn deleted(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if let Some(refused) = shared.enter("DELETE", &headers, Value::Null) {
        return refused;
    }
    let session = headers["mcp-session-id"].to_str().unwrap();
    shared.inner.lock().unwrap().known.remove(session);
    StatusCode::NO_CONTENT.into_response()
}

async fn listened(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if let Some(refused) = shared.enter("GET", &headers, Value::Null) {
        return refused;
    }
    // Resumes the answer of `broken`.
    if headers.get("last-event-id").is_some_and(|id| id == "b-1") {
        return events(vec![text_result(&json!("resumed"), "whole")]);
    }
    if !shared.inner.lock().unwrap().has_stream {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let (sender, receiver) = mpsc::channel(16);
    sender.send("id: 0\ndata: \n\n".into()).await.unwrap();
    shared.inner.lock().unwrap().streams.push(sender);
    shared.changed();
    streamed(receiver, None)
}

async fn posted(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let method = body["method"].as_str().unwrap_or("response").to_owned();
    if let Some(refused) = shared.enter(&format!("POST {method}"), &headers, body.clone()) {
        return refused;
    }
    let id = body["id"].clone();
    if body.get("method").is_none() || id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match method.as_str() {
        "initialize" => return initialize(&shared, &body),
        "tools/call" => return call(&shared, &body).await,
        "subscriptions/listen" => {
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": body["params"]["notifications"]}});
            let (sender, receiver) = mpsc::channel(16);
            sender.send(frame(&acknowledged)).await.unwrap();
            shared.inner.lock().unwrap().streams.push(sender);
            shared.changed();
            return streamed(receiver, Some(StreamGuard::new(&shared)));
        }
        _ => json!({}),
    };
    json_answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn initialize(shared: &Shared, body: &Value) -> Response {
    let mut inner = shared.inner.lock().unwrap();
    inner.sessions += 1;
    let session = format!("s{}", inner.sessions);
    inner.known.insert(session.clone());
    let version = &body["params"]["protocolVersion"];
    let result = json!({"protocolVersion": version, "capabilities": {"tools": {"listChanged": true}, "prompts": {}}, "serverInfo": {"name": "double", "version": "1"}});
    let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    let mut response = events(vec![frame(&answer)]);
    response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    response
}

async fn call(shared: &Shared, body: &Value) -> Response {
    let (id, name) = (&body["id"], body["params"]["name"].as_str().unwrap());
    match name {
        // Multi-line JSON.
        "plain" => {
            json_answer(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "a\nb"}]}}))
        }
        "progress" => {
            let token = &body["params"]["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
            released(shared, body, vec![frame(&progress)]).await
        }
        "slow" => released(shared, body, Vec::new()).await,
        // The stream ends before the answer; a `GET` after this event returns it.
        "broken" => events(vec!["id: b-1\ndata: \n\n".into()]),
        "cut" => events(vec![": without an id\n\n".into()]),
        "refused" => {
            let answer = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32020, "message": "headers differ"}});
            (StatusCode::BAD_REQUEST, json_answer(&answer)).into_response()
        }
        "garbage" => (StatusCode::OK, "<html>").into_response(),
        _ => panic!("no tool {name}"),
    }
}

/// An answer whose last frame waits until the test releases it.
async fn released(shared: &Shared, body: &Value, before: Vec<String>) -> Response {
    let number = body["params"]["arguments"]["number"].as_u64().unwrap();
    let answer = text_result(&body["id"], "done");
    let (sender, receiver) = mpsc::channel(16);
    for frame in before {
        sender.send(frame).await.unwrap();
    }
    let mut gate = shared.released.subscribe();
    let rest = async move {
        if gate.wait_for(|released| *released >= number).await.is_ok() {
            sender.send(answer).await.ok();
        }
    };
    let guard = StreamGuard::new(shared);
    let frames = stream::unfold(
        (receiver, Box::pin(rest), guard, false),
        |(mut receiver, mut rest, guard, mut is_over)| async move {
            loop {
                tokio::select! {
                    biased;
                    frame = receiver.recv() => return frame.map(|frame| (Ok::<_, Infallible>(frame), (receiver, rest, guard, is_over))),
                    () = &mut rest, if !is_over => is_over = true,
                }
            }
        },
    );
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

/// Counts open streams and notices when one is closed.
struct StreamGuard(Shared);

impl StreamGuard {
    fn new(shared: &Shared) -> Self {
        let mut inner = shared.inner.lock().unwrap();
        inner.open += 1;
        inner.most_open = inner.most_open.max(inner.open);
        Self(shared.clone())
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock().unwrap();
        inner.open -= 1;
        inner.closed_streams += 1;
        drop(inner);
        self.0.changed();
    }
}

fn streamed(receiver: mpsc::Receiver<String>, guard: Option<StreamGuard>) -> Response {
    let frames = stream::unfold((receiver, guard), |(mut receiver, guard)| async move {
        let frame = receiver.recv().await?;
        Some((Ok::<_, Infallible>(frame), (receiver, guard)))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

fn events(frames: Vec<String>) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], frames.concat()).into_response()
}

pub fn frame(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

fn text_result(id: &Value, text: &str) -> String {
    frame(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}))
}

fn json_answer(answer: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], serde_json::to_string_pretty(answer).unwrap()).into_response()
}
