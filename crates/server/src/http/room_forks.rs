//! Branches of rooms.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, IdempotencyKey, JsonBody},
    http::{Created, attempt},
};
use axum::extract::State;
use domain::{
    ids::{MessageId, RoomId},
    name::Name,
    room::RoomSummary,
};
use engine::commands::NewFork;
use serde::Deserialize;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomFork {
    /// The last message of the room that is copied: a person's, or an answer that has ended.
    message_id: MessageId,
    /// The name of the new room. By default that of the room, marked as a branch.
    #[serde(default)]
    name: Option<Name>,
}

/// Branch a room off at a message
///
/// Creates a room with the same agents, policy and project, and with copies of the messages up to this one: the newest 1000
/// of them, or about 4 MB. `forked_from` names where it comes from. No agent runs, and files of a room without a project stay
/// where they are.
#[utoipa::path(post, path = "/api/rooms/{id}/fork", tag = "rooms", params(("id" = RoomId, Path)), request_body = RoomFork,
               responses((status = 201, body = RoomSummary)))]
pub async fn fork(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(RoomFork { message_id, name }, fingerprint): JsonBody<RoomFork>,
) -> Result<Created<RoomSummary>, Problem> {
    let fork = NewFork { message_id, name };
    let room = app.engine.fork_room(&caller, id, fork, attempt(key, fingerprint).as_ref()).await?;
    Ok(Created::at("/api/rooms", room.id, app.engine.queries().room_summary(&caller.workspace, room.id).await?))
}
