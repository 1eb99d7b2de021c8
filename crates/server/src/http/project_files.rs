//! The files of a project: listed, read, stored, moved, removed, and as archives. Their content is untrusted, and is
//! returned as uploads are: as a download.

use crate::{
    App,
    auth::Caller,
    byte_range,
    error::{Problem, ProblemSchema},
    extract::{
        Id, JsonBody, QueryParams, body,
        multipart::{self, MultipartBody},
    },
    http::uploads::content_headers,
};
use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{actor::Actor, ids::ProjectId};
use engine::commands::{IncomingFiles, ProjectFolderView, ReceivedFiles, StoredFile};
use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::timeout;

pub const PATHS: [&str; 2] = ["/api/projects/{id}/files", "/api/projects/{id}/files/content"];
/// The quota of the project ends an upload long before.
pub const MAX_BYTES: usize = 1 << 40;
/// Time for a complete upload.
pub const DEADLINE: Duration = Duration::from_secs(4 * 3600);

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FilePathParams {
    /// A path in the project, such as `src/main.py`; without it, the project's folder.
    #[serde(default)]
    path: String,
}

/// List files
///
/// The entries of one folder of a project.
#[utoipa::path(get, path = "/api/projects/{id}/files", tag = "project-files",
               params(("id" = ProjectId, Path), FilePathParams),
               responses((status = 200, body = ProjectFolderView)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(FilePathParams { path }): QueryParams<FilePathParams>,
) -> Result<Json<ProjectFolderView>, Problem> {
    Ok(Json(app.engine.list_project_files(&caller, id, &path).await?))
}

#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct UploadedFiles {
    /// The files. Their parts may also have another name.
    #[schema(value_type = Vec<String>, format = Binary, min_items = 1)]
    file: Vec<String>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct FileUploadResult {
    /// What was stored; of an archive, the first 1000 files.
    files: Vec<StoredFile>,
    /// How many files were stored.
    total: usize,
    /// Names of links, devices and pipes in an archive, which are left out: the first 100.
    skipped: Vec<String>,
}

impl From<ReceivedFiles> for FileUploadResult {
    fn from(received: ReceivedFiles) -> Self {
        let ReceivedFiles { mut files, skipped } = received;
        let total = files.len();
        files.truncate(MAX_REPORTED);
        Self { files, total, skipped }
    }
}

/// Files of an archive that a response names.
const MAX_REPORTED: usize = 1000;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileUploadParams {
    /// A folder of the project; without it, the project's folder.
    #[serde(default)]
    path: String,
    /// Unpack the files, which are .zip, .tar or .tar.gz archives, into the folder instead of storing them.
    #[serde(default)]
    extract: bool,
}

/// Upload files
///
/// The body is `multipart/form-data`; each part with a file name is stored in the folder `path`, which is created if it does not
/// exist: at most 200 at once. A file name may have folders, such as `docs/a.md`. Files are written while they arrive, and appear
/// or replace others when all have arrived: a request that fails or is cut off leaves no file.
///
/// With `extract` the files are archives, which are unpacked: names that lead elsewhere or occur twice (in a zip the last one counts), more than 100000 entries, and
/// more than 200 times the archive's size are refused, and nothing of the archive is left. Links, devices and pipes are left out.
#[utoipa::path(post, path = "/api/projects/{id}/files", tag = "project-files",
               params(("id" = ProjectId, Path), FileUploadParams),
               request_body(content = UploadedFiles, content_type = "multipart/form-data"),
               responses((status = 201, body = FileUploadResult),
                         (status = 409, description = "A folder is at the path of a file",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 415, description = "The body is not multipart/form-data",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "A link or a file is in the way, or the archive is refused",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 507, description = "The project or the disk is full",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn upload(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(params): QueryParams<FileUploadParams>,
    request: Request,
) -> Result<(StatusCode, Json<FileUploadResult>), Problem> {
    let mut parts = MultipartBody::of(request)?;
    let stored = store(&app, &caller, id, &params, &mut parts).await;
    if stored.is_err() {
        parts.discard().await;
    }
    Ok((StatusCode::CREATED, Json(stored?)))
}

async fn store(
    app: &App,
    actor: &Actor,
    id: ProjectId,
    params: &FileUploadParams,
    parts: &mut MultipartBody,
) -> Result<FileUploadResult, Problem> {
    let FileUploadParams { path: folder, extract } = params;
    let mut incoming = match extract {
        true => app.engine.begin_project_archive(actor, id, folder).await?,
        false => app.engine.begin_project_files(actor, id).await?,
    };
    let mut has_file = false;
    while let Some(mut file) = parts.next_file().await? {
        has_file = true;
        match extract {
            true => incoming.start_archive().await?,
            false => incoming.start(folder, &file.name).await?,
        }
        while let Some(piece) = file.next_piece().await? {
            incoming.write(piece).await?;
        }
    }
    if !has_file {
        return Err(Problem::invalid("The body has no file; send at least one part with a file name."));
    }
    Ok(incoming.finish().await?.into())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileContentParams {
    /// A path in the project, such as `src/main.py`.
    #[param(min_length = 1)]
    path: String,
    /// The first and the last byte, such as `0-1023`, as in the header `Range: bytes=0-1023`.
    #[param(pattern = "^([0-9]+-[0-9]*|-[0-9]+)$", example = "0-1023")]
    #[serde(default)]
    range: Option<String>,
}

/// Read a file
///
/// Common image types are displayed by browsers, everything else is a download. With a range, 206 and that part.
#[utoipa::path(get, path = "/api/projects/{id}/files/content", tag = "project-files",
               params(("id" = ProjectId, Path), FileContentParams),
               responses((status = 200, content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/*"))),
                         (status = 206, description = "A part of the file",
                          content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/*"))),
                         (status = 416, description = "The file does not have this part",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The path is not a file, or leads through a link",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(FileContentParams { path, range }): QueryParams<FileContentParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let opened = app.engine.open_project_file(&caller, id, &path).await?;
    let wanted = match range.as_deref() {
        None => byte_range::wanted(&headers, opened.bytes),
        Some(range) => byte_range::parse(range, opened.bytes).ok_or_else(|| {
            Problem::invalid("range: the first and the last byte, such as 0-1023.").with("parameter", "range")
        })?,
    };
    let headers = content_headers(&opened.name, image_type(&opened.name), opened.bytes)?;
    byte_range::respond(tokio::fs::File::from_std(opened.file), opened.bytes, wanted, headers).await
}

/// By the end of a name, for images that browsers may display.
fn image_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        _ => "application/octet-stream",
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileTargetParams {
    /// A path in the project, such as `src/main.py`.
    #[param(min_length = 1)]
    path: String,
}

/// Write a file
///
/// The body is the content; without one the file is empty. The file appears, or replaces the one at the path, when all of it has arrived.
#[utoipa::path(put, path = "/api/projects/{id}/files/content", tag = "project-files",
               params(("id" = ProjectId, Path), FileTargetParams),
               request_body(content = Option<Vec<u8>>, content_type = "application/octet-stream"),
               responses((status = 200, body = StoredFile),
                         (status = 507, description = "The project or the disk is full",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn write(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(FileTargetParams { path }): QueryParams<FileTargetParams>,
    request: Request,
) -> Result<Json<StoredFile>, Problem> {
    let mut pieces = request.into_body().into_data_stream();
    let stored = async {
        let mut incoming = app.engine.begin_project_files(&caller, id).await?;
        incoming.start("", &path).await?;
        receive(&mut pieces, &mut incoming).await?;
        Ok::<_, Problem>(incoming.finish().await?)
    };
    let stored = stored.await;
    if stored.is_err() {
        body::discard(pieces).await;
    }
    let mut stored = stored?.files;
    stored.pop().map(Json).ok_or_else(|| Problem::internal("a file was stored without a result"))
}

async fn receive(
    mut pieces: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    incoming: &mut IncomingFiles,
) -> Result<(), Problem> {
    while let Some(piece) =
        timeout(multipart::PIECE_DEADLINE, pieces.next()).await.map_err(|_| multipart::too_slow())?
    {
        let piece = piece.map_err(|_| Problem::invalid("The file ended before it was complete; send it again."))?;
        incoming.write(piece).await?;
    }
    Ok(())
}

/// Delete a file
///
/// Or a folder with everything in it. A link is removed, not what it leads to.
#[utoipa::path(delete, path = "/api/projects/{id}/files", tag = "project-files",
               params(("id" = ProjectId, Path), FileTargetParams), responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(FileTargetParams { path }): QueryParams<FileTargetParams>,
) -> Result<StatusCode, Problem> {
    app.engine.delete_project_file(&caller, id, &path).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileMove {
    /// The path of a file or a folder.
    #[schema(min_length = 1)]
    from: String,
    /// Its folders are created. There must be nothing at the path.
    #[schema(min_length = 1)]
    to: String,
}

/// Move a file
///
/// Or a folder with everything in it. What is at the new path already is never replaced.
#[utoipa::path(post, path = "/api/projects/{id}/files/move", tag = "project-files", params(("id" = ProjectId, Path)),
               request_body = FileMove,
               responses((status = 204),
                         (status = 409, description = "Something is at the new path",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn rename(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    JsonBody(FileMove { from, to }, _): JsonBody<FileMove>,
) -> Result<StatusCode, Problem> {
    app.engine.move_project_file(&caller, id, &from, &to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Download a folder
///
/// As a zip archive, which is packed while it is sent. Links are left out. An archive without an end is not complete: the folder
/// has more than 100000 files, or could not be read.
#[utoipa::path(get, path = "/api/projects/{id}/files/archive", tag = "project-files",
               params(("id" = ProjectId, Path), FilePathParams),
               responses((status = 200, content_type = "application/zip", body = Vec<u8>)))]
pub async fn archive(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    QueryParams(FilePathParams { path }): QueryParams<FilePathParams>,
) -> Result<Response, Problem> {
    let mut pieces = app.engine.pack_project_folder(&caller, id, &path).await?;
    let name = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("project");
    let mut headers = content_headers(&format!("{name}.zip"), "application/octet-stream", 0)?;
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    let stream = futures_util::stream::poll_fn(move |context| pieces.poll_recv(context));
    Ok((headers, Body::from_stream(stream)).into_response())
}
