//! Requests that are answered once: rooms, messages, runs, pages.

use super::{Error, SeenEvent, event::written};
use domain::{
    agent::Agent,
    ids::{AgentId, MessageId, RoomId, RunId},
    message::Message,
    position::{Epoch, Position, Seq},
    room::{Room, WhenBusy},
    run::{Receipt, Run, RunStatus},
};
use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{json, value::RawValue};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(30);

/// A handle to one server. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// A message about to be posted.
#[derive(Clone, Debug)]
pub struct Post {
    pub text: String,
    pub when_busy: Option<WhenBusy>,
    /// The same key twice gives one message.
    pub idempotency_key: Option<String>,
}

impl Post {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), when_busy: None, idempotency_key: None }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Posted {
    pub message: PostedMessage,
    pub runs: Vec<PostedRun>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PostedMessage {
    pub id: MessageId,
    pub seq: Seq,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PostedRun {
    pub id: RunId,
    pub agent_id: AgentId,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cancelled {
    pub status: RunStatus,
    pub receipt: Receipt,
}

/// A page of a room's journal.
#[derive(Clone, Debug)]
pub struct Page {
    pub epoch: Epoch,
    pub head: Seq,
    pub events: Vec<SeenEvent>,
}

/// A page of a room's folded messages, true at exactly `head`.
#[derive(Clone, Debug, Deserialize)]
pub struct HistoryPage {
    pub epoch: Epoch,
    pub head: Seq,
    pub messages: Vec<Message>,
}

#[derive(Deserialize)]
struct RawPage<'a> {
    epoch: Epoch,
    head: Seq,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    #[serde(default)]
    detail: String,
}

impl Api {
    /// `base` is what the server printed: `http://127.0.0.1:7878`.
    pub fn new(base: impl Into<String>) -> Result<Self, Error> {
        // Fails only when one was installed before, and then that one serves.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).connect_timeout(DEADLINE).build()?;
        Ok(Self { http, base: base.into(), token: None })
    }

    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn agents(&self) -> Result<Vec<Agent>, Error> {
        let found: Agents = self.get("/api/agents").await?;
        Ok(found.agents)
    }

    /// The agent that every fresh server has.
    pub async fn scripted_agent(&self) -> Result<AgentId, Error> {
        let agents = self.agents().await?;
        let scripted = agents.iter().find(|agent| agent.spec.provider == "scripted");
        scripted
            .map(|agent| agent.id)
            .ok_or_else(|| Error::shape("a fresh server has a scripted agent; this one has not"))
    }

    pub async fn create_room(&self, name: &str, agents: &[AgentId]) -> Result<Room, Error> {
        self.send(self.request(Method::POST, "/api/rooms").json(&json!({"name": name, "agents": agents}))).await
    }

    pub async fn room(&self, room: RoomId) -> Result<Room, Error> {
        self.get(&format!("/api/rooms/{room}")).await
    }

    pub async fn post_message(&self, room: RoomId, post: &Post) -> Result<Posted, Error> {
        let mut body = json!({"text": post.text});
        if let Some(when_busy) = post.when_busy {
            body["when_busy"] = json!(when_busy);
        }
        let mut request = self.request(Method::POST, &format!("/api/rooms/{room}/messages")).json(&body);
        if let Some(key) = &post.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.send(request).await
    }

    pub async fn run(&self, run: RunId) -> Result<Run, Error> {
        self.get(&format!("/api/runs/{run}")).await
    }

    pub async fn runs(&self, room: RoomId, status: RunStatus, limit: usize) -> Result<Vec<Run>, Error> {
        let found: Runs = self.get(&format!("/api/runs?room_id={room}&status={status}&limit={limit}")).await?;
        Ok(found.runs)
    }

    pub async fn cancel_run(&self, run: RunId) -> Result<Cancelled, Error> {
        self.send(self.request(Method::POST, &format!("/api/runs/{run}/cancel"))).await
    }

    pub async fn events(&self, room: RoomId, after: &Position, limit: usize) -> Result<Page, Error> {
        let path = format!("/api/rooms/{room}/events?after={}&limit={limit}", written(after));
        let text = self.text(self.request(Method::GET, &path)).await?;
        let page: RawPage<'_> =
            serde_json::from_str(&text).map_err(|error| Error::shape(format!("{path}: {error}")))?;
        let events = page.events.iter().map(|event| SeenEvent::parse(event.get())).collect::<Result<_, _>>()?;
        Ok(Page { epoch: page.epoch, head: page.head, events })
    }

    /// The whole journal of a room, page by page.
    pub async fn journal(&self, room: RoomId, page_size: usize) -> Result<Vec<SeenEvent>, Error> {
        let mut position = Position::START;
        let mut events: Vec<SeenEvent> = Vec::new();
        loop {
            let page = self.events(room, &position, page_size).await?;
            let Some(last) = page.events.last() else { return Ok(events) };
            position = Position { epoch: Some(page.epoch), seq: last.seq };
            events.extend(page.events);
        }
    }

    /// The newest messages, or the newest before a seq: for paging back.
    pub async fn messages(&self, room: RoomId, before: Option<Seq>, limit: usize) -> Result<HistoryPage, Error> {
        let before = before.map(|seq| format!("&before={seq}")).unwrap_or_default();
        self.get(&format!("/api/rooms/{room}/messages?limit={limit}{before}")).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends, and reads a JSON answer or a problem.
    pub async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let text = self.text(request).await?;
        serde_json::from_str(&text).map_err(|error| Error::shape(format!("{error} in {text}")))
    }

    async fn text(&self, request: RequestBuilder) -> Result<String, Error> {
        let answer = request.timeout(DEADLINE).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_success() { Ok(text) } else { Err(problem(status.as_u16(), &text)) }
    }
}

/// Reads an answer that is not a success.
pub(super) fn problem(status: u16, body: &str) -> Error {
    match serde_json::from_str::<Problem>(body) {
        Ok(problem) => Error::Problem { status, code: problem.code, detail: problem.detail },
        Err(_) => Error::shape(format!("status {status} without a problem: {body}")),
    }
}
