//! Ports in the sandbox of a project, and previews of them.

use crate::{
    App,
    auth::{Caller, client_scheme::ClientScheme, origin},
    error::{Problem, ProblemSchema},
    extract::Id,
};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use domain::ids::ProjectId;
use engine::commands::ProjectPort;
use serde::Serialize;

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProjectPortList {
    /// By number.
    ports: Vec<ProjectPort>,
}

/// List ports
///
/// Those on which something in the sandbox of the project listens. None if the sandbox does not run.
#[utoipa::path(get, path = "/api/projects/{id}/ports", tag = "project-commands", params(("id" = ProjectId, Path)),
               responses((status = 200, body = ProjectPortList),
                         (status = 422, description = "The sandbox has no network of its own",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn list_ports(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
) -> Result<Json<ProjectPortList>, Problem> {
    Ok(Json(ProjectPortList { ports: app.engine.project_ports(&caller, id).await? }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct PreviewView {
    /// Open it in a browser. Everyone who has the address sees the preview.
    #[schema(examples("http://5f0c….preview.localhost:7878/"))]
    url: String,
}

/// Open a preview
///
/// Returns an address at which a browser sees what listens on a port of the project, on an origin of its own. It works with your access,
/// until it was not used for 12 hours, you lose access, or the server restarts.
#[utoipa::path(post, path = "/api/projects/{id}/ports/{port}/preview", tag = "project-commands",
               params(("id" = ProjectId, Path), ("port" = u16, Path, minimum = 1, maximum = 65535, description = "The number of the port.")),
               responses((status = 201, body = PreviewView,
                          headers(("Location" = String, description = "The address of the preview")))))]
pub async fn open_preview(
    State(app): State<App>,
    caller: Caller,
    Id((id, port)): Id<(ProjectId, u16)>,
    request: Request,
) -> Result<Response, Problem> {
    app.engine.record_preview(&caller, id, port).await?;
    let scheme = ClientScheme::of(request.extensions(), request.headers()).as_str();
    let asked = origin::host(&request);
    let opened_from = asked.as_ref().map(|host| format!("{scheme}://{host}"));
    let label = app.previews.open(&caller, id, port, opened_from)?;
    let at = asked.and_then(|host| host.port_u16()).map(|port| format!(":{port}")).unwrap_or_default();
    let url = format!("{scheme}://{label}.{}{at}/", app.config.preview_domain);
    let location = HeaderValue::try_from(url.as_str()).map_err(Problem::internal)?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(PreviewView { url })).into_response())
}
