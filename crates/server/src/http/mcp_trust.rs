//! Trust in the `.mcp.json` of a room's project folder.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, JsonBody},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::ids::RoomId;
use engine::commands::McpTrustView;
use serde::Deserialize;

/// Get a project's .mcp.json
///
/// It is not used until it is trusted.
#[utoipa::path(get, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = McpTrustView)))]
pub async fn mcp_trust(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<Json<McpTrustView>, Problem> {
    Ok(Json(app.engine.mcp_trust(&caller, room).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustRequest {
    /// The digest of the reviewed content.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub(super) digest: String,
}

/// Trust a project's .mcp.json
///
/// Trusts exactly the content with this digest, for the caller's agents in this folder. A changed file must be trusted
/// again.
#[utoipa::path(post, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               request_body = TrustRequest,
               responses((status = 200, body = McpTrustView),
                         (status = 409, description = "The file has changed",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "There is no file to trust",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn trust_mcp(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    JsonBody(TrustRequest { digest }, _): JsonBody<TrustRequest>,
) -> Result<Json<McpTrustView>, Problem> {
    Ok(Json(app.engine.trust_mcp_file(&caller, room, &digest).await?))
}

/// Revoke trust in a project's .mcp.json
///
/// Its servers are not started any more.
#[utoipa::path(delete, path = "/api/rooms/{id}/mcp-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 204)))]
pub async fn distrust_mcp(State(app): State<App>, caller: Caller, Id(room): Id<RoomId>) -> Result<StatusCode, Problem> {
    app.engine.distrust_mcp_file(&caller, room).await?;
    Ok(StatusCode::NO_CONTENT)
}
