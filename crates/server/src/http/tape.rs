//! The tape of a room: who speaks next, and what people change about it.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, IdempotencyKey, JsonBody},
    http::attempt,
};
use axum::{Json, extract::State, http::StatusCode};
use domain::ids::{AgentId, MessageId, RoomId};
use engine::commands::{RunRef, TapeCommand, TapeView};
use serde::Deserialize;

/// Get the tape of a room
///
/// The cells that run, are queued and are planned, with the reason of each. The agents of a cell answer at the same time,
/// the cells one after another.
#[utoipa::path(get, path = "/api/rooms/{id}/tape", tag = "tape", params(("id" = RoomId, Path)),
               responses((status = 200, body = TapeView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.tape(&caller, id).await?))
}

/// Pause a room
///
/// Runs that have started finish; nothing else starts until the room is resumed. Messages are stored and planned.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/pause", tag = "tape", params(("id" = RoomId, Path)),
               responses((status = 200, body = TapeView)))]
pub async fn pause(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.command_tape(&caller, id, TapeCommand::Pause).await?))
}

/// Resume a room
///
/// What was planned starts.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/resume", tag = "tape", params(("id" = RoomId, Path)),
               responses((status = 200, body = TapeView)))]
pub async fn resume(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.command_tape(&caller, id, TapeCommand::Resume).await?))
}

/// Start the next cell of a paused room
///
/// The room stays paused behind it.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/step", tag = "tape", params(("id" = RoomId, Path)),
               responses((status = 200, body = TapeView)))]
pub async fn step(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.command_tape(&caller, id, TapeCommand::Step).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkippedCell {
    /// A planned cell, or the running one, which is cancelled. By default the next planned cell.
    #[serde(default)]
    cell: Option<String>,
}

/// Skip a cell
///
/// The plan goes on behind it.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/skip", tag = "tape", params(("id" = RoomId, Path)),
               request_body = SkippedCell, responses((status = 200, body = TapeView)))]
pub async fn skip(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    JsonBody(SkippedCell { cell }, _): JsonBody<SkippedCell>,
) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.command_tape(&caller, id, TapeCommand::Skip { cell }).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertedCell {
    agent_id: AgentId,
    /// How many planned cells come before it; 0 by default.
    #[serde(default)]
    #[schema(maximum = 65535)]
    at: Option<u16>,
}

/// Insert a turn of an agent
///
/// As a cell of its own.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/insert", tag = "tape", params(("id" = RoomId, Path)),
               request_body = InsertedCell, responses((status = 200, body = TapeView)))]
pub async fn insert(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    JsonBody(InsertedCell { agent_id: agent, at }, _): JsonBody<InsertedCell>,
) -> Result<Json<TapeView>, Problem> {
    Ok(Json(app.engine.command_tape(&caller, id, TapeCommand::Insert { agent, at: at.map(usize::from) }).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CellOrder {
    /// Every planned cell, in the new order.
    #[serde(default)]
    cells: Vec<String>,
    /// Every waiting message, in the new order: those of which no answer has started. Give this or `cells`.
    #[serde(default)]
    messages: Vec<MessageId>,
}

/// Reorder the planned cells, or the waiting messages
///
/// What has started keeps its place. Messages whose runs are queued stay before those that are only planned. An agent reads every
/// message that was posted before its run starts, in the order of posting.
#[utoipa::path(post, path = "/api/rooms/{id}/tape/reorder", tag = "tape", params(("id" = RoomId, Path)),
               request_body = CellOrder, responses((status = 200, body = TapeView)))]
pub async fn reorder(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    JsonBody(CellOrder { cells, messages }, _): JsonBody<CellOrder>,
) -> Result<Json<TapeView>, Problem> {
    let command = match (cells.is_empty(), messages.is_empty()) {
        (false, true) => TapeCommand::Reorder { cells },
        (true, false) => TapeCommand::ReorderMessages { messages },
        _ => return Err(Problem::unprocessable("Send either cells or messages, in their new order.")),
    };
    Ok(Json(app.engine.command_tape(&caller, id, command).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartedRun {
    /// By default the first agent of the room.
    #[serde(default)]
    agent_id: Option<AgentId>,
}

/// Start a run without a new message
///
/// The agent answers the newest message of the caller.
#[utoipa::path(post, path = "/api/rooms/{id}/runs", tag = "runs", params(("id" = RoomId, Path)),
               request_body = StartedRun, responses((status = 202, body = RunRef)))]
pub async fn start_run(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(StartedRun { agent_id }, fingerprint): JsonBody<StartedRun>,
) -> Result<(StatusCode, Json<RunRef>), Problem> {
    let attempt = attempt(key, fingerprint);
    let run = app.engine.start_run(&caller, id, agent_id, attempt.as_ref()).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}
