//! Starts a project, a room and a run with one request.

use crate::{
    App,
    auth::Caller,
    error::{Code, Problem, ProblemSchema},
    extract::{FingerprintBuilder, IdempotencyKey, body::read, json, multipart::MultipartBody},
    http::{Created, attempt, projects::ProjectSpec},
};
use axum::{
    body::Bytes,
    extract::{Request, State},
    http::header,
};
use domain::ids::{AgentId, ProjectId};
use engine::commands::{InitiateProject, InitiateRequest, Initiated, PreparedInitiation};
use serde::Deserialize;

pub const PATH: &str = "/api/agent/initiate";
/// The name of the part of a form with the settings.
const REQUEST_PART: &str = "request";

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InitiateSpec {
    /// The agent that answers.
    agent_id: AgentId,
    /// The first message.
    #[schema(min_length = 1, examples("Write a web server that says hello, and start it."))]
    prompt: String,
    /// An existing project to work in.
    #[serde(default)]
    project_id: Option<ProjectId>,
    /// The settings of a new project. Without both, a new project with the usual settings, named after the prompt.
    #[serde(default)]
    project: Option<ProjectSpec>,
    /// Text files for a new project.
    #[serde(default)]
    #[schema(max_items = 200)]
    files: Vec<InitialFile>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InitialFile {
    /// A path in the project.
    #[schema(examples("src/main.py"))]
    path: String,
    /// The text of the file.
    content: String,
}

impl InitiateSpec {
    fn into_request(self) -> Result<(InitiateRequest, Vec<InitialFile>), Problem> {
        let Self { agent_id, prompt, project_id, project, files } = self;
        let project = match (project_id, project) {
            (Some(_), Some(_)) => {
                let detail = "project: send project_id or project, not both";
                return Err(Problem::unprocessable(detail).with("pointer", "/project"));
            }
            (Some(id), None) => InitiateProject::Existing(id),
            (None, Some(spec)) => InitiateProject::New(spec.into()),
            (None, None) => InitiateProject::Usual,
        };
        Ok((InitiateRequest { agent_id, prompt, project }, files))
    }
}

/// Start an agent in a project
///
/// Creates a project with its sandbox, a room in it and the first run, as one unit: a failure leaves nothing. The body is JSON, or
/// `multipart/form-data` whose first part, `request`, is that JSON and whose other parts are files for the new project. Follow the room
/// or the run for the answer.
#[utoipa::path(post, path = "/api/agent/initiate", tag = "projects", request_body = InitiateSpec,
               responses((status = 201, body = Initiated),
                         (status = 402, description = "A budget is used up", content_type = "application/problem+json",
                          body = ProblemSchema),
                         (status = 422, description = "No sandbox works, or there are too many projects",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 507, description = "The project or the disk is full",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn initiate(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    request: Request,
) -> Result<Created<Initiated>, Problem> {
    let mut print = FingerprintBuilder::of(request.method(), request.uri());
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let prepared = if kind.starts_with("multipart/form-data") {
        let mut parts = MultipartBody::of(request)?;
        let received = receive_form(&app, &caller, &mut parts, &mut print).await;
        if received.is_err() {
            parts.discard().await;
        }
        received?
    } else if kind.starts_with("application/json") {
        let bytes = read(request.into_body(), app.config.max_body_bytes).await?;
        print.add(&bytes);
        prepare(&app, &caller, &bytes).await?
    } else {
        return Err(Problem::new(Code::UnsupportedMediaType, "Send JSON, or multipart/form-data with a boundary."));
    };
    let initiated: Initiated = prepared.commit(attempt(key, print.finish()).as_ref()).await?;
    Ok(Created::at("/api/runs", initiated.run_id, initiated))
}

async fn prepare(app: &App, caller: &Caller, spec: &[u8]) -> Result<PreparedInitiation, Problem> {
    let (request, files) = json::parse::<InitiateSpec>(spec)?.into_request()?;
    let mut prepared = app.engine.prepare_initiation(caller, request).await?;
    for InitialFile { path, content } in files {
        prepared.start_file(&path).await?;
        prepared.write(Bytes::from(content)).await?;
    }
    Ok(prepared)
}

/// The settings first, then files, which are written while they arrive.
async fn receive_form(
    app: &App,
    caller: &Caller,
    parts: &mut MultipartBody,
    print: &mut FingerprintBuilder,
) -> Result<PreparedInitiation, Problem> {
    let spec = parts.first_text(REQUEST_PART, app.config.max_body_bytes).await?;
    print.add(&spec);
    let mut prepared = prepare(app, caller, &spec).await?;
    while let Some(mut file) = parts.next_file().await? {
        // Null bytes are in no name, so the parts cannot be confused.
        print.add(&[&[0], file.name.as_bytes(), &[0]].concat());
        prepared.start_file(&file.name).await?;
        let mut length = 0;
        while let Some(piece) = file.next_piece().await? {
            print.add(&piece);
            length += piece.len();
            prepared.write(piece).await?;
        }
        print.add(&length.to_be_bytes());
    }
    Ok(prepared)
}
