//! Trust in the `.mcp.json` of the folder that a room's agents work in.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Body, Id},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::ids::RoomId;
use engine::commands::McpTrustView;
use serde::Deserialize;

/// What a project's .mcp.json says
///
/// Nothing in it is used until it is trusted.
#[utoipa::path(get, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = McpTrustView)))]
pub async fn mcp_trust(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<Json<McpTrustView>, Problem> {
    Ok(Json(app.engine.mcp_trust(&caller.owner, room).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustRequest {
    /// Of the file that was looked at.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    digest: String,
}

/// Trust a project's .mcp.json
///
/// Exactly the content with this digest, for the caller's agents in this folder. A changed file is to be trusted anew.
#[utoipa::path(post, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               request_body = TrustRequest,
               responses((status = 200, body = McpTrustView),
                         (status = 409, description = "The file is another by now",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "There is no file that could be trusted",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn trust_mcp(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    Body(TrustRequest { digest }, _): Body<TrustRequest>,
) -> Result<Json<McpTrustView>, Problem> {
    Ok(Json(app.engine.trust_project(&caller.owner, room, &digest).await?))
}

/// Trust a project's .mcp.json no more
#[utoipa::path(delete, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 204)))]
pub async fn distrust_mcp(State(app): State<App>, caller: Caller, Id(room): Id<RoomId>) -> Result<StatusCode, Problem> {
    app.engine.distrust_project(&caller.owner, room).await?;
    Ok(StatusCode::NO_CONTENT)
}
