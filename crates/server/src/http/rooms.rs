//! Rooms: conversations with their participants.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Body, Fingerprint, Id, IdempotencyKey, Params},
    http::{agents::LimitParams, attempt, once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, ProjectId, RoomId},
    name::Name,
    room::{RoomPolicy, RoomSummary},
};
use engine::commands::{NewRoom, Stopped};
use serde::{Deserialize, Serialize};

#[derive(Serialize, utoipa::ToSchema)]
pub struct RoomList {
    rooms: Vec<RoomSummary>,
}

/// The rooms there are
///
/// Newest activity first, each with what goes on in it and what was said last.
#[utoipa::path(get, path = "/api/rooms", tag = "rooms", params(crate::http::agents::Limit),
               responses((status = 200, body = RoomList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(limit): LimitParams,
) -> Result<Json<RoomList>, Problem> {
    Ok(Json(RoomList { rooms: app.engine.store().rooms(&caller.owner, limit.get()?).await? }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomSpec {
    name: Name,
    /// They answer in this order.
    #[serde(default)]
    agents: Vec<AgentId>,
    #[serde(default)]
    project_id: Option<ProjectId>,
    #[serde(default)]
    policy: RoomPolicy,
}

/// Make a room
#[utoipa::path(post, path = "/api/rooms", tag = "rooms", request_body = RoomSpec,
               responses((status = 201, body = RoomSummary)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    Body(spec, fingerprint): Body<RoomSpec>,
) -> Result<(StatusCode, Json<RoomSummary>), Problem> {
    if spec.project_id.is_some() {
        return Err(Problem::invalid("project_id: this server has no projects yet; leave it out."));
    }
    let new = NewRoom { name: spec.name, agents: spec.agents, project_id: None, policy: spec.policy };
    let room = app.engine.create_room(&caller.owner, new, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::CREATED, Json(app.engine.store().room_summary(&caller.owner, room.id).await?)))
}

/// One room
#[utoipa::path(get, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = RoomSummary)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<RoomSummary>, Problem> {
    Ok(Json(app.engine.store().room_summary(&caller.owner, id).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomChange {
    #[serde(default)]
    name: Option<Name>,
    #[serde(default)]
    policy: Option<RoomPolicy>,
    /// Exactly these sit in the room from now on.
    #[serde(default)]
    agents: Option<Vec<AgentId>>,
}

/// Change a room
///
/// What the body names is replaced, the rest stays. Who joins or leaves is an event of the room.
#[utoipa::path(patch, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path)),
               request_body = RoomChange, responses((status = 200, body = RoomSummary)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    Body(change, fingerprint): Body<RoomChange>,
) -> Result<Json<RoomSummary>, Problem> {
    let (store, owner, attempt) = (app.engine.store(), &caller.owner, attempt(key, fingerprint));
    let write = async {
        let room = store.room(owner, id).await?;
        if let Some(agents) = &change.agents {
            app.engine.seat(owner, id, agents).await?;
        }
        let name = change.name.unwrap_or(room.name);
        let policy = change.policy.unwrap_or(room.policy);
        Ok(store.update_room(owner, id, &name, &policy, attempt.as_ref()).await?)
    };
    once(&app, owner, attempt.as_ref(), write).await?;
    Ok(Json(store.room_summary(owner, id).await?))
}

/// Delete a room
///
/// What runs in it is stopped first.
#[utoipa::path(delete, path = "/api/rooms/{id}", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_room(owner, id, attempt.as_ref()).await?) };
    once(&app, owner, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StoppedRuns {
    runs: Vec<Stopped>,
}

/// Stop everything in a room
///
/// Returns when all of it has really stopped.
#[utoipa::path(post, path = "/api/rooms/{id}/cancel", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = StoppedRuns)))]
pub async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id<RoomId>) -> Result<Json<StoppedRuns>, Problem> {
    Ok(Json(StoppedRuns { runs: app.engine.cancel_room(&caller.owner, id).await? }))
}
