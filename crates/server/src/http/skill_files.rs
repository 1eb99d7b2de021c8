//! The files of a skill. A file's path is one URL segment, with percent-encoded slashes.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, QueryParams, RawBody},
    http::{
        attempt, run_once,
        skills::{ChangeParams, SkillView, written_skill},
    },
};
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use domain::skill::{FilePath, SkillFile, SkillName};
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VersionParams {
    /// The newest version by default.
    pub version: Option<u32>,
}

/// Get a file of a skill
///
/// Of the newest version, or of another one with `version`.
#[utoipa::path(get, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), VersionParams),
               responses((status = 200, description = "The file", content_type = "application/octet-stream")))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, FilePath)>,
    QueryParams(VersionParams { version }): QueryParams<VersionParams>,
) -> Result<Response, Problem> {
    let queries = app.engine.queries();
    let version = match version {
        Some(version) => version,
        None => queries.skill(&caller.workspace, &name).await?.version,
    };
    let file = queries.skill_file(&caller.workspace, &name, version, &path).await?;
    Ok(download("application/octet-stream", file.content))
}

/// Sends bytes as a download: the content of a skill must not act as a page of this server.
pub fn download(kind: &'static str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'")),
    ];
    (headers, bytes).into_response()
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileParams {
    #[serde(default)]
    executable: bool,
    /// The version that the change is based on; 409 if there is a newer one.
    base: Option<u32>,
    /// A note for the list of versions: one line.
    #[param(max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    note: Option<String>,
}

/// Write a file of a skill
///
/// The body is the file. Creates a new version of the skill.
#[utoipa::path(put, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), FileParams),
               request_body(content = Vec<u8>, content_type = "application/octet-stream"),
               responses((status = 200, body = SkillView),
                         (status = 422, description = "The path leaves the skill's folder, or the skill is too large",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn write(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, String)>,
    QueryParams(params): QueryParams<FileParams>,
    key: IdempotencyKey,
    RawBody(bytes, fingerprint): RawBody,
) -> Result<Json<SkillView>, Problem> {
    let path: FilePath = path.parse().map_err(|error| Problem::unprocessable(format!("{error}.")))?;
    let file = SkillFile { path, executable: params.executable, content: bytes.to_vec() };
    let revision = engine::commands::SkillRevision { base: params.base, note: params.note };
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.put_skill_file(actor, &name, file, revision, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(written_skill(&app, actor, done).await?))
}

/// Delete a file of a skill
///
/// Creates a new version of the skill.
#[utoipa::path(delete, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), ChangeParams),
               responses((status = 200, body = SkillView)))]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, FilePath)>,
    QueryParams(params): QueryParams<ChangeParams>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<SkillView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.remove_skill_file(actor, &name, path, params.into(), attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(written_skill(&app, actor, done).await?))
}
