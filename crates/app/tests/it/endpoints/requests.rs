//! Shared helpers: rooms, messages, responses, a room follower, and waiting with a deadline.

use domain::{
    event::{EventBody, EventType},
    ids::{AgentId, RoomId, RunId},
    message::Message,
    position::Position,
    run::Run,
};
use reqwest::{Method, RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};
use std::{future::Future, time::Duration};
use testkit::client::{SeenEvent, SseReader, TestClient, TestPost};

/// Longer than anything here takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// `1 2 3 … n`, the answer to `!count n`.
pub fn counted(n: usize) -> String {
    (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")
}

/// Any HTTP response of the server.
#[derive(Debug)]
pub struct ApiResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl ApiResponse {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}")).to_str().unwrap()
    }

    /// Asserts a well-formed problem response with this status and code. Returns it without the name of the request, so
    /// that problems can be compared.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let mut problem = self.json();
        let instance = problem.as_object_mut().unwrap().remove("instance");
        assert_eq!(instance, Some(format!("urn:greenroom:request:{}", self.header("x-request-id")).into()));
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
        problem
    }

    #[track_caller]
    pub fn expect_status(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

pub async fn response_to(request: RequestBuilder) -> ApiResponse {
    let response = request.timeout(DEADLINE).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    ApiResponse { status, headers, text: response.text().await.unwrap() }
}

/// A `multipart/form-data` body with files: their names, types and contents.
pub fn form(boundary: &str, files: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, kind, content) in files {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=";
        body.extend(format!("--{boundary}\r\n{head}\"{name}\"\r\nContent-Type: {kind}\r\n\r\n").into_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").into_bytes());
    body
}

pub async fn get(api: &TestClient, path: &str) -> ApiResponse {
    response_to(api.request(Method::GET, path)).await
}

pub async fn post(api: &TestClient, path: &str, body: &Value) -> ApiResponse {
    response_to(api.request(Method::POST, path).json(body)).await
}

pub async fn delete(api: &TestClient, path: &str) -> ApiResponse {
    response_to(api.request(Method::DELETE, path)).await
}

/// Creates an agent of the scripted provider with additional `settings`.
pub async fn agent(api: &TestClient, name: &str, settings: Value) -> AgentId {
    let mut spec = json!({"name": name, "provider": "scripted"});
    for (key, value) in settings.as_object().unwrap() {
        spec[key] = value.clone();
    }
    post(api, "/api/agents", &spec).await.expect_status(201)["id"].as_str().unwrap().parse().unwrap()
}

/// Creates a room with the default scripted agent.
pub async fn room(api: &TestClient) -> RoomId {
    let scripted = api.scripted_agent().await.unwrap();
    room_of(api, &[scripted]).await
}

pub async fn room_of(api: &TestClient, agents: &[AgentId]) -> RoomId {
    api.create_room("A room", agents).await.unwrap().id
}

/// Creates a room with one agent that has these settings.
pub async fn room_with(api: &TestClient, settings: Value) -> RoomId {
    let agent = agent(api, "set apart", settings).await;
    room_of(api, &[agent]).await
}

/// Posts a message to a room with one agent and returns the run.
pub async fn post_text(api: &TestClient, room: RoomId, text: &str) -> RunId {
    let posted = api.post_message(room, &TestPost::new(text)).await.unwrap();
    assert_eq!(posted.runs.len(), 1, "one agent must answer");
    posted.runs[0].id
}

pub async fn post_body(api: &TestClient, room: RoomId, body: Value) -> ApiResponse {
    post(api, &format!("/api/rooms/{room}/messages"), &body).await
}

/// The ids of the runs that an accepted message started.
pub fn runs_of(accepted: &Value) -> Vec<RunId> {
    let runs = accepted["runs"].as_array().unwrap();
    runs.iter().map(|run| run["id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Waits until the run has ended.
pub async fn wait_for_end(api: &TestClient, run: RunId) -> Run {
    within("the run to end", async {
        let mut stream = SseReader::open(api, &format!("/api/runs/{run}/stream"), &Position::START).await.unwrap();
        while stream.next().await.unwrap().is_some() {}
        api.run(run).await.unwrap()
    })
    .await
}

/// Posts a message and waits for the whole answer.
pub async fn post_and_wait(api: &TestClient, room: RoomId, text: &str) -> Run {
    let run = post_text(api, room, text).await;
    wait_for_end(api, run).await
}

/// Returns the folded answer of a run, which must exist exactly once.
pub async fn message_of(api: &TestClient, run: &Run) -> Message {
    let history = api.messages(run.room_id, None, 1000).await.unwrap();
    let mut of_run: Vec<_> = history.messages.into_iter().filter(|message| message.run_id == Some(run.id)).collect();
    assert_eq!(of_run.len(), 1, "a run must have one message");
    of_run.remove(0)
}

pub async fn journal(api: &TestClient, room: RoomId) -> Vec<SeenEvent> {
    api.journal(room, 10_000).await.unwrap()
}

pub async fn head(api: &TestClient, room: RoomId) -> u64 {
    api.room(room).await.unwrap().head
}

/// Returns the joined text of the content deltas.
pub fn text_of(events: &[SeenEvent]) -> String {
    let delta = |event: &SeenEvent| match event.body().unwrap() {
        EventBody::ContentDelta(delta) => Some(delta.delta),
        _ => None,
    };
    events.iter().filter(|event| event.kind == EventType::ContentDelta).filter_map(delta).collect()
}

pub fn data(event: &SeenEvent) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

/// Follows a room from its first event and keeps all events.
pub struct RoomFollower {
    reader: SseReader,
    pub seen: Vec<SeenEvent>,
}

impl RoomFollower {
    pub async fn start(api: &TestClient, room: RoomId) -> Self {
        let reader = within("a stream", SseReader::connect(api, room, &Position::START)).await.unwrap();
        Self { reader, seen: Vec::new() }
    }

    /// Returns the first matching event, past or future.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&SeenEvent) -> bool) -> SeenEvent {
        if let Some(event) = self.seen.iter().find(|event| fits(event)) {
            return event.clone();
        }
        within(what, async {
            loop {
                let event = self.reader.next_event().await.unwrap().expect("the stream of a room does not end");
                self.seen.push(event.clone());
                if fits(&event) {
                    return event;
                }
            }
        })
        .await
    }

    pub async fn until_kind(&mut self, kind: EventType, run: RunId) -> SeenEvent {
        self.until(kind.as_str(), |event| event.kind == kind && event.run_id == Some(run)).await
    }

    /// Waits for the first text delta of a run.
    pub async fn first_delta(&mut self, run: RunId) -> SeenEvent {
        self.until_kind(EventType::ContentDelta, run).await
    }

    pub async fn end_of(&mut self, run: RunId) -> SeenEvent {
        self.until("an end", |event| event.kind.ends_a_run() && event.run_id == Some(run)).await
    }
}
