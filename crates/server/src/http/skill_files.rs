//! The files of a skill. A path is one segment of the address: its slashes are percent-encoded.

use crate::{
    App,
    auth::Caller,
    error::{Code, Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, Params, RawBody},
    http::{
        attempt, once,
        skills::{ChangeParams, SkillView, settled},
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
    /// The newest, if left out.
    pub version: Option<u32>,
}

/// One file of a skill
#[utoipa::path(get, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), VersionParams),
               responses((status = 200, description = "The file", content_type = "application/octet-stream")))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, FilePath)>,
    Params(VersionParams { version }): Params<VersionParams>,
) -> Result<Response, Problem> {
    let store = app.engine.store();
    let version = match version {
        Some(version) => version,
        None => store.skill(&caller.owner, &name).await?.version,
    };
    let file = store.skill_file(&caller.owner, &name, version, &path).await?;
    Ok(download("application/octet-stream", file.content))
}

/// Bytes that a browser keeps and does not show: nothing that a skill holds may act as a page of this server.
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
    /// The version you have seen; 409 if there is a newer one.
    base: Option<u32>,
    /// Why, for the list of versions.
    note: Option<String>,
}

/// Write a file of a skill
///
/// The body is the file. It makes a new version of the skill.
#[utoipa::path(put, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), FileParams),
               request_body(content = Vec<u8>, content_type = "application/octet-stream"),
               responses((status = 200, body = SkillView),
                         (status = 422, description = "The path leads elsewhere, or there is too much",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn write(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, String)>,
    Params(params): Params<FileParams>,
    key: IdempotencyKey,
    RawBody(bytes, fingerprint): RawBody,
) -> Result<Json<SkillView>, Problem> {
    let path: FilePath = path.parse().map_err(|error| Problem::new(Code::Unprocessable, format!("{error}.")))?;
    let file = SkillFile { path, executable: params.executable, content: bytes.to_vec() };
    let revision = engine::commands::Revision { base: params.base, note: params.note };
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.put_skill_file(owner, &name, file, revision, attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok(Json(settled(&app, owner, done).await?))
}

/// Remove a file of a skill
///
/// It makes a new version of the skill.
#[utoipa::path(delete, path = "/api/skills/{name}/files/{path}", tag = "skills",
               params(("name" = String, Path), ("path" = String, Path), ChangeParams),
               responses((status = 200, body = SkillView)))]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    Id((name, path)): Id<(SkillName, FilePath)>,
    Params(params): Params<ChangeParams>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<SkillView>, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.remove_skill_file(owner, &name, path, params.into(), attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok(Json(settled(&app, owner, done).await?))
}
