//! Trust in the skills of a room's project folder.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, JsonBody},
    http::mcp_trust::TrustRequest,
};
use axum::{Json, extract::State, http::StatusCode};
use domain::ids::RoomId;
use engine::commands::SkillTrustView;

/// Get a project's skills
///
/// Those in `.claude/skills` and `.agents/skills` of the room's folder. Agents get none of them until they are trusted.
#[utoipa::path(get, path = "/api/rooms/{id}/skill-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 200, body = SkillTrustView)))]
pub async fn skill_trust(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<Json<SkillTrustView>, Problem> {
    Ok(Json(app.engine.skill_trust(&caller, room).await?))
}

/// Trust a project's skills
///
/// Trusts exactly the content with this digest, for the agents in this folder. If a file of a skill changes, or a skill is added
/// or removed, they must be trusted again.
#[utoipa::path(post, path = "/api/rooms/{id}/skill-trust", tag = "rooms", params(("id" = RoomId, Path)),
               request_body = TrustRequest,
               responses((status = 200, body = SkillTrustView),
                         (status = 409, description = "The skills have changed",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "There are no skills to trust",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn trust_skills(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    JsonBody(request, _): JsonBody<TrustRequest>,
) -> Result<Json<SkillTrustView>, Problem> {
    Ok(Json(app.engine.trust_skills(&caller, room, &request.digest).await?))
}

/// Revoke trust in a project's skills
///
/// Runs that start from now on do not get them.
#[utoipa::path(delete, path = "/api/rooms/{id}/skill-trust", tag = "rooms", params(("id" = RoomId, Path)),
               responses((status = 204)))]
pub async fn distrust_skills(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
) -> Result<StatusCode, Problem> {
    app.engine.distrust_skills(&caller, room).await?;
    Ok(StatusCode::NO_CONTENT)
}
