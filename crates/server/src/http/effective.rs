//! What an agent really has.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, Params},
};
use axum::{Json, extract::State};
use domain::ids::{AgentId, RoomId};
use engine::commands::EffectiveView;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EffectiveParams {
    /// Where it works: adds the servers of that folder's `.mcp.json` and what was allowed there for good.
    room: Option<RoomId>,
    /// With `false` no server is asked for its tools, and none is started.
    tools: Option<bool>,
}

/// What an agent really has
///
/// Every MCP server and tool with the tier that set it (skill over agent over project), what that hides, what keeps one from
/// being used, and what the agent's tool policy says of each tool.
#[utoipa::path(get, path = "/api/agents/{id}/effective", tag = "agents", params(("id" = AgentId, Path), EffectiveParams),
               responses((status = 200, body = EffectiveView)))]
pub async fn effective(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Params(EffectiveParams { room, tools }): Params<EffectiveParams>,
) -> Result<Json<EffectiveView>, Problem> {
    Ok(Json(app.engine.effective(&caller.owner, id, room, tools.unwrap_or(true)).await?))
}
