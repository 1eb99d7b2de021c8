//! Tools that a person has allowed once and for all, for one agent in one room.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, Params},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, RoomId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use store::RememberedTool;

#[derive(Serialize, utoipa::ToSchema)]
pub struct RememberedList {
    remembered: Vec<Remembered>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Remembered {
    agent_id: AgentId,
    tool: String,
    created_at: Timestamp,
}

/// The tools that need no asking in a room
///
/// A tool is here once it was allowed with `remember`. What an agent's `tools.deny` names is refused all the same.
#[utoipa::path(get, path = "/api/rooms/{id}/remembered", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = RememberedList)))]
pub async fn remembered(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<Json<RememberedList>, Problem> {
    let tools = app.engine.remembered_tools(&caller.owner, room).await?.into_iter();
    let view = |RememberedTool { agent_id, tool, created_at }| Remembered { agent_id, tool, created_at };
    Ok(Json(RememberedList { remembered: tools.map(view).collect() }))
}

/// Which tool. Not in the path: its name may hold a slash.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Named {
    tool: String,
}

/// Ask about a tool again
///
/// Holds at once, also for an answer that is under way. A tool that was not remembered is answered alike.
#[utoipa::path(delete, path = "/api/rooms/{id}/remembered/{agent}", tag = "rooms",
               params(("id" = RoomId, Path), ("agent" = AgentId, Path), Named), responses((status = 204)))]
pub async fn forget(
    State(app): State<App>,
    caller: Caller,
    Id((room, agent)): Id<(RoomId, AgentId)>,
    Params(Named { tool }): Params<Named>,
) -> Result<StatusCode, Problem> {
    app.engine.forget_tool(&caller.owner, room, agent, &tool).await?;
    Ok(StatusCode::NO_CONTENT)
}
