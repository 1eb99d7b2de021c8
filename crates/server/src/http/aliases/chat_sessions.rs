//! `/api/chat/sessions`: a room with one agent, under the name that chat apps give it.

use super::AliasSuccess;
use crate::{
    App,
    auth::Caller,
    error::{Code, Problem},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody},
    feed::{
        dialect::{Dialect, StreamFrom, StreamOptions, StreamPosition, open_run},
        sse,
    },
    http::{attempt, run_once},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Author, Message},
    name::Name,
    room::{RoomPolicy, RoomSummary},
    time::Timestamp,
};
use engine::commands::{NewPost, NewRoom};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const MAX_SESSIONS: u32 = 1000;
const MAX_MESSAGES: u32 = 1000;

/// A chat session to create. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewChatSession {
    /// The name of the room; the name of the agent by default.
    #[serde(default)]
    title: Option<Name>,
    /// By default the first agent of the workspace.
    #[serde(default)]
    agent_id: Option<AgentId>,
    /// Not supported: agents have skills.
    #[serde(default)]
    skill_ids: Vec<Value>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatSession {
    /// The id of the room.
    id: RoomId,
    /// The name of the room.
    title: Name,
    /// The first agent of the room.
    agent_id: Option<AgentId>,
    /// Always empty: agents have skills.
    skill_ids: Vec<String>,
    /// Always false.
    is_archived: bool,
    /// When the last message was posted or answered; `null` without one.
    last_message_at: Option<Timestamp>,
    /// When the room was created.
    created_at: Timestamp,
    /// When the room was last changed.
    updated_at: Timestamp,
}

impl From<RoomSummary> for ChatSession {
    fn from(RoomSummary { room, last_message, .. }: RoomSummary) -> Self {
        Self {
            id: room.id,
            title: room.name,
            agent_id: room.agents.first().copied(),
            skill_ids: Vec::new(),
            is_archived: false,
            last_message_at: last_message.map(|message| message.created_at),
            created_at: room.created_at,
            updated_at: room.updated_at,
        }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ChatSessionBody {
    /// The chat session.
    session: ChatSession,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ChatSessionList {
    /// The newest 1000, most recent activity first.
    sessions: Vec<ChatSession>,
}

/// List chat sessions
///
/// Alias of `GET /api/rooms`.
#[utoipa::path(get, path = "/api/chat/sessions", tag = "aliases", responses((status = 200, body = ChatSessionList)))]
pub async fn list_chat_sessions(State(app): State<App>, caller: Caller) -> Result<Json<ChatSessionList>, Problem> {
    let rooms = app.engine.queries().rooms(&caller.workspace, MAX_SESSIONS).await?;
    Ok(Json(ChatSessionList { sessions: rooms.into_iter().map(ChatSession::from).collect() }))
}

/// Create a chat session
///
/// Alias of `POST /api/rooms`.
#[utoipa::path(post, path = "/api/chat/sessions", tag = "aliases", request_body = NewChatSession,
               responses((status = 201, body = ChatSessionBody)))]
pub async fn create_chat_session(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewChatSession>,
) -> Result<(StatusCode, Json<ChatSessionBody>), Problem> {
    if !new.skill_ids.is_empty() {
        let why = "skillIds: agents have skills, chat sessions do not; give them to the agent.";
        return Err(Problem::unprocessable(why).with("pointer", "/skillIds"));
    }
    let (queries, owner) = (app.engine.queries(), &caller.workspace);
    let agent = match new.agent_id {
        Some(id) => queries.agent(owner, id).await?,
        None => queries.agents(owner).await?.into_iter().next().ok_or_else(|| {
            let why = "agentId: there is no agent yet; create one first.";
            Problem::unprocessable(why).with("pointer", "/agentId")
        })?,
    };
    let name = new.title.unwrap_or_else(|| agent.spec.name.clone());
    let room = NewRoom { name, agents: vec![agent.id], project_id: None, policy: RoomPolicy::for_new_room() };
    let room = app.engine.create_room(&caller, room, attempt(key, fingerprint).as_ref()).await?;
    let session = queries.room_summary(owner, room.id).await?.into();
    Ok((StatusCode::CREATED, Json(ChatSessionBody { session })))
}

/// Get a chat session
///
/// Alias of `GET /api/rooms/{id}`.
#[utoipa::path(get, path = "/api/chat/sessions/{id}", tag = "aliases", params(("id" = RoomId, Path)),
               responses((status = 200, body = ChatSessionBody)))]
pub async fn get_chat_session(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
) -> Result<Json<ChatSessionBody>, Problem> {
    let session = app.engine.queries().room_summary(&caller.workspace, id).await?.into();
    Ok(Json(ChatSessionBody { session }))
}

/// Delete a chat session
///
/// Alias of `DELETE /api/rooms/{id}`.
#[utoipa::path(delete, path = "/api/chat/sessions/{id}", tag = "aliases", params(("id" = RoomId, Path)),
               responses((status = 200, body = AliasSuccess)))]
pub async fn delete_chat_session(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<AliasSuccess>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_room(actor, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(AliasSuccess { success: true }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ChatMessageList {
    /// Oldest first.
    messages: Vec<ChatMessage>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    /// The id of the message.
    id: MessageId,
    /// The id of the chat session.
    session: RoomId,
    /// Who wrote it.
    role: ChatRole,
    /// The text of the message.
    content: String,
    /// The run of an answer; `…/messages/{streamId}/cancel` stops it.
    stream_id: Option<RunId>,
    /// When the message began.
    created_at: Timestamp,
    /// The same time.
    updated_at: Timestamp,
}

#[derive(Clone, Copy, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    User,
    Assistant,
}

impl ChatRole {
    pub(super) fn of(author: &Author) -> Self {
        match author {
            Author::Person { .. } => Self::User,
            Author::Agent { .. } => Self::Assistant,
        }
    }
}

impl From<Message> for ChatMessage {
    fn from(message: Message) -> Self {
        Self {
            id: message.id,
            session: message.room_id,
            role: ChatRole::of(&message.author),
            content: message.text,
            stream_id: message.run_id,
            created_at: message.created_at,
            updated_at: message.created_at,
        }
    }
}

/// List the messages of a chat session
///
/// Alias of `GET /api/rooms/{id}/messages`: the newest 1000, oldest first.
#[utoipa::path(get, path = "/api/chat/sessions/{id}/messages", tag = "aliases", params(("id" = RoomId, Path)),
               responses((status = 200, body = ChatMessageList)))]
pub async fn list_chat_messages(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
) -> Result<Json<ChatMessageList>, Problem> {
    let _reading = app.shares.read_page(&caller).await?;
    let history = app.engine.queries().history(&caller.workspace, id, 0, None, MAX_MESSAGES).await?;
    Ok(Json(ChatMessageList { messages: history.messages.into_iter().map(ChatMessage::from).collect() }))
}

/// A message to send. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct NewChatMessage {
    /// The text of the message.
    #[schema(min_length = 1, pattern = "\\S")]
    message: String,
    /// Not supported here: upload files, and post to the room.
    #[serde(default)]
    attachments: Vec<Value>,
}

/// Send a message to a chat session
///
/// Alias of `POST /api/rooms/{id}/messages`, answered as the stream of its run in the dialect `messages`. A request with the
/// `Last-Event-ID` of that stream continues it and sends nothing.
#[utoipa::path(post, path = "/api/chat/sessions/{id}/messages", tag = "aliases", params(("id" = RoomId, Path)),
               request_body = NewChatMessage,
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and the client has its last event")))]
pub async fn send_chat_message(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    headers: HeaderMap,
    JsonBody(new, fingerprint): JsonBody<NewChatMessage>,
) -> Result<Response, Problem> {
    let options = StreamOptions { dialect: Dialect::Messages, ..StreamOptions::default() };
    // Before the post, so that none is stored for a stream that is refused.
    let permit = app.shares.open_stream(&caller)?;
    if let Some(at) = sse::last_event_id(&headers)? {
        let at: StreamPosition = at.parse().map_err(|_| Problem::invalid("Last-Event-ID is not of this stream."))?;
        let run = app.engine.queries().run(&caller.workspace, at.run).await?;
        if run.room_id != id {
            return Err(Problem::not_found());
        }
        return open_run(&app, &caller, permit, &run, StreamFrom::After(at), options).await;
    }
    if !new.attachments.is_empty() {
        let why = "attachments: upload files with POST /api/uploads, and post them with POST /api/rooms/{id}/messages.";
        return Err(Problem::unprocessable(why).with("pointer", "/attachments"));
    }
    let post = NewPost::new(new.message);
    let posted = app.engine.post_message(&caller, id, post, attempt(key, fingerprint).as_ref()).await?;
    let Some(run) = posted.runs.first() else {
        return Err(Problem::new(Code::Conflict, "The message is stored, but the room has no agent to answer it."));
    };
    let run = app.engine.queries().run(&caller.workspace, run.id).await?;
    open_run(&app, &caller, permit, &run, StreamFrom::Message(posted.message.seq), options).await
}

/// Cancel the answers of a chat session
///
/// Alias of `POST /api/rooms/{id}/cancel`.
#[utoipa::path(post, path = "/api/chat/sessions/{id}/cancel", tag = "aliases", params(("id" = RoomId, Path)),
               responses((status = 200, body = AliasSuccess)))]
pub async fn cancel_chat_session(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
) -> Result<Json<AliasSuccess>, Problem> {
    app.engine.cancel_room(&caller, id).await?;
    Ok(Json(AliasSuccess { success: true }))
}

/// Cancel an answer of a chat session
///
/// Alias of `POST /api/runs/{id}/cancel`; the stream's id is the id of the run, with which every `id:` of the stream begins.
#[utoipa::path(post, path = "/api/chat/sessions/{id}/messages/{stream}/cancel", tag = "aliases",
               params(("id" = RoomId, Path), ("stream" = RunId, Path)),
               responses((status = 200, body = AliasSuccess)))]
pub async fn cancel_chat_message(
    State(app): State<App>,
    caller: Caller,
    Id((room, run)): Id<(RoomId, RunId)>,
) -> Result<Json<AliasSuccess>, Problem> {
    if app.engine.queries().run(&caller.workspace, run).await?.room_id != room {
        return Err(Problem::not_found());
    }
    app.engine.cancel_run(&caller, run).await?;
    Ok(Json(AliasSuccess { success: true }))
}
