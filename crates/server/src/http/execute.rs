//! Execute: sends one message to an agent and streams the answer.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, IdempotencyKey, JsonBody, QueryParams},
    feed::{ExecuteStream, RoomReader},
    http::attempt,
};
use axum::{extract::State, response::Response};
use domain::{
    actor::Actor,
    ids::{AgentId, RoomId},
    position::Position,
    room::WhenBusy,
};
use engine::commands::{ExecuteRequest, OnDisconnect};
use serde::Deserialize;
use store::IdempotentRequest;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Task)]
pub struct ExecuteParams {
    #[schema(examples("!count 20 100"))]
    message: String,
    /// The room to continue in; a new room by default.
    #[serde(default, rename = "conversationId")]
    conversation_id: Option<RoomId>,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    /// What happens to the run when the client disconnects.
    #[serde(default)]
    on_disconnect: OnDisconnect,
}

/// The same in a URL.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExecuteQuery {
    message: String,
    /// The room to continue in; a new room by default.
    #[serde(default, rename = "conversationId")]
    conversation_id: Option<RoomId>,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    /// What happens to the run when the client disconnects.
    #[serde(default)]
    on_disconnect: OnDisconnect,
    /// A one-time ticket, for clients that cannot send a header. It was checked before the handler.
    #[serde(default, rename = "ticket")]
    _ticket: Option<String>,
}

impl From<ExecuteQuery> for ExecuteParams {
    fn from(query: ExecuteQuery) -> Self {
        let ExecuteQuery { message, conversation_id, when_busy, on_disconnect, .. } = query;
        Self { message, conversation_id, when_busy, on_disconnect }
    }
}

/// Execute an agent
///
/// Returns server-sent events: `status`, `message` (assistant, thinking, tool_use, tool_result), `completion` with
/// tokens, cost and duration, `error` or `cancelled`, and finally `data: done`.
#[utoipa::path(post, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path)),
               request_body = ExecuteParams, responses((status = 200, content_type = "text/event-stream", body = String)))]
pub async fn post(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    key: IdempotencyKey,
    JsonBody(task, fingerprint): JsonBody<ExecuteParams>,
) -> Result<Response, Problem> {
    execute(&app, &caller, agent, task, attempt(key, fingerprint).as_ref()).await
}

/// Execute an agent with a GET request
///
/// The same for clients that can only GET, such as a browser's EventSource. Every request starts a new run. A cookie is not
/// enough: send a token, or a one-time ticket.
#[utoipa::path(get, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path), ExecuteQuery),
               responses((status = 200, content_type = "text/event-stream", body = String)))]
pub async fn get(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    QueryParams(query): QueryParams<ExecuteQuery>,
) -> Result<Response, Problem> {
    execute(&app, &caller, agent, query.into(), None).await
}

async fn execute(
    app: &App,
    actor: &Actor,
    agent: AgentId,
    task: ExecuteParams,
    attempt: Option<&IdempotentRequest>,
) -> Result<Response, Problem> {
    let ExecuteParams { message, conversation_id: conversation, when_busy, on_disconnect } = task;
    // Before the run, so that none is started for a stream that is refused.
    let permit = app.shares.open_stream(actor)?;
    let posted = app.engine.execute(actor, agent, ExecuteRequest { message, conversation, when_busy }, attempt).await?;
    let Some(run) = posted.runs.first() else {
        return Err(Problem::internal("execute created no run"));
    };
    let room = posted.message.room_id;
    let after = Position { epoch: None, seq: posted.message.seq };
    let live = RoomReader::open(app, actor, permit, room, &after).await?;
    Ok(ExecuteStream::new(app, actor, live, room, run.id, on_disconnect).respond())
}
