//! A double of the server's `/mcp`: real wire format, sessions that can be forgotten, streams that break, and a record of
//! what it was asked.

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

/// One request that came in.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `POST tools/call`, `GET`, `DELETE`.
    pub what: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Inner {
    /// How many sessions there were; their ids are `s1`, `s2` …
    sessions: usize,
    known: BTreeSet<String>,
    seen: Vec<Seen>,
    streams: Vec<mpsc::Sender<String>>,
    token: Option<String>,
    has_stream: bool,
    /// Streams of requests: those that are open, the most that ever were, and those that are gone.
    open: usize,
    most_open: usize,
    hung_up: usize,
}

#[derive(Clone)]
pub struct Double {
    inner: Arc<Mutex<Inner>>,
    /// Counts what happens, so that a test can wait for it.
    happened: watch::Sender<usize>,
    /// Tools called `slow` answer when this has reached their number.
    released: watch::Sender<u64>,
    pub address: SocketAddr,
    #[expect(dead_code, reason = "dropped with the last handle, which ends the server")]
    tasks: Arc<JoinSet<()>>,
}

#[derive(Clone)]
struct Shared {
    inner: Arc<Mutex<Inner>>,
    happened: watch::Sender<usize>,
    released: watch::Sender<u64>,
}

impl Double {
    pub async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Mutex::new(Inner { has_stream: true, ..Inner::default() }));
        let shared = Shared { inner, happened: watch::Sender::new(0), released: watch::Sender::new(0) };
        let Shared { inner, happened, released } = shared.clone();
        let app = Router::new().route("/mcp", post(posted).get(listened).delete(deleted)).with_state(shared);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { inner, happened, released, address, tasks: Arc::new(tasks) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// As a restart does: sessions are forgotten and streams end.
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

    /// Says this on every stream that is open.
    pub async fn announce(&self, frame: &str) {
        let streams = self.inner.lock().unwrap().streams.clone();
        assert!(!streams.is_empty(), "someone listens");
        for stream in streams {
            stream.send(frame.to_owned()).await.ok();
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.inner.lock().unwrap().seen.clone()
    }

    pub fn whats(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.what).collect()
    }

    pub fn most_open(&self) -> usize {
        self.inner.lock().unwrap().most_open
    }

    pub fn hung_up(&self) -> usize {
        self.inner.lock().unwrap().hung_up
    }

    /// Waits until the double has seen what makes this true.
    pub async fn until(&self, what: &str, fits: impl Fn(&Self) -> bool) {
        let mut happened = self.happened.subscribe();
        let waiting = tokio::time::timeout(crate::DEADLINE, async {
            while !fits(self) {
                happened.changed().await.unwrap();
            }
        });
        assert!(waiting.await.is_ok(), "{what}; seen: {:?}", self.whats());
    }

    pub async fn until_listened(&self, times: usize) {
        let listened = |double: &Self| double.whats().iter().filter(|what| *what == "GET").count() >= times;
        self.until("a stream is opened", listened).await;
        self.until_open().await;
    }

    pub async fn until_open(&self) {
        self.until("a stream is open", |double| !double.inner.lock().unwrap().streams.is_empty()).await;
    }
}

impl Shared {
    fn happened(&self) {
        self.happened.send_modify(|count| *count += 1);
    }

    /// Records a request; refuses it where that is due.
    fn enter(&self, what: &str, headers: &HeaderMap, body: Value) -> Option<Response> {
        let mut inner = self.inner.lock().unwrap();
        inner.seen.push(Seen { what: what.to_owned(), headers: headers.clone(), body });
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let session = header("mcp-session-id");
        let is_known = session.is_none_or(|session| inner.known.contains(&session));
        let wanted = inner.token.as_ref().map(|token| format!("Bearer {token}"));
        let is_allowed = wanted.is_none() || header("authorization") == wanted;
        drop(inner);
        self.happened();
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
    // Resumes the answer that `broken` began.
    if headers.get("last-event-id").is_some_and(|id| id == "b-1") {
        return events(vec![text_result(&json!("resumed"), "whole")]);
    }
    if !shared.inner.lock().unwrap().has_stream {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let (sender, receiver) = mpsc::channel(16);
    sender.send("id: 0\ndata: \n\n".into()).await.unwrap();
    shared.inner.lock().unwrap().streams.push(sender);
    shared.happened();
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
        "initialize" => return greet(&shared, &body),
        "tools/call" => return call(&shared, &body).await,
        "subscriptions/listen" => {
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": body["params"]["notifications"]}});
            let (sender, receiver) = mpsc::channel(16);
            sender.send(frame(&acknowledged)).await.unwrap();
            shared.inner.lock().unwrap().streams.push(sender);
            shared.happened();
            return streamed(receiver, Some(HungUp::new(&shared)));
        }
        _ => json!({}),
    };
    json_answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn greet(shared: &Shared, body: &Value) -> Response {
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
        // Spread over lines, as JSON may be.
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
        // Ends before the answer; `GET` after this event has it.
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

/// An answer whose last part waits until the test releases it.
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
    let guard = HungUp::new(shared);
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

/// Notices when a stream is gone.
struct HungUp(Shared);

impl HungUp {
    fn new(shared: &Shared) -> Self {
        let mut inner = shared.inner.lock().unwrap();
        inner.open += 1;
        inner.most_open = inner.most_open.max(inner.open);
        Self(shared.clone())
    }
}

impl Drop for HungUp {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock().unwrap();
        inner.open -= 1;
        inner.hung_up += 1;
        drop(inner);
        self.0.happened();
    }
}

fn streamed(receiver: mpsc::Receiver<String>, guard: Option<HungUp>) -> Response {
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
