//! Skills in and out: archives, and folders of the data folder.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, IdempotencyKey, Params, RawBody},
    http::{
        attempt, once,
        skill_files::{VersionParams, download},
        skills::{SkillView, settled},
    },
};
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use domain::skill::SkillName;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportParams {
    /// One of the same name gets a new version; otherwise it is a conflict.
    #[serde(default)]
    replace: bool,
    /// Take the skill of this name from the data folder instead of the body.
    folder: Option<String>,
}

/// Import a skill
///
/// From a zip archive in the body, with a `SKILL.md` at its top or in one folder there; or from the data folder.
#[utoipa::path(post, path = "/api/skills/import", tag = "skills", params(ImportParams),
               request_body(content = Vec<u8>, content_type = "application/zip"),
               responses((status = 201, body = SkillView),
                         (status = 409, description = "There is a skill of this name",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "It is no skill, or leads out of its folder, or is too large",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn import(
    State(app): State<App>,
    caller: Caller,
    Params(ImportParams { replace, folder }): Params<ImportParams>,
    key: IdempotencyKey,
    RawBody(archive, fingerprint): RawBody,
) -> Result<(StatusCode, Json<SkillView>), Problem> {
    let (engine, owner, attempt) = (&app.engine, &caller.owner, attempt(key, fingerprint));
    let write = async {
        Ok(match folder {
            Some(folder) => engine.import_skill_folder(owner, folder, replace, attempt.as_ref()).await?,
            None => engine.import_skill(owner, archive.to_vec(), replace, attempt.as_ref()).await?,
        })
    };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok((StatusCode::CREATED, Json(settled(&app, owner, done).await?)))
}

/// Export a skill
///
/// As a zip archive that can be imported again, here or elsewhere.
#[utoipa::path(get, path = "/api/skills/{name}/export", tag = "skills",
               params(("name" = String, Path), VersionParams),
               responses((status = 200, description = "The archive", content_type = "application/zip")))]
pub async fn export(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    Params(VersionParams { version }): Params<VersionParams>,
) -> Result<Response, Problem> {
    let archive = app.engine.export_skill(&caller.owner, &name, version).await?;
    let mut response = download("application/zip", archive);
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{name}.zip\"")).map_err(Problem::internal)?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, named);
    Ok(response)
}
