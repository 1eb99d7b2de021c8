//! Requests with a single response: rooms, messages, runs, pages.

use super::{SeenEvent, TestClientError, event::position_text};
use domain::{
    agent::Agent,
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    message::Message,
    position::{Epoch, Position, Seq},
    room::{Room, WhenBusy},
    run::{Receipt, Run, RunStatus},
};
use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(30);

/// A handle to one server. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct TestClient {
    http: reqwest::Client,
    base_url: String,
    token: Option<String>,
}

/// A message to post.
#[derive(Clone, Debug)]
pub struct TestPost {
    pub text: String,
    pub when_busy: Option<WhenBusy>,
    /// Repeating a post with the same key creates one message.
    pub idempotency_key: Option<String>,
}

impl TestPost {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), when_busy: None, idempotency_key: None }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PostReply {
    pub message: AcceptedMessage,
    pub runs: Vec<AcceptedRun>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AcceptedMessage {
    pub id: MessageId,
    pub seq: Seq,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AcceptedRun {
    pub id: RunId,
    pub agent_id: AgentId,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CancelReply {
    pub status: RunStatus,
    pub receipt: Receipt,
}

/// A page of a room's journal.
#[derive(Clone, Debug)]
pub struct SeenPage {
    pub epoch: Epoch,
    pub head: Seq,
    pub events: Vec<SeenEvent>,
}

/// A page of a room's folded messages, as of exactly `head`.
#[derive(Clone, Debug, Deserialize)]
pub struct SeenHistory {
    pub epoch: Epoch,
    pub head: Seq,
    pub messages: Vec<Message>,
}

#[derive(Deserialize)]
struct RawEventPage<'a> {
    epoch: Epoch,
    head: Seq,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct AgentList {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct RunList {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct ProblemBody {
    code: String,
    #[serde(default)]
    detail: String,
}

impl TestClient {
    /// `base` is the address that the server printed, such as `http://127.0.0.1:7878`.
    pub fn new(base: impl Into<String>) -> Result<Self, TestClientError> {
        // Fails only if a provider is installed already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).connect_timeout(DEADLINE).build()?;
        Ok(Self { http, base_url: base.into(), token: None })
    }

    /// For a server with TLS: trusts the certificates of this PEM text, and no others.
    pub fn trusting(base: impl Into<String>, pem: &[u8]) -> Result<Self, TestClientError> {
        let plain = Self::new(base)?;
        let trusted = reqwest::Certificate::from_pem_bundle(pem)?;
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).connect_timeout(DEADLINE);
        Ok(Self { http: http.tls_certs_only(trusted).build()?, ..plain })
    }

    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The same server without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base_url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn agents(&self) -> Result<Vec<Agent>, TestClientError> {
        let found: AgentList = self.get("/api/agents").await?;
        Ok(found.agents)
    }

    /// Returns the scripted agent that every new server has.
    pub async fn scripted_agent(&self) -> Result<AgentId, TestClientError> {
        let agents = self.agents().await?;
        let scripted = agents.iter().find(|agent| agent.spec.provider == "scripted");
        scripted.map(|agent| agent.id).ok_or_else(|| TestClientError::unexpected("the server has no scripted agent"))
    }

    /// Creates a room whose agents answer in the order given, and which queues messages while they do.
    pub async fn create_room(&self, name: &str, agents: &[AgentId]) -> Result<Room, TestClientError> {
        let policy = json!({"kind": "in_order", "when_busy": "enqueue"});
        self.create_room_with(name, agents, policy).await
    }

    pub async fn create_room_with(
        &self,
        name: &str,
        agents: &[AgentId],
        policy: Value,
    ) -> Result<Room, TestClientError> {
        let body = json!({"name": name, "agents": agents, "policy": policy});
        self.send(self.request(Method::POST, "/api/rooms").json(&body)).await
    }

    pub async fn room(&self, room: RoomId) -> Result<Room, TestClientError> {
        self.get(&format!("/api/rooms/{room}")).await
    }

    pub async fn post_message(&self, room: RoomId, post: &TestPost) -> Result<PostReply, TestClientError> {
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

    pub async fn run(&self, run: RunId) -> Result<Run, TestClientError> {
        self.get(&format!("/api/runs/{run}")).await
    }

    pub async fn runs(&self, room: RoomId, status: RunStatus, limit: usize) -> Result<Vec<Run>, TestClientError> {
        let found: RunList = self.get(&format!("/api/runs?room_id={room}&status={status}&limit={limit}")).await?;
        Ok(found.runs)
    }

    pub async fn cancel_run(&self, run: RunId) -> Result<CancelReply, TestClientError> {
        self.send(self.request(Method::POST, &format!("/api/runs/{run}/cancel"))).await
    }

    /// Allows a tool call that waits for an approval.
    pub async fn allow(&self, run: RunId, approval: ApprovalId) -> Result<(), TestClientError> {
        let path = format!("/api/runs/{run}/approvals/{approval}");
        self.text(self.request(Method::POST, &path).json(&json!({"decision": "allow"}))).await.map(drop)
    }

    pub async fn events(&self, room: RoomId, after: &Position, limit: usize) -> Result<SeenPage, TestClientError> {
        let path = format!("/api/rooms/{room}/events?after={}&limit={limit}", position_text(after));
        let text = self.text(self.request(Method::GET, &path)).await?;
        let page: RawEventPage<'_> =
            serde_json::from_str(&text).map_err(|error| TestClientError::unexpected(format!("{path}: {error}")))?;
        let events = page.events.iter().map(|event| SeenEvent::parse(event.get())).collect::<Result<_, _>>()?;
        Ok(SeenPage { epoch: page.epoch, head: page.head, events })
    }

    /// Fetches the whole journal of a room, page by page.
    pub async fn journal(&self, room: RoomId, page_size: usize) -> Result<Vec<SeenEvent>, TestClientError> {
        let mut position = Position::START;
        let mut events: Vec<SeenEvent> = Vec::new();
        loop {
            let page = self.events(room, &position, page_size).await?;
            let Some(last) = page.events.last() else { return Ok(events) };
            position = Position { epoch: Some(page.epoch), seq: last.seq };
            events.extend(page.events);
        }
    }

    /// Fetches the newest messages, or the newest before a seq.
    pub async fn messages(
        &self,
        room: RoomId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<SeenHistory, TestClientError> {
        let before = before.map(|seq| format!("&before={seq}")).unwrap_or_default();
        self.get(&format!("/api/rooms/{room}/messages?limit={limit}{before}")).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, TestClientError> {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends a request and parses the JSON response or the problem.
    pub async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, TestClientError> {
        let text = self.text(request).await?;
        serde_json::from_str(&text).map_err(|error| TestClientError::unexpected(format!("{error} in {text}")))
    }

    async fn text(&self, request: RequestBuilder) -> Result<String, TestClientError> {
        let answer = request.timeout(DEADLINE).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_success() { Ok(text) } else { Err(problem(status.as_u16(), &text)) }
    }
}

/// Parses an error response.
pub(super) fn problem(status: u16, body: &str) -> TestClientError {
    match serde_json::from_str::<ProblemBody>(body) {
        Ok(problem) => TestClientError::Problem { status, code: problem.code, detail: problem.detail },
        Err(_) => TestClientError::unexpected(format!("status {status} without a problem body: {body}")),
    }
}
