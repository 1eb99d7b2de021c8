//! Import and export of skills: archives, and folders in the data folder.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, IdempotencyKey, JsonBody, QueryParams, RawBody},
    http::{
        Created, WriteOutcome, attempt, run_once,
        skill_files::{VersionParams, download},
        skills::{SkillView, written_skill},
    },
};
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use domain::skill::SkillName;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SkillImportParams {
    /// Create a new version of an existing skill with the same name; otherwise it is a conflict.
    #[serde(default)]
    replace: bool,
    /// Import the skill with this name from the data folder instead of the body.
    folder: Option<String>,
}

/// Import a skill
///
/// From a zip archive in the body, with a `SKILL.md` at the top or in a single folder; or from the data folder. What the
/// skill of an archive asks for (`review`) is off until it is accepted.
#[utoipa::path(post, path = "/api/skills/import", tag = "skills", params(SkillImportParams),
               request_body(content = Vec<u8>, content_type = "application/zip"),
               responses((status = 201, body = SkillView),
                         (status = 409, description = "A skill with this name already exists",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "It is not a skill, or leaves its folder, or is too large",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn import(
    State(app): State<App>,
    caller: Caller,
    QueryParams(SkillImportParams { replace, folder }): QueryParams<SkillImportParams>,
    key: IdempotencyKey,
    RawBody(archive, fingerprint): RawBody,
) -> Result<Created<SkillView>, Problem> {
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let write = async {
        Ok(match folder {
            Some(folder) => engine.import_skill_folder(actor, folder, replace, attempt.as_ref()).await?,
            None => engine.import_skill(actor, archive.to_vec(), replace, attempt.as_ref()).await?,
        })
    };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    let skill = written_skill(&app, actor, done).await?;
    Ok(Created::at("/api/skills", skill.name(), skill))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptSkillRequest {
    /// The version that was reviewed.
    version: u32,
}

/// Accept an imported skill
///
/// Turns on what the skill asks for in `review`: the tools that it allows, its MCP servers and its scripts.
#[utoipa::path(post, path = "/api/skills/{name}/accept", tag = "skills", params(("name" = String, Path)),
               request_body = AcceptSkillRequest,
               responses((status = 200, body = SkillView),
                         (status = 409, description = "There is a newer version; review that one",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn accept_import(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    JsonBody(AcceptSkillRequest { version }, _): JsonBody<AcceptSkillRequest>,
) -> Result<Json<SkillView>, Problem> {
    let skill = app.engine.accept_skill(&caller, &name, version).await?;
    Ok(Json(written_skill(&app, &caller, WriteOutcome::Done(skill)).await?))
}

/// Export a skill
///
/// As a zip archive that can be imported again.
#[utoipa::path(get, path = "/api/skills/{name}/export", tag = "skills",
               params(("name" = String, Path), VersionParams),
               responses((status = 200, description = "The archive", content_type = "application/zip")))]
pub async fn export(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    QueryParams(VersionParams { version }): QueryParams<VersionParams>,
) -> Result<Response, Problem> {
    let archive = app.engine.export_skill(&caller, &name, version).await?;
    let mut response = download("application/zip", archive);
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{name}.zip\"")).map_err(Problem::internal)?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, named);
    Ok(response)
}
