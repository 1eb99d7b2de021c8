//! The versions of a skill: list, compare, restore.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, QueryParams},
    http::{
        attempt, run_once,
        skills::{SkillView, written_skill},
    },
};
use axum::{Json, extract::State};
use domain::{
    skill::{FileEntry, SkillName, SkillSpec},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use store::SkillVersion;

#[derive(Serialize, utoipa::ToSchema)]
pub struct VersionList {
    versions: Vec<VersionSummary>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct VersionSummary {
    version: u32,
    label: Option<String>,
    note: Option<String>,
    created_at: Timestamp,
}

/// List a skill's versions, newest first
///
/// Each change of a skill is a version.
#[utoipa::path(get, path = "/api/skills/{name}/versions", tag = "skills", params(("name" = String, Path)),
               responses((status = 200, body = VersionList)))]
pub async fn versions(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
) -> Result<Json<VersionList>, Problem> {
    let versions = app.engine.queries().skill_versions(&caller.workspace, &name).await?.into_iter();
    let summary = |SkillVersion { version, spec, note, created_at, .. }| VersionSummary {
        version,
        label: spec.label,
        note,
        created_at,
    };
    Ok(Json(VersionList { versions: versions.map(summary).collect() }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgainstParams {
    /// The version to compare with; the previous one by default.
    against: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct VersionView {
    version: u32,
    note: Option<String>,
    created_at: Timestamp,
    skill: SkillSpec,
    files: Vec<FileEntry>,
    /// The version it is compared with.
    against: Option<u32>,
    /// Unified diff of the whole `SKILL.md`, and a line for each file that differs.
    diff: String,
}

/// Get a version with a diff
///
/// The diff is against the version before, or against another one.
#[utoipa::path(get, path = "/api/skills/{name}/versions/{version}", tag = "skills",
               params(("name" = String, Path), ("version" = u32, Path), AgainstParams),
               responses((status = 200, body = VersionView)))]
pub async fn version(
    State(app): State<App>,
    caller: Caller,
    Id((name, version)): Id<(SkillName, u32)>,
    QueryParams(AgainstParams { against }): QueryParams<AgainstParams>,
) -> Result<Json<VersionView>, Problem> {
    let compared = app.engine.compare_skill(&caller, &name, version, against).await?;
    let SkillVersion { version, spec, note, files, created_at } = compared.version;
    let (against, diff) = (compared.against, compared.diff);
    Ok(Json(VersionView { version, note, created_at, skill: spec, files, against, diff }))
}

/// Restore a version
///
/// Creates a new version with its content and files.
#[utoipa::path(post, path = "/api/skills/{name}/versions/{version}/restore", tag = "skills",
               params(("name" = String, Path), ("version" = u32, Path)), responses((status = 200, body = SkillView)))]
pub async fn restore(
    State(app): State<App>,
    caller: Caller,
    Id((name, version)): Id<(SkillName, u32)>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<SkillView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.restore_skill(actor, &name, version, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(written_skill(&app, actor, done).await?))
}
