//! Uploads: files that messages attach. Their content is untrusted: it is returned as a download, never as a
//! page, a script or a style of this server.

use crate::{
    App,
    auth::Caller,
    byte_range,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, QueryParams, multipart::is_form},
    http::{
        Created, WriteOutcome, attempt, named_page::page_limit, project_files::UploadedFiles, run_once, upload_body,
    },
};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use domain::{
    ids::UploadId,
    name::Name,
    upload::{self, Upload},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const PATH: &str = "/api/uploads";
/// The files of a form, and the heads of its parts.
pub const MAX_BODY_BYTES: usize = upload::MAX_FILES * (upload::MAX_BYTES as usize + 16 * 1024);
/// Time for a complete upload.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// Image types that browsers may display. SVG is excluded, because it can contain scripts.
const SAFE_IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];
/// Characters that are allowed in an extended header value (RFC 8187).
const ATTRIBUTE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadParams {
    /// The file name. Required, but not for a form, which has the names in its parts.
    name: Option<Name>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Upload)]
pub struct UploadView {
    id: UploadId,
    name: Name,
    media_type: String,
    bytes: u64,
    /// The `url` for a message's attachment.
    #[schema(examples("/api/uploads/0199…"))]
    url: String,
}

impl From<Upload> for UploadView {
    fn from(upload: Upload) -> Self {
        let url = upload.url();
        let Upload { id, name, media_type, bytes, .. } = upload;
        Self { id, name, media_type, bytes, url }
    }
}

/// The uploaded files: the first of them, and all in `uploads`.
#[derive(Serialize, utoipa::ToSchema)]
pub struct UploadResult {
    #[serde(flatten)]
    first: UploadView,
    /// All files of the request, in their order.
    uploads: Vec<UploadView>,
}

/// Upload files
///
/// The body is a file with its Content-Type and its name in `name`, or `multipart/form-data` with up to 32 parts that have a file
/// name. A file has at most 25 MB. All files of a request are stored, or none. Attach them to a message by their `url`.
#[utoipa::path(post, path = "/api/uploads", tag = "uploads", params(UploadParams),
               request_body(content((Vec<u8> = "application/octet-stream"), (UploadedFiles = "multipart/form-data"))),
               responses((status = 201, body = UploadResult),
                         (status = 413, description = "A file is too large",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "There are too many uploads",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    QueryParams(UploadParams { name }): QueryParams<UploadParams>,
    request: Request,
) -> Result<Created<UploadResult>, Problem> {
    let actor = &*caller;
    let (incoming, fingerprint) = match (is_form(request.headers()), name) {
        (true, None) => upload_body::receive_form(&app, actor, request).await?,
        (true, Some(_)) => return Err(Problem::unprocessable("name: a form has the names of its files in its parts.")),
        (false, Some(name)) => upload_body::receive_file(&app, actor, name, request).await?,
        (false, None) => {
            return Err(Problem::unprocessable("name: the file name is missing; send ?name=FILE, or a form."));
        }
    };
    let attempt = attempt(key, fingerprint);
    let write = async { Ok(incoming.finish(attempt.as_ref()).await?) };
    let uploads = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(uploads) => uploads,
        WriteOutcome::AlreadyDone(ids) => {
            let mut uploads = Vec::new();
            for id in ids.split(',') {
                let id = id.parse().map_err(Problem::internal)?;
                uploads.push(app.engine.queries().upload(&actor.workspace, id).await?);
            }
            uploads
        }
    };
    let first = uploads.first().cloned().ok_or_else(|| Problem::internal("no file was stored"))?;
    let uploads = uploads.into_iter().map(UploadView::from).collect();
    Ok(Created::at(PATH, first.id, UploadResult { first: first.into(), uploads }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadPageParams {
    /// The `next` of the previous page.
    before: Option<UploadId>,
    /// Maximum number of files.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct UploadList {
    uploads: Vec<UploadView>,
    /// Send it as `before` to get the next page; `null` on the last page.
    next: Option<UploadId>,
}

/// List files
///
/// Newest first, in pages.
#[utoipa::path(get, path = "/api/uploads", tag = "uploads", params(UploadPageParams),
               responses((status = 200, body = UploadList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(UploadPageParams { before, limit }): QueryParams<UploadPageParams>,
) -> Result<Json<UploadList>, Problem> {
    let limit = page_limit(limit, 100)?;
    // One extra row shows whether there is a next page.
    let mut found = app.engine.queries().uploads(&caller.workspace, before, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| last.id);
    Ok(Json(UploadList { uploads: found.into_iter().map(UploadView::from).collect(), next }))
}

/// Download a file
///
/// Common image types are displayed by browsers, everything else is a download. One `Range` of bytes is supported.
#[utoipa::path(get, path = "/api/uploads/{id}", tag = "uploads", params(("id" = UploadId, Path)),
               responses((status = 200, content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/*"))),
                         (status = 206, description = "The range of bytes that `Range` asks for",
                          content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/*"))),
                         (status = 416, description = "The range is beyond the end of the file",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<UploadId>,
    request: HeaderMap,
) -> Result<Response, Problem> {
    let (upload, file) = app.engine.open_upload(&caller, id).await?;
    byte_range::respond(file, upload.bytes, byte_range::wanted(&request, upload.bytes), headers(&upload)?).await
}

fn headers(upload: &Upload) -> Result<HeaderMap, Problem> {
    content_headers(upload.name.as_str(), &upload.media_type, upload.bytes)
}

/// The headers of untrusted content: only an image may be displayed.
pub(super) fn content_headers(name: &str, media_type: &str, bytes: u64) -> Result<HeaderMap, Problem> {
    let image = SAFE_IMAGES.into_iter().find(|kind| *kind == media_type);
    // With its own type, a script or stylesheet in an upload would count as one of this server.
    let kind = image.unwrap_or("application/octet-stream");
    let disposition = if image.is_some() { "inline" } else { "attachment" };
    let name = utf8_percent_encode(name, ATTRIBUTE);
    let disposition = HeaderValue::try_from(format!("{disposition}; filename*=UTF-8''{name}"));
    Ok(HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes)),
        (header::CONTENT_DISPOSITION, disposition.map_err(Problem::internal)?),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'"),
        ),
        (header::HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ]))
}

/// Delete a file
///
/// Messages still refer to it; agents that received it keep their copy.
#[utoipa::path(delete, path = "/api/uploads/{id}", tag = "uploads", params(("id" = UploadId, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<UploadId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_upload(actor, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::headers;
    use domain::{ids::UploadId, name::Name, time::Timestamp, upload::Upload};

    #[test]
    fn invariant_16_only_images_are_displayed_and_file_names_are_escaped() {
        let shown = |media_type: &str, name: &str| {
            let (id, name) = (UploadId::generate(), Name::parse(name).unwrap());
            let created_at = Timestamp::from_millis(0);
            let headers = headers(&Upload { id, name, media_type: media_type.into(), bytes: 1, created_at }).unwrap();
            let read = |name: &str| headers[name].to_str().unwrap().to_owned();
            (read("content-type"), read("content-disposition"), read("content-security-policy"))
        };
        let (kind, disposition, policy) = shown("image/png", "Café \"; x=y.png");
        assert_eq!(kind, "image/png");
        assert_eq!(disposition, "inline; filename*=UTF-8''Caf%C3%A9%20%22%3B%20x%3Dy.png");
        assert!(policy.contains("sandbox"));
        for kind in ["text/html", "image/svg+xml", "text/javascript", "application/pdf", "text/css"] {
            let (kind, disposition, _) = shown(kind, "a");
            assert_eq!(kind, "application/octet-stream");
            assert!(disposition.starts_with("attachment"), "{disposition}");
        }
    }
}
