//! The files of a `multipart/form-data` body, piece by piece, in bounded memory and within a deadline for each piece.

use super::body::too_large;
use crate::error::{Code, Problem};
use axum::{
    body::BodyDataStream,
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures_util::Stream;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::timeout;

/// Time between two pieces.
pub const PIECE_DEADLINE: Duration = Duration::from_secs(30);
const DISCARD_DEADLINE: Duration = Duration::from_secs(5);
/// What may be read before the next piece, or the head of the next part, is complete. The parser has no limit of its own.
const MAX_READ_AHEAD: usize = 4 << 20;

pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("multipart/form-data")
}

pub struct MultipartBody {
    parts: multer::Multipart<'static>,
    read_ahead: Arc<AtomicUsize>,
}

pub struct MultipartFile {
    pub name: String,
    /// The Content-Type of the part.
    pub media_type: Option<String>,
    field: multer::Field<'static>,
    read_ahead: Arc<AtomicUsize>,
}

impl MultipartBody {
    pub fn of(request: Request) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(kind).map_err(|_| {
            Problem::new(Code::UnsupportedMediaType, "Send the files as multipart/form-data, with a boundary.")
        })?;
        let read_ahead = Arc::new(AtomicUsize::new(0));
        let body = request.into_body().into_data_stream();
        let pieces = MeteredBody { body, read_ahead: Arc::clone(&read_ahead), is_paused: false };
        Ok(Self { parts: multer::Multipart::new(pieces, boundary), read_ahead })
    }

    /// The content of the first part, which must have this name.
    pub async fn first_text(&mut self, name: &str, limit: usize) -> Result<Vec<u8>, Problem> {
        let next = timeout(PIECE_DEADLINE, self.parts.next_field()).await.map_err(|_| too_slow())?;
        let Some(mut field) = next.map_err(unreadable)?.filter(|field| field.name() == Some(name)) else {
            return Err(Problem::invalid(format!("The first part of the form must be `{name}`.")));
        };
        let mut content = Vec::new();
        loop {
            self.read_ahead.store(0, Ordering::Relaxed);
            let piece = timeout(PIECE_DEADLINE, field.chunk()).await.map_err(|_| too_slow())?.map_err(unreadable)?;
            let Some(piece) = piece else { return Ok(content) };
            if content.len() + piece.len() > limit {
                return Err(too_large(limit));
            }
            content.extend_from_slice(&piece);
        }
    }

    /// The next part with a file name. The part before must have been read to its end.
    pub async fn next_file(&mut self) -> Result<Option<MultipartFile>, Problem> {
        loop {
            self.read_ahead.store(0, Ordering::Relaxed);
            let next = timeout(PIECE_DEADLINE, self.parts.next_field()).await.map_err(|_| too_slow())?;
            let Some(field) = next.map_err(unreadable)? else { return Ok(None) };
            // A form without a chosen file has an empty name.
            if let Some(name) = field.file_name().filter(|name| !name.is_empty()).map(str::to_owned) {
                let media_type = field.content_type().map(ToString::to_string);
                let read_ahead = Arc::clone(&self.read_ahead);
                return Ok(Some(MultipartFile { name, media_type, field, read_ahead }));
            }
        }
    }

    /// Reads the rest of a refused request: a client that still sends would not see the response.
    pub async fn discard(mut self) {
        let rest = async {
            while let Ok(Some(mut file)) = self.next_file().await {
                while let Ok(Some(_)) = file.next_piece().await {}
            }
        };
        timeout(DISCARD_DEADLINE, rest).await.unwrap_or_default();
    }
}

impl MultipartFile {
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, Problem> {
        self.read_ahead.store(0, Ordering::Relaxed);
        timeout(PIECE_DEADLINE, self.field.chunk()).await.map_err(|_| too_slow())?.map_err(unreadable)
    }
}

/// The body as the parser sees it: one piece each time it is asked, or it would first take all that has arrived.
struct MeteredBody {
    body: BodyDataStream,
    read_ahead: Arc<AtomicUsize>,
    is_paused: bool,
}

impl Stream for MeteredBody {
    type Item = Result<Bytes, MultipartBodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_paused) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match std::task::ready!(Pin::new(&mut self.body).poll_next(context)) {
            None => Poll::Ready(None),
            Some(Err(_)) => Poll::Ready(Some(Err(MultipartBodyError::CutOff))),
            Some(Ok(piece)) => {
                self.is_paused = true;
                let read = self.read_ahead.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
                let is_too_much = read > MAX_READ_AHEAD;
                Poll::Ready(Some(if is_too_much { Err(MultipartBodyError::NoPart) } else { Ok(piece) }))
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum MultipartBodyError {
    #[error("the request ended before they were complete")]
    CutOff,
    #[error("a part has no end, no head or no file name")]
    NoPart,
}

pub fn too_slow() -> Problem {
    let detail = format!("No data arrived for {} s; send the files again.", PIECE_DEADLINE.as_secs());
    Problem::new(Code::RequestTimeout, detail)
}

fn unreadable(error: multer::Error) -> Problem {
    match error {
        multer::Error::StreamReadFailed(cause) => Problem::invalid(format!("The files could not be read: {cause}.")),
        error => Problem::invalid(format!("The files could not be read: {error}; send them again.")),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_READ_AHEAD, MultipartBody};
    use axum::{body::Body, extract::Request};
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    const HEAD: &str = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n";
    const PIECE: usize = 64 << 10;

    /// A body without an end, and how many pieces of it were taken.
    fn endless(head: &'static str) -> (MultipartBody, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let pieces = stream::iter(0_usize..).map(move |n| {
            counted.store(n, Ordering::Relaxed);
            Ok::<_, Infallible>(if n == 0 { Bytes::from_static(head.as_bytes()) } else { vec![b'x'; PIECE].into() })
        });
        let request = Request::builder().header("content-type", "multipart/form-data; boundary=b");
        (MultipartBody::of(request.body(Body::from_stream(pieces)).unwrap()).unwrap(), taken)
    }

    #[tokio::test]
    async fn a_fast_sender_does_not_fill_the_memory() {
        let (mut body, taken) = endless(HEAD);
        let mut file = body.next_file().await.unwrap().unwrap();
        for _ in 0..500 {
            assert!(file.next_piece().await.unwrap().is_some());
        }
        assert!(taken.load(Ordering::Relaxed) < 510, "each piece is taken when it is asked for");
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_refused() {
        for head in ["--b\r\nX: ", "no boundary", "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n"] {
            let (mut body, taken) = endless(head);
            assert!(body.next_file().await.is_err(), "{head}");
            assert!(taken.load(Ordering::Relaxed) * PIECE <= MAX_READ_AHEAD + 2 * PIECE);
        }
    }
}
