//! A double of the server: one agent, one room, a journal written by the test, and connections that break where the
//! test says, even inside a character.

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{sync::watch, task::JoinSet};

pub const AGENT: &str = "01900000-0000-7000-8000-00000000000a";
pub const ROOM: &str = "01900000-0000-7000-8000-00000000000b";
pub const RUN: &str = "01900000-0000-7000-8000-00000000000c";
pub const STREAM: &str = "01900000-0000-7000-8000-00000000000d";

#[derive(Default)]
struct Inner {
    epoch: String,
    journal: Vec<Value>,
    /// After how many bytes each feed connection breaks; later connections do not break.
    cuts: VecDeque<usize>,
    /// Events that a cancel request appends.
    on_cancel: Vec<Value>,
    /// The requests with their relevant details, in order.
    seen: Vec<String>,
    token: Option<String>,
    refuse_messages: usize,
}

#[derive(Clone)]
pub struct Double {
    inner: Arc<Mutex<Inner>>,
    head: watch::Sender<usize>,
    pub address: SocketAddr,
    #[expect(dead_code, reason = "dropped with the last handle, which ends the server")]
    tasks: Arc<JoinSet<()>>,
}

impl Double {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Mutex::new(Inner { epoch: "e1".into(), ..Inner::default() }));
        let shared = Shared { inner: Arc::clone(&inner), head: watch::Sender::new(0) };
        let head = shared.head.clone();
        let mut tasks = JoinSet::new();
        let app = router(shared);
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        let double = Self { inner, head, address, tasks: Arc::new(tasks) };
        double.append(None, "message_posted", json!({}));
        double
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an event to the journal and wakes the readers.
    pub fn append(&self, run: Option<&str>, kind: &str, data: Value) {
        let mut inner = self.inner.lock().unwrap();
        append(&mut inner, run, kind, data);
        let length = inner.journal.len();
        drop(inner);
        self.head.send_replace(length);
    }

    pub fn say(&self, delta: &str) {
        self.append(Some(RUN), "content_delta", json!({"stream_id": STREAM, "delta": delta}));
    }

    pub fn end(&self, kind: &str, extra: Value) {
        self.append(Some(RUN), kind, end(extra));
    }

    pub fn cut_after(&self, bytes: impl IntoIterator<Item = usize>) {
        self.inner.lock().unwrap().cuts = bytes.into_iter().collect();
    }

    pub fn on_cancel(&self, kind: &str, data: Value) {
        let event = json!([kind, data]);
        self.inner.lock().unwrap().on_cancel.push(event);
    }

    pub fn want_token(&self, token: &str) {
        self.inner.lock().unwrap().token = Some(token.to_owned());
    }

    /// Drops the responses to the next messages.
    pub fn lose_answers(&self, count: usize) {
        self.inner.lock().unwrap().refuse_messages = count;
    }

    /// Simulates a restore: a new epoch, and a journal cut to `keep` events.
    pub fn restore(&self, keep: usize) {
        let mut inner = self.inner.lock().unwrap();
        inner.epoch = "e2".into();
        inner.journal.truncate(keep);
    }

    pub fn seen(&self) -> Vec<String> {
        self.inner.lock().unwrap().seen.clone()
    }
}

pub fn end(extra: Value) -> Value {
    let mut data = json!({"usage": {"input_tokens": 5, "output_tokens": 7}, "cost": null, "duration_ms": 1300});
    if let (Value::Object(data), Value::Object(extra)) = (&mut data, extra) {
        data.extend(extra);
    }
    data
}

fn append(inner: &mut Inner, run: Option<&str>, kind: &str, data: Value) {
    let seq = inner.journal.len() + 1;
    inner.journal.push(json!({
        "id": uuid::Uuid::now_v7(), "room_id": ROOM, "seq": seq, "type": kind, "run_id": run, "agent_id": run.map(|_| AGENT),
        "data": data, "created_at": "2026-11-15T09:30:00.250Z",
    }));
}

#[derive(Clone)]
struct Shared {
    inner: Arc<Mutex<Inner>>,
    head: watch::Sender<usize>,
}

fn router(shared: Shared) -> Router {
    let agent = json!({"id": AGENT, "name": "echo", "provider": "scripted", "model": null});
    let room = json!({"id": ROOM, "name": "A\u{1b}[2Jroom", "agents": [AGENT], "head": 3, "updated_at": "2026-11-15T09:30:00.250Z"});
    let (rooms, created) = (room.clone(), room.clone());
    Router::new()
        .route(
            "/api/agents",
            get(async move |State(s): State<Shared>, headers: HeaderMap| s.known(&headers, json!({"agents": [agent]}))),
        )
        .route(
            "/api/rooms",
            get(async move || Json(json!({"rooms": [rooms]}))).post(async move || (StatusCode::CREATED, Json(created))),
        )
        .route("/api/rooms/{id}", get(async move || Json(room)))
        .route("/api/rooms/{id}/messages", post(message))
        .route("/api/rooms/{id}/events", get(events))
        .route("/api/runs/{id}", get(async || problem(StatusCode::NOT_FOUND, "not_found", "there is no such run")))
        .route("/api/runs/{id}/cancel", post(cancel))
        .route("/openapi.json", get(async || Json(json!({"info": {"title": "Greenroom", "version": "9.9.9"}}))))
        .with_state(shared)
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    (
        status,
        Json(json!({"type": "about:blank", "title": "x", "status": status.as_u16(), "code": code, "detail": detail})),
    )
        .into_response()
}

impl Shared {
    fn known(&self, headers: &HeaderMap, answer: Value) -> Response {
        let wanted = self.inner.lock().unwrap().token.as_ref().map(|token| format!("Bearer {token}"));
        let shown = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        if wanted.is_some() && wanted != shown {
            return problem(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed\u{1b}[2J");
        }
        Json(answer).into_response()
    }
}

async fn message(State(shared): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let mut inner = shared.inner.lock().unwrap();
    let key = headers.get("idempotency-key").map_or("none", |key| key.to_str().unwrap()).to_owned();
    inner.seen.push(format!("message {} key {key}", body["text"]));
    if inner.refuse_messages > 0 {
        inner.refuse_messages -= 1;
        let broken = stream::iter([Err::<Bytes, _>(io::Error::other("cut"))]);
        return Response::new(Body::from_stream(broken));
    }
    let run = json!({"id": RUN, "agent_id": AGENT});
    let answer = json!({"message": {"id": STREAM, "seq": 1}, "runs": [run]});
    (StatusCode::ACCEPTED, Json(answer)).into_response()
}

async fn cancel(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let mut inner = shared.inner.lock().unwrap();
    inner.seen.push(format!("cancel {id}"));
    for event in std::mem::take(&mut inner.on_cancel) {
        append(&mut inner, Some(RUN), event[0].as_str().unwrap(), event[1].clone());
    }
    let length = inner.journal.len();
    drop(inner);
    shared.head.send_replace(length);
    let receipt = json!({"processes": 1, "signals": ["SIGTERM"], "millis": 12});
    Json(json!({"status": "cancelled", "receipt": receipt})).into_response()
}

async fn events(
    State(shared): State<Shared>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let live = headers.get("accept").is_some_and(|accept| accept == "text/event-stream");
    let shown = headers.get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
    let after = shown.or_else(|| query.get("after").cloned()).unwrap_or_default();
    let mut inner = shared.inner.lock().unwrap();
    inner.seen.push(format!("{} after {after}", if live { "feed" } else { "page" }));
    let (epoch, mut position) =
        after.rsplit_once('-').map_or((None, after.as_str()), |(epoch, seq)| (Some(epoch), seq));
    let foreign = epoch.is_some_and(|epoch| epoch != inner.epoch);
    if foreign {
        position = "0";
    }
    let position: usize = position.parse().unwrap();
    let (epoch, head) = (inner.epoch.clone(), inner.journal.len());
    if !live {
        let limit: usize = query["limit"].parse().unwrap();
        let page: Vec<Value> = inner.journal.iter().skip(position).take(limit.min(2)).cloned().collect();
        return Json(json!({"epoch": epoch, "head": head, "events": page})).into_response();
    }
    let reset = if foreign {
        format!("event: reset\ndata: {}\n\n", json!({"epoch": epoch, "head": head}))
    } else {
        String::new()
    };
    let budget = inner.cuts.pop_front();
    drop(inner);
    let reader = Reader {
        shared: shared.clone(),
        head: shared.head.subscribe(),
        position,
        pending: format!(": hello\n\n{reset}").into_bytes(),
        budget,
    };
    let body = Body::from_stream(stream::unfold(reader, Reader::chunk));
    ([("content-type", "text/event-stream")], body).into_response()
}

struct Reader {
    shared: Shared,
    head: watch::Receiver<usize>,
    position: usize,
    pending: Vec<u8>,
    budget: Option<usize>,
}

impl Reader {
    /// Sends seven bytes at a time, so that frames and characters are split; fails where the connection should break.
    async fn chunk(mut self) -> Option<(io::Result<Bytes>, Self)> {
        while self.pending.is_empty() {
            let next = {
                self.head.borrow_and_update();
                let inner = self.shared.inner.lock().unwrap();
                inner.journal.get(self.position).map(|event| {
                    let id = format!("{}-{}", inner.epoch, self.position + 1);
                    format!("id: {id}\r\nevent: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap())
                })
            };
            match next {
                Some(frame) => {
                    self.position += 1;
                    self.pending = frame.into_bytes();
                }
                None => self.head.changed().await.ok()?,
            }
        }
        let mut size = self.pending.len().min(7);
        if let Some(budget) = &mut self.budget {
            if *budget == 0 {
                return Some((Err(io::Error::other("cut")), self));
            }
            size = size.min(*budget);
            *budget -= size;
        }
        let chunk: Vec<u8> = self.pending.drain(..size).collect();
        Some((Ok(chunk.into()), self))
    }
}
