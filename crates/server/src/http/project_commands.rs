//! Commands in the sandbox of a project.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, JsonBody, QueryParams},
    feed::{
        command_stream::{self, CommandStream},
        sse,
    },
    http::named_page::NamedPageParams,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use domain::ids::{CommandId, ProjectId};
use engine::commands::{CommandSummary, CommandView, NewCommand};
use serde::{Deserialize, Serialize};

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProjectCommandList {
    /// The newest first.
    commands: Vec<CommandSummary>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

/// List commands
///
/// Of people and agents, the newest first: those that have processes, and up to 100 of the workspace that have ended. Commands do not
/// outlive the server, and a restarted server has none.
#[utoipa::path(get, path = "/api/projects/{id}/commands", tag = "project-commands",
               params(("id" = ProjectId, Path), NamedPageParams),
               responses((status = 200, body = ProjectCommandList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<ProjectCommandList>, Problem> {
    let found = app.engine.project_commands(&caller, id).await?;
    let (commands, next) = page.cut_newest_first(found, |command| command.id.to_string())?;
    Ok(Json(ProjectCommandList { commands, next }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectCommandSpec {
    /// A line for bash, which runs in the folder of the project.
    #[schema(
        min_length = 1,
        max_length = 65536,
        pattern = r"^[^\x00]*[^\s\x00][^\x00]*$",
        examples("python3 -m pytest -q")
    )]
    command: String,
    /// The command is killed after this time, with everything that it has started. Default: 120; in the background, it runs as long
    /// as the sandbox.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 86400)]
    timeout_seconds: Option<u32>,
    /// Return at once, with 202 and the command.
    #[serde(default)]
    background: bool,
}

/// Run a command
///
/// In the sandbox of the project, which is started if it does not run. The response is a stream of server-sent events: `started` and
/// `ended` with the command, between them `output` with `text` (standard output and standard error) and `omitted_bytes`.
///
/// With `background` the response is 202 and the command. A command runs on when the client disconnects; processes that it leaves
/// behind, such as a dev server, run on after its end. Stopping the command ends all of them. A command that prints more than 64 MiB
/// is killed.
#[utoipa::path(post, path = "/api/projects/{id}/commands", tag = "project-commands", params(("id" = ProjectId, Path)),
               request_body = ProjectCommandSpec,
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 202, description = "The command runs in the background", body = CommandSummary,
                          headers(("Location" = String, description = "The address of the command"))),
                         (status = 422, description = "No sandbox works, or all sandboxes of the server are in use",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn start(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    JsonBody(spec, _): JsonBody<ProjectCommandSpec>,
) -> Result<Response, Problem> {
    let ProjectCommandSpec { command, timeout_seconds, background } = spec;
    let new = NewCommand { command, timeout_seconds, background };
    if background {
        let started = app.engine.start_project_command(&caller, id, new).await?.summary();
        let location = format!("/api/projects/{id}/commands/{}", started.id);
        return Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(started)).into_response());
    }
    // Before the command, so that none is started for a stream that is refused.
    let permit = app.shares.open_stream(&caller)?;
    let command = app.engine.start_project_command(&caller, id, new).await?;
    Ok(CommandStream::respond(&app, &caller, permit, id, command))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CommandOutputParams {
    /// Only the output after this position: `position` of an earlier response.
    #[serde(default)]
    after: u64,
}

/// Get a command
///
/// With its output: all of it, or its first 16 KiB and at least its last 32 KiB, with a line that says how much was left out.
#[utoipa::path(get, path = "/api/projects/{id}/commands/{command}", tag = "project-commands",
               params(("id" = ProjectId, Path), ("command" = CommandId, Path, description = "The id of the command."), CommandOutputParams),
               responses((status = 200, body = CommandView)))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Id((id, command)): Id<(ProjectId, CommandId)>,
    QueryParams(CommandOutputParams { after }): QueryParams<CommandOutputParams>,
) -> Result<Json<CommandView>, Problem> {
    Ok(Json(app.engine.project_command(&caller, id, command, after).await?))
}

/// Follow a command
///
/// The stream of a command that was started before, of a person or an agent: the output so far, then what comes, to its end. Resumes with
/// `Last-Event-ID`, or `after`.
#[utoipa::path(get, path = "/api/projects/{id}/commands/{command}/stream", tag = "project-commands",
               params(("id" = ProjectId, Path), ("command" = CommandId, Path, description = "The id of the command."), CommandOutputParams),
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The command has ended and the client has its last event")))]
pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    Id((id, command)): Id<(ProjectId, CommandId)>,
    QueryParams(CommandOutputParams { after }): QueryParams<CommandOutputParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = match sse::last_event_id(&headers)? {
        None => after,
        Some(command_stream::END_ID) => {
            app.engine.project_command(&caller, id, command, u64::MAX).await?;
            // This status tells a browser's EventSource not to reconnect.
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        Some(position) => {
            position.parse().map_err(|_| Problem::invalid("Last-Event-ID is not the id of an event of this stream."))?
        }
    };
    let permit = app.shares.open_stream(&caller)?;
    let command = app.engine.follow_project_command(&caller, id, command, after).await?;
    Ok(CommandStream::respond(&app, &caller, permit, id, command))
}

/// Stop a command
///
/// Kills it with everything that it has started, and returns when nothing of it is left. Its output can still be read. Stopping one that
/// has ended succeeds.
#[utoipa::path(delete, path = "/api/projects/{id}/commands/{command}", tag = "project-commands",
               params(("id" = ProjectId, Path), ("command" = CommandId, Path, description = "The id of the command.")), responses((status = 204)))]
pub async fn stop(
    State(app): State<App>,
    caller: Caller,
    Id((id, command)): Id<(ProjectId, CommandId)>,
) -> Result<StatusCode, Problem> {
    app.engine.stop_project_command(&caller, id, command).await?;
    Ok(StatusCode::NO_CONTENT)
}
