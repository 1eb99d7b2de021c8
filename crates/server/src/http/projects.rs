//! Projects: folders in which agents work, each with a sandbox. Every answer about one says what the sandbox enforces.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{Created, PurgeParams, WriteOutcome, attempt, named_page::NamedPageParams, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::ProjectId,
    name::Name,
    project::{NetworkAccess, Project, ProjectIsolation, ProjectLimits, ProjectSettings, SandboxChoice},
};
use engine::commands::{IsolatedProject, NewProject, ProjectPatch};
use serde::{Deserialize, Serialize};

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProjectView {
    #[serde(flatten)]
    project: Project,
    /// What the sandbox enforces; `null` if no sandbox works at the moment, and nothing runs in the project.
    isolation: Option<ProjectIsolation>,
    /// Why no sandbox works, and what to do.
    isolation_error: Option<String>,
}

impl From<IsolatedProject> for ProjectView {
    fn from(found: IsolatedProject) -> Self {
        let IsolatedProject { project, isolation } = found;
        let (isolation, isolation_error) = match isolation {
            Ok(isolation) => (Some(isolation), None),
            Err(why) => (None, Some(why)),
        };
        Self { project, isolation, isolation_error }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProjectList {
    projects: Vec<ProjectView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

/// List projects
///
/// Newest first, in pages.
#[utoipa::path(get, path = "/api/projects", tag = "projects", params(NamedPageParams),
               responses((status = 200, body = ProjectList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<ProjectList>, Problem> {
    let (projects, next) =
        page.cut_newest_first(app.engine.projects(&caller).await?, |found| found.project.id.to_string())?;
    Ok(Json(ProjectList { projects: projects.into_iter().map(ProjectView::from).collect(), next }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectSpec {
    name: Name,
    /// The absolute path of an existing folder of this machine, for the operator. Without it the server creates a folder.
    #[serde(default)]
    folder: Option<String>,
    #[serde(default)]
    sandbox: SandboxChoice,
    #[serde(default)]
    network: NetworkAccess,
    #[serde(default)]
    limits: ProjectLimits,
}

impl From<ProjectSpec> for NewProject {
    fn from(spec: ProjectSpec) -> Self {
        let ProjectSpec { name, folder, sandbox, network, limits } = spec;
        Self { name, folder: folder.map(Into::into), settings: ProjectSettings { sandbox, network, limits } }
    }
}

/// Create a project
///
/// Rooms of the project share its folder and its sandbox. Without a sandbox that works on this machine nothing is created,
/// and the error says what to do; a weaker one than `auto` would choose is used only by name, by the operator.
#[utoipa::path(post, path = "/api/projects", tag = "projects", request_body = ProjectSpec,
               responses((status = 201, body = ProjectView),
                         (status = 422, description = "No sandbox works, the folder is unsuitable, or there are too many projects",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<ProjectSpec>,
) -> Result<Created<ProjectView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.create_project(actor, spec.into(), attempt.as_ref()).await?) };
    let id = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(id) => id,
        WriteOutcome::AlreadyDone(id) => id.parse().map_err(Problem::internal)?,
    };
    Ok(Created::at("/api/projects", id, app.engine.project(actor, id).await?.into()))
}

/// Get a project
///
/// Its settings, and how its sandbox isolates.
#[utoipa::path(get, path = "/api/projects/{id}", tag = "projects", params(("id" = ProjectId, Path)),
               responses((status = 200, body = ProjectView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<ProjectId>) -> Result<Json<ProjectView>, Problem> {
    Ok(Json(app.engine.project(&caller, id).await?.into()))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    #[serde(default)]
    name: Option<Name>,
    #[serde(default)]
    sandbox: Option<SandboxChoice>,
    /// Replaces the whole list.
    #[serde(default)]
    network: Option<NetworkAccess>,
    /// Replaces all limits.
    #[serde(default)]
    limits: Option<ProjectLimits>,
}

/// Update a project
///
/// Fields in the body are replaced, all others stay. A changed `sandbox`, `network`, `memory_bytes` or `processes` stops the sandbox of
/// the project, with everything that runs in it; the next use starts it again. Changed `disk_bytes` and `files` hold for the next file.
#[utoipa::path(patch, path = "/api/projects/{id}", tag = "projects", params(("id" = ProjectId, Path)),
               request_body = ProjectChange, responses((status = 200, body = ProjectView)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    key: IdempotencyKey,
    JsonBody(change, fingerprint): JsonBody<ProjectChange>,
) -> Result<Json<ProjectView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let ProjectChange { name, sandbox, network, limits } = change;
    let patch = ProjectPatch { name, sandbox, network, limits };
    let write = async { Ok(app.engine.update_project(actor, id, patch, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(app.engine.project(actor, id).await?.into()))
}

/// Delete a project
///
/// Its rooms are deleted with it: their runs are stopped, then its sandbox. Everything is hidden at once, and erased after
/// a grace period: files, rooms, messages. An existing folder of the machine is left as it is.
#[utoipa::path(delete, path = "/api/projects/{id}", tag = "projects", params(("id" = ProjectId, Path), PurgeParams),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(PurgeParams { purge }): QueryParams<PurgeParams>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_project(actor, id, purge, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
