//! One shot: a message to an agent, answered as a stream in simple words.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Body, Id, IdempotencyKey, Params},
    feed::{Dialect, Live},
    http::attempt,
};
use axum::{extract::State, response::Response};
use domain::{
    ids::{AgentId, RoomId},
    owner::Principal,
    position::Position,
    room::WhenBusy,
};
use engine::commands::{Execute, OnDisconnect};
use serde::Deserialize;
use store::Attempt;

#[derive(Deserialize, utoipa::ToSchema, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Task {
    #[schema(examples("!count 20 100"))]
    message: String,
    /// A room to go on in; a new one when left out.
    #[serde(default, rename = "conversationId")]
    conversation_id: Option<RoomId>,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    /// What becomes of the run when this request is dropped.
    #[serde(default)]
    on_disconnect: OnDisconnect,
}

/// Ask an agent
///
/// Answered as server-sent events: `status`, `message` (assistant, thinking, tool_use, tool_result), `completion` with
/// tokens, cost and duration, `error` or `cancelled`, and at last `data: done`.
#[utoipa::path(post, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path)),
               request_body = Task, responses((status = 200, content_type = "text/event-stream", body = String)))]
pub async fn post(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    key: IdempotencyKey,
    Body(task, fingerprint): Body<Task>,
) -> Result<Response, Problem> {
    execute(&app, &caller, agent, task, attempt(key, fingerprint).as_ref()).await
}

/// Ask an agent, by URL
///
/// The same for clients that can only GET, such as a browser's EventSource. Each request asks anew.
#[utoipa::path(get, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path), Task),
               responses((status = 200, content_type = "text/event-stream", body = String)))]
pub async fn get(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    Params(task): Params<Task>,
) -> Result<Response, Problem> {
    execute(&app, &caller, agent, task, None).await
}

async fn execute(
    app: &App,
    principal: &Principal,
    agent: AgentId,
    task: Task,
    attempt: Option<&Attempt>,
) -> Result<Response, Problem> {
    let owner = &principal.owner;
    let Task { message, conversation_id: conversation, when_busy, on_disconnect } = task;
    let posted = app.engine.execute(owner, agent, Execute { message, conversation, when_busy }, attempt).await?;
    let Some(run) = posted.runs.first() else {
        return Err(Problem::internal("an execution without a run"));
    };
    let room = posted.message.room_id;
    let after = Position { epoch: None, seq: posted.message.seq };
    let live = Live::open(app, principal, room, &after).await?;
    Ok(Dialect::new(app, owner, live, room, run.id, on_disconnect).respond())
}
