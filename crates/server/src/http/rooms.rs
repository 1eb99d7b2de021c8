//! Rooms: conversations with their participants.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{
        Created, PurgeParams, attempt, named_page::page_limit, room_policy, room_policy::RoomPolicyChange, run_once,
    },
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, ProjectId, RoomId},
    name::Name,
    room::{RoomPlacementPatch, RoomPolicy, RoomSummary},
};
use engine::commands::{NewRoom, RoomPatch, StoppedRoom, StoppedRun};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{InvalidCursor, ListCursor};

#[derive(Serialize, utoipa::ToSchema)]
pub struct RoomList {
    rooms: Vec<RoomSummary>,
    /// Send it as `before` to get the next page; `null` on the last page.
    next: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RoomListParams {
    /// Maximum number of rooms.
    #[param(minimum = 1, maximum = 1000, default = 200)]
    limit: Option<u32>,
    /// The `next` of the previous page.
    #[param(pattern = "^[0-9]{1,15}[.][0-9a-f]{32}$", example = "1763371800000.0199c1de7d3f70008000000000000001")]
    before: Option<String>,
    /// Only rooms that are archived, or that are not. Default: all.
    archived: Option<bool>,
}

/// List rooms
///
/// Most recent activity first, in pages, each with its current activity and its last message. New rooms do not change the
/// pages after `before`.
#[utoipa::path(get, path = "/api/rooms", tag = "rooms", params(RoomListParams),
               responses((status = 200, body = RoomList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(params): QueryParams<RoomListParams>,
) -> Result<Json<RoomList>, Problem> {
    let limit = page_limit(params.limit, 200)?;
    let before = params.before.as_deref().map(str::parse).transpose();
    let before = before
        .map_err(|error: InvalidCursor| Problem::invalid(format!("before: {error}.")).with("parameter", "before"))?;
    // One extra room shows whether there is a next page.
    let mut rooms = app.engine.queries().rooms_before(&caller.workspace, before, params.archived, limit + 1).await?;
    let more = rooms.len() > limit as usize;
    rooms.truncate(limit as usize);
    let next = rooms.last().filter(|_| more).map(|last| ListCursor::of_room(last).to_string());
    Ok(Json(RoomList { rooms, next }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomSpec {
    name: Name,
    /// In the order they join.
    #[serde(default)]
    #[schema(max_items = 32)]
    agents: Vec<AgentId>,
    /// The project in whose folder the agents work; it stays the same. Without one the room has a folder of its own.
    #[serde(default)]
    project_id: Option<ProjectId>,
    /// Who speaks when. Missing fields have the defaults of a new room.
    #[serde(default)]
    #[schema(value_type = Option<RoomPolicyChange>)]
    policy: Option<Value>,
}

/// Create a room
///
/// Its agents answer every message, in their order in `agents`.
#[utoipa::path(post, path = "/api/rooms", tag = "rooms", request_body = RoomSpec,
               responses((status = 201, body = RoomSummary)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<RoomSpec>,
) -> Result<Created<RoomSummary>, Problem> {
    let RoomSpec { name, agents, project_id, policy } = spec;
    let policy = match policy {
        Some(patch) => RoomPolicy::for_new_room()
            .merged(room_policy::checked(patch)?)
            .map_err(|error| Problem::invalid(error.to_string()).with("pointer", "/policy"))?,
        None => RoomPolicy::for_new_room(),
    };
    let new = NewRoom { name, agents, project_id, policy };
    let room = app.engine.create_room(&caller, new, attempt(key, fingerprint).as_ref()).await?;
    Ok(Created::at("/api/rooms", room.id, app.engine.queries().room_summary(&caller.workspace, room.id).await?))
}

/// Get a room
///
/// With its current activity and its last message.
#[utoipa::path(get, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = RoomSummary)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<RoomSummary>, Problem> {
    Ok(Json(app.engine.queries().room_summary(&caller.workspace, id).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomChange {
    #[serde(default)]
    name: Option<Name>,
    /// The fields of the policy to change, also while agents answer: what is planned already stays.
    #[serde(default)]
    #[schema(value_type = Option<RoomPolicyChange>)]
    policy: Option<Value>,
    /// The new list of participants; it replaces the old one.
    #[serde(default)]
    #[schema(max_items = 32)]
    agents: Option<Vec<AgentId>>,
    /// Whether the room stays at the top of lists, for everybody in the workspace.
    #[serde(default)]
    pinned: Option<bool>,
    /// Whether the room is out of sight, for everybody in the workspace.
    #[serde(default)]
    archived: Option<bool>,
    /// The folder that the room is shown in; `null` takes it out.
    #[serde(default, deserialize_with = "super::present")]
    #[schema(value_type = Option<Name>)]
    folder: Option<Option<Name>>,
}

/// Update a room
///
/// Fields in the body are replaced, all others stay, in the policy and the settings of its agents too. Joining and leaving agents are events of the room.
#[utoipa::path(patch, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path)),
               request_body = RoomChange, responses((status = 200, body = RoomSummary)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(change, fingerprint): JsonBody<RoomChange>,
) -> Result<Json<RoomSummary>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let RoomChange { name, policy, agents, pinned, archived, folder } = change;
    let policy = policy.map(room_policy::checked).transpose()?;
    let patch = RoomPatch { name, policy, agents, placement: RoomPlacementPatch { pinned, archived, folder } };
    let write = async { Ok(app.engine.update_room(actor, id, patch, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(app.engine.queries().room_summary(&actor.workspace, id).await?))
}

/// Delete a room
///
/// Its runs are stopped first. It is hidden at once, and erased after a grace period: messages, events, files, and
/// attachments that no other room has. What its runs have cost is still counted.
#[utoipa::path(delete, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path), PurgeParams),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    QueryParams(PurgeParams { purge }): QueryParams<PurgeParams>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async {
        match purge {
            true => app.engine.purge_room(actor, id, attempt.as_ref()).await?,
            false => app.engine.delete_room(actor, id, attempt.as_ref()).await?,
        }
        Ok(())
    };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StoppedRuns {
    /// How many runs were cancelled.
    count: usize,
    /// The first 100 of them.
    runs: Vec<StoppedRun>,
}

/// Cancel all runs of a room
///
/// Returns when all runs have stopped.
#[utoipa::path(post, path = "/api/rooms/{id}/cancel", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = StoppedRuns)))]
pub async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<StoppedRuns>, Problem> {
    let StoppedRoom { count, runs } = app.engine.cancel_room(&caller, id).await?;
    Ok(Json(StoppedRuns { count, runs }))
}
