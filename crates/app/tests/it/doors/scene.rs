//! What the cases are built from: rooms, messages, answers, an audience, and waiting with a deadline.

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
use testkit::client::{Api, Post, SeenEvent, SseReader};

/// Longer than anything here takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// `1 2 3 … n`, as `!count n` says it.
pub fn counted(n: usize) -> String {
    (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")
}

/// One answer of the server, whatever it is.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}")).to_str().unwrap()
    }

    /// A problem with this status and code, in the one shape that problems have.
    #[track_caller]
    pub fn is_refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
        problem
    }

    #[track_caller]
    pub fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

pub async fn answer(request: RequestBuilder) -> Answer {
    let response = request.timeout(DEADLINE).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

pub async fn get(api: &Api, path: &str) -> Answer {
    answer(api.request(Method::GET, path)).await
}

pub async fn post(api: &Api, path: &str, body: &Value) -> Answer {
    answer(api.request(Method::POST, path).json(body)).await
}

pub async fn delete(api: &Api, path: &str) -> Answer {
    answer(api.request(Method::DELETE, path)).await
}

/// A new agent of the scripted provider. `settings` are added to what every agent has.
pub async fn agent(api: &Api, name: &str, settings: Value) -> AgentId {
    let mut spec = json!({"name": name, "provider": "scripted"});
    for (key, value) in settings.as_object().unwrap() {
        spec[key] = value.clone();
    }
    post(api, "/api/agents", &spec).await.is(201)["id"].as_str().unwrap().parse().unwrap()
}

/// A new room with the agent that every server has.
pub async fn room(api: &Api) -> RoomId {
    let scripted = api.scripted_agent().await.unwrap();
    room_of(api, &[scripted]).await
}

pub async fn room_of(api: &Api, agents: &[AgentId]) -> RoomId {
    api.create_room("A room", agents).await.unwrap().id
}

/// A room whose one agent has these settings.
pub async fn room_with(api: &Api, settings: Value) -> RoomId {
    let agent = agent(api, "set apart", settings).await;
    room_of(api, &[agent]).await
}

/// Posts a message that one agent answers.
pub async fn say(api: &Api, room: RoomId, text: &str) -> RunId {
    let posted = api.post_message(room, &Post::new(text)).await.unwrap();
    assert_eq!(posted.runs.len(), 1, "one agent answers");
    posted.runs[0].id
}

pub async fn say_with(api: &Api, room: RoomId, body: Value) -> Answer {
    post(api, &format!("/api/rooms/{room}/messages"), &body).await
}

/// The ids of the runs that an accepted message started.
pub fn runs_of(accepted: &Value) -> Vec<RunId> {
    let runs = accepted["runs"].as_array().unwrap();
    runs.iter().map(|run| run["id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Waits until the run has ended.
pub async fn ended(api: &Api, run: RunId) -> Run {
    within("the run to end", async {
        let mut stream = SseReader::open(api, &format!("/api/runs/{run}/stream"), &Position::START).await.unwrap();
        while stream.next().await.unwrap().is_some() {}
        api.run(run).await.unwrap()
    })
    .await
}

/// Posts a message and waits for the whole answer.
pub async fn answered(api: &Api, room: RoomId, text: &str) -> Run {
    let run = say(api, room, text).await;
    ended(api, run).await
}

/// The folded answer of a run; it is there once.
pub async fn message_of(api: &Api, run: &Run) -> Message {
    let history = api.messages(run.room_id, None, 1000).await.unwrap();
    let mut of_run: Vec<_> = history.messages.into_iter().filter(|message| message.run_id == Some(run.id)).collect();
    assert_eq!(of_run.len(), 1, "one message for one answer");
    of_run.remove(0)
}

pub async fn journal(api: &Api, room: RoomId) -> Vec<SeenEvent> {
    api.journal(room, 10_000).await.unwrap()
}

pub async fn head(api: &Api, room: RoomId) -> u64 {
    api.room(room).await.unwrap().head
}

/// The text that the deltas among these events say.
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

/// Someone who reads along in a room, from its first event on, and forgets nothing.
pub struct Audience {
    reader: SseReader,
    pub seen: Vec<SeenEvent>,
}

impl Audience {
    pub async fn of(api: &Api, room: RoomId) -> Self {
        let reader = within("a stream", SseReader::connect(api, room, &Position::START)).await.unwrap();
        Self { reader, seen: Vec::new() }
    }

    /// The first event that fits, among those seen and those to come.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&SeenEvent) -> bool) -> SeenEvent {
        if let Some(event) = self.seen.iter().find(|event| fits(event)) {
            return event.clone();
        }
        within(what, async {
            loop {
                let event = self.reader.next_event().await.unwrap().expect("a room's stream does not end");
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

    /// The first piece of a run's answer.
    pub async fn first_word(&mut self, run: RunId) -> SeenEvent {
        self.until_kind(EventType::ContentDelta, run).await
    }

    pub async fn end_of(&mut self, run: RunId) -> SeenEvent {
        self.until("an end", |event| event.kind.ends_a_run() && event.run_id == Some(run)).await
    }
}
