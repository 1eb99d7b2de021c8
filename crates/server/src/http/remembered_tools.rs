//! Tools that a person has permanently allowed for one agent in one room.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, QueryParams},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    approval::RememberScope,
    ids::{AgentId, RoomId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use store::RememberedTool;

#[derive(Serialize, utoipa::ToSchema)]
pub struct RememberedList {
    remembered: Vec<RememberedToolView>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Remembered)]
pub struct RememberedToolView {
    agent_id: AgentId,
    tool: String,
    scope: RememberScope,
    /// The calls that need no approval, for people: `Bash`, `Bash(git status:*)`, or the tool with its exact input.
    rule: String,
    created_at: Timestamp,
}

/// List remembered tools
///
/// The calls that were allowed with `remember` in this room. An agent's `tools.deny` still takes precedence.
#[utoipa::path(get, path = "/api/rooms/{id}/remembered", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = RememberedList)))]
pub async fn remembered(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<Json<RememberedList>, Problem> {
    let tools = app.engine.remembered_tools(&caller, room).await?.into_iter();
    let view = |RememberedTool { agent_id, rule, created_at }| {
        let (scope, label) = (rule.scope(), rule.label());
        RememberedToolView { agent_id, tool: rule.tool, scope, rule: label, created_at }
    };
    Ok(Json(RememberedList { remembered: tools.map(view).collect() }))
}

/// The tool is not in the path, because its name may contain a slash.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForgetToolParams {
    tool: String,
}

/// Forget a remembered tool
///
/// All calls of the tool need approval again at once, also in a running answer. Succeeds even if nothing was remembered.
#[utoipa::path(delete, path = "/api/rooms/{id}/remembered/{agent}", tag = "rooms",
               params(("id" = RoomId, Path), ("agent" = AgentId, Path), ForgetToolParams), responses((status = 204)))]
pub async fn forget(
    State(app): State<App>,
    caller: Caller,
    Id((room, agent)): Id<(RoomId, AgentId)>,
    QueryParams(ForgetToolParams { tool }): QueryParams<ForgetToolParams>,
) -> Result<StatusCode, Problem> {
    app.engine.forget_tool(&caller, room, agent, &tool).await?;
    Ok(StatusCode::NO_CONTENT)
}
