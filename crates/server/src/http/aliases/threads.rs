//! `/api/threads` and `/api/agent-runs`: a room as a thread, where adding a message and starting an agent are two requests.

use super::chat_sessions::ChatRole;
use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, IdempotencyKey, JsonBody},
    feed::dialect::Dialect,
    http::{attempt, runs},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    message::Message,
    name::Name,
    room::RoomPolicy,
    run::RunStatus,
    time::Timestamp,
};
use engine::commands::NewRoom;
use serde::{Deserialize, Serialize};

const MAX_MESSAGES: u32 = 1000;
const UNNAMED: &str = "Thread";

/// A thread to create. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct NewThread {
    /// The name of the room; `Thread` by default.
    #[serde(default)]
    name: Option<Name>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ThreadRef {
    /// The id of the room.
    thread_id: RoomId,
}

/// Create a thread
///
/// Alias of `POST /api/rooms`, without agents: an agent joins when it is started.
#[utoipa::path(post, path = "/api/threads", tag = "aliases", request_body = NewThread,
               responses((status = 201, body = ThreadRef)))]
pub async fn create_thread(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewThread>,
) -> Result<(StatusCode, Json<ThreadRef>), Problem> {
    let name = new.name.map_or_else(|| Name::parse(UNNAMED), Ok).map_err(Problem::internal)?;
    let room = NewRoom { name, agents: Vec::new(), project_id: None, policy: RoomPolicy::for_new_room() };
    let room = app.engine.create_room(&caller, room, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::CREATED, Json(ThreadRef { thread_id: room.id })))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ThreadMessageList {
    /// Oldest first.
    messages: Vec<ThreadMessage>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ThreadMessage {
    /// The id of the message.
    message_id: MessageId,
    /// The id of the room.
    thread_id: RoomId,
    /// Who wrote it.
    #[serde(rename = "type")]
    kind: ChatRole,
    /// Always true: models get every message of the thread.
    is_llm_message: bool,
    /// The role and the text of the message.
    content: ThreadContent,
    /// When the message began.
    created_at: Timestamp,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ThreadContent {
    /// Who wrote it.
    role: ChatRole,
    /// The text of the message.
    content: String,
}

impl From<Message> for ThreadMessage {
    fn from(message: Message) -> Self {
        let role = ChatRole::of(&message.author);
        Self {
            message_id: message.id,
            thread_id: message.room_id,
            kind: role,
            is_llm_message: true,
            content: ThreadContent { role, content: message.text },
            created_at: message.created_at,
        }
    }
}

/// List the messages of a thread
///
/// Alias of `GET /api/rooms/{id}/messages`: the newest 1000, oldest first.
#[utoipa::path(get, path = "/api/threads/{id}/messages", tag = "aliases", params(("id" = RoomId, Path)),
               responses((status = 200, body = ThreadMessageList)))]
pub async fn list_thread_messages(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
) -> Result<Json<ThreadMessageList>, Problem> {
    let _reading = app.shares.read_page(&caller).await?;
    let history = app.engine.queries().history(&caller.workspace, id, 0, None, MAX_MESSAGES).await?;
    Ok(Json(ThreadMessageList { messages: history.messages.into_iter().map(ThreadMessage::from).collect() }))
}

/// A message to add. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct NewThreadMessage {
    /// A text, or an object with one in `content`.
    #[serde(alias = "message", alias = "text")]
    content: NewThreadContent,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
enum NewThreadContent {
    Text(String),
    Object(WrappedThreadText),
}

#[derive(Deserialize, utoipa::ToSchema)]
struct WrappedThreadText {
    /// The text.
    #[schema(min_length = 1, pattern = "\\S")]
    content: String,
}

/// Add a message to a thread
///
/// No agent answers it before one is started.
#[utoipa::path(post, path = "/api/threads/{id}/messages", tag = "aliases", params(("id" = RoomId, Path)),
               request_body = NewThreadMessage, responses((status = 201, body = ThreadMessage)))]
pub async fn add_thread_message(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewThreadMessage>,
) -> Result<(StatusCode, Json<ThreadMessage>), Problem> {
    let (NewThreadContent::Text(text) | NewThreadContent::Object(WrappedThreadText { content: text })) = new.content;
    let message = app.engine.add_message(&caller, id, text, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::CREATED, Json(message.into())))
}

/// Which agent to start. Other fields, such as the name of a model, are ignored: an agent has its own.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct AgentStart {
    /// By default the agent of the thread, or the first one of the workspace.
    #[serde(default)]
    agent_id: Option<AgentId>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StartedAgentRun {
    /// The id of the run.
    agent_run_id: RunId,
    /// Always `running`; the run may still wait for its turn.
    status: &'static str,
}

/// Start an agent in a thread
///
/// The agent joins the thread and answers your newest message in it.
#[utoipa::path(post, path = "/api/threads/{id}/agent/start", tag = "aliases", params(("id" = RoomId, Path)),
               request_body = AgentStart, responses((status = 200, body = StartedAgentRun)))]
pub async fn start_agent(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(start, fingerprint): JsonBody<AgentStart>,
) -> Result<Json<StartedAgentRun>, Problem> {
    let run = app.engine.start_run(&caller, id, start.agent_id, attempt(key, fingerprint).as_ref()).await?;
    Ok(Json(StartedAgentRun { agent_run_id: run.id, status: "running" }))
}

/// Stream a run of an agent
///
/// Alias of `GET /api/runs/{id}/stream?dialect=messages`.
#[utoipa::path(get, path = "/api/agent-runs/{id}/stream", tag = "aliases", params(("id" = RunId, Path)),
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and the client has its last event")))]
pub async fn stream_agent_run(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = app.engine.queries().run(&caller.workspace, id).await?;
    runs::stream_in_dialect(&app, &caller, &run, Dialect::Messages, &headers).await
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StoppedAgentRun {
    /// `stopped`, or how the run had ended before.
    status: &'static str,
}

/// Stop a run of an agent
///
/// Alias of `POST /api/runs/{id}/cancel`.
#[utoipa::path(post, path = "/api/agent-runs/{id}/stop", tag = "aliases", params(("id" = RunId, Path)),
               responses((status = 200, body = StoppedAgentRun)))]
pub async fn stop_agent_run(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<Json<StoppedAgentRun>, Problem> {
    let status = match app.engine.cancel_run(&caller, id).await?.status {
        RunStatus::Cancelled | RunStatus::Interrupted => "stopped",
        status => status.as_str(),
    };
    Ok(Json(StoppedAgentRun { status }))
}
