//! Receives the body of an upload: one file as it is, or the files of a form. They are written to disk while they arrive.

use crate::{
    App,
    error::Problem,
    extract::{
        Fingerprint, FingerprintBuilder, body,
        multipart::{self, MultipartBody, MultipartFile},
    },
};
use axum::{extract::Request, http::header};
use domain::{
    actor::Actor,
    name::Name,
    upload::{self, MAX_BYTES},
};
use engine::IncomingUploads;
use futures_util::StreamExt as _;
use tokio::time::timeout;

const MAX_FILE_BYTES: usize = MAX_BYTES as usize;

/// Receives a body that is a file.
pub async fn receive_file(
    app: &App,
    actor: &Actor,
    name: Name,
    request: Request,
) -> Result<(IncomingUploads, Fingerprint), Problem> {
    let request = body::refuse_oversize(request, MAX_FILE_BYTES).await?;
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let (media_type, has_type) = (upload::media_type(sent), sent.is_some());
    let mut print = FingerprintBuilder::of(request.method(), request.uri());
    let mut incoming = app.engine.begin_uploads(actor).await?;
    incoming.start(name, media_type).await?;
    let (mut pieces, mut bytes) = (request.into_body().into_data_stream(), 0);
    while let Some(piece) =
        timeout(multipart::PIECE_DEADLINE, pieces.next()).await.map_err(|_| multipart::too_slow())?
    {
        let piece = piece.map_err(|_| Problem::invalid("The file ended before it was complete; send it again."))?;
        bytes += piece.len();
        if bytes > MAX_FILE_BYTES {
            body::discard(pieces).await;
            return Err(body::too_large(MAX_FILE_BYTES));
        }
        print.add(&piece);
        incoming.write(&piece).await?;
    }
    // An empty file is a file, if the request says so.
    if bytes == 0 && !has_type {
        return Err(Problem::invalid("The body is empty; send the bytes of the file."));
    }
    Ok((incoming, print.finish()))
}

/// Receives the files of a form. Parts without a file name are skipped.
pub async fn receive_form(
    app: &App,
    actor: &Actor,
    request: Request,
) -> Result<(IncomingUploads, Fingerprint), Problem> {
    // Over the files, not over the body: a client that repeats the request chooses another boundary.
    let mut print = FingerprintBuilder::of(request.method(), request.uri());
    let mut parts = MultipartBody::of(request)?;
    let received = async {
        let mut incoming = app.engine.begin_uploads(actor).await?;
        let mut is_empty = true;
        while let Some(mut file) = parts.next_file().await? {
            receive_part(&mut incoming, &mut print, &mut file).await?;
            is_empty = false;
        }
        match is_empty {
            true => Err(Problem::invalid("The form has no file; send at least one part with a file name.")),
            false => Ok(incoming),
        }
    };
    match received.await {
        Ok(incoming) => Ok((incoming, print.finish())),
        Err(problem) => {
            parts.discard().await;
            Err(problem)
        }
    }
}

async fn receive_part(
    incoming: &mut IncomingUploads,
    print: &mut FingerprintBuilder,
    file: &mut MultipartFile,
) -> Result<(), Problem> {
    let name = Name::parse(&file.name).map_err(|error| Problem::invalid(format!("filename: {error}")))?;
    let media_type = upload::media_type(file.media_type.as_deref());
    let mut bytes = 0;
    // Neither has a line feed, and the length of the content follows it: no two forms hash the same bytes.
    print.add(format!("{name}\n{media_type}\n").as_bytes());
    incoming.start(name, media_type).await?;
    while let Some(piece) = file.next_piece().await? {
        bytes += piece.len();
        if bytes > MAX_FILE_BYTES {
            return Err(body::too_large(MAX_FILE_BYTES));
        }
        print.add(&piece);
        incoming.write(&piece).await?;
    }
    print.add(&(bytes as u64).to_le_bytes());
    Ok(())
}
