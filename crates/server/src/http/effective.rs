//! The effective configuration of an agent.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, QueryParams},
};
use axum::{Json, extract::State};
use domain::ids::{AgentId, RoomId};
use engine::commands::EffectiveView;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EffectiveParams {
    /// A room: adds the servers of its project's `.mcp.json` and the tools that were permanently allowed in the room.
    room: Option<RoomId>,
    /// With `false`, no server is started and no tools are listed.
    tools: Option<bool>,
}

/// Get an agent's effective configuration
///
/// Every MCP server and tool with the tier that defines it (skill over agent over project), the tiers it overrides, the
/// reason if it is unavailable, and the decision of the agent's tool policy for each tool.
#[utoipa::path(get, path = "/api/agents/{id}/effective", tag = "agents", params(("id" = AgentId, Path), EffectiveParams),
               responses((status = 200, body = EffectiveView)))]
pub async fn effective(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    QueryParams(EffectiveParams { room, tools }): QueryParams<EffectiveParams>,
) -> Result<Json<EffectiveView>, Problem> {
    Ok(Json(app.engine.effective(&caller, id, room, tools.unwrap_or(true)).await?))
}
