//! SSE (server-sent events): the SSE stream of a room, and the SSE stream of one run. Each SSE event has the fields
//! `id: <epoch>-<seq>`, `event: <type>` and `data: <the event>`; `store::journal::frame` builds its bytes. The routes are in
//! `http::events` and `http::runs`.

use super::room_reader::{FrameBatch, RoomReader, RoomUpdate};
use crate::{
    App, accept,
    error::{Code, Problem},
};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use domain::{
    position::{Epoch, Position, Seq},
    run::Run,
};
use engine::Queries;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use std::{convert::Infallible, sync::Arc, time::Duration};
use store::journal::Frame;

pub const MIME: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// A heartbeat contains a comment; proxies and clients may close a connection that is silent for longer.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(30);

/// Sent first: when to reconnect after the connection is lost. It also makes the client see the open stream at once.
pub(super) const RETRY_HINT: &str = "retry: 1000\n\n";

/// Sent last when the server stops.
pub(super) const STOPPING: &[u8] = b": the server is stopping\nretry: 1000\n\n";

/// The `data` of a frame `heartbeat` or `reset` in a stream of events.
#[derive(Serialize, utoipa::ToSchema)]
pub struct StreamPlace<'a> {
    #[schema(value_type = String)]
    epoch: &'a Epoch,
    head: Seq,
}

/// The `data` of a frame `problem`, the last of a stream that the server had to end.
#[derive(Serialize, utoipa::ToSchema)]
pub struct StreamProblem<'a> {
    code: Code,
    /// What happened and what to do.
    message: &'a str,
}

/// Returns whether the client prefers an SSE stream to a page.
pub fn is_wanted(headers: &HeaderMap) -> Result<bool, Problem> {
    accept::choose(headers, &["application/json", MIME]).map(|kind| kind == MIME)
}

/// The position to resume at. `Last-Event-ID`, which a reconnecting browser sends, wins over the URL.
pub fn position(headers: &HeaderMap, after: Option<&str>) -> Result<Position, Problem> {
    let text = match last_event_id(headers)?.or(after) {
        Some(text) => text,
        None => return Ok(Position::START),
    };
    text.parse().map_err(|error| Problem::invalid(format!("after: {error}")))
}

/// The id of the last frame that a reconnecting client has.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let sent = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    sent.map(|value| value.to_str().map_err(|_| Problem::invalid("Last-Event-ID is not text"))).transpose()
}

/// Whether a run has ended and has no event after a position.
pub async fn is_complete(queries: &Queries, run: &Run, after: &Position) -> Result<bool, store::StoreError> {
    Ok(run.status.is_terminal()
        && after.epoch.as_ref().is_none_or(|epoch| epoch == queries.epoch())
        && !queries.has_run_events(run, after.seq).await?)
}

/// The SSE stream of a room, without an end, or of one run, up to the run's terminal event.
pub fn stream_of(app: &App, live: RoomReader) -> Response {
    let state = SseState { live, epoch: app.engine.queries().epoch().clone(), started: false, ended: false };
    respond(bytes_of(state))
}

fn bytes_of(state: SseState) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(state, |mut state| async move { Some((state.next().await?, state)) })
}

/// An SSE response: adds the headers that keep proxies from buffering, caching or compressing the stream.
pub fn respond(bytes: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt as _;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MIME)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(bytes.map(Ok::<_, Infallible>))).into_response()
}

/// The state of an SSE stream between two of its events.
struct SseState {
    live: RoomReader,
    epoch: Epoch,
    started: bool,
    ended: bool,
}

impl SseState {
    fn place(&self, head: Seq) -> String {
        // Text and a number always serialize.
        serde_json::to_string(&StreamPlace { epoch: &self.epoch, head }).unwrap_or_default()
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(Bytes::from_static(RETRY_HINT.as_bytes()));
        }
        if self.ended {
            return None;
        }
        Some(match self.live.next().await {
            RoomUpdate::Frames(FrameBatch { frames, memory }) => FrameBatch::hold(memory, joined(&frames)),
            RoomUpdate::RunEnded => return None,
            RoomUpdate::Reset { head } => format!("event: reset\ndata: {}\n\n", self.place(head)).into(),
            // Without an id, so that it does not move the position that a client resumes from.
            RoomUpdate::Heartbeat { head } => {
                format!(": keep-alive\n\nevent: heartbeat\ndata: {}\n\n", self.place(head)).into()
            }
            RoomUpdate::Stopping => {
                self.ended = true;
                Bytes::from_static(STOPPING)
            }
            RoomUpdate::Failed(problem) => {
                self.ended = true;
                error_event(&problem)
            }
        })
    }
}

/// The last event of a stream that cannot go on.
pub(super) fn error_event(problem: &Problem) -> Bytes {
    problem.log("sse");
    let problem = StreamProblem { code: problem.code(), message: problem.detail() };
    format!("event: problem\ndata: {}\n\n", serde_json::to_string(&problem).unwrap_or_default()).into()
}

/// Joins all ready frames, for one socket write instead of many.
fn joined(frames: &[Arc<Frame>]) -> Bytes {
    match frames {
        // A single frame is shared without copying.
        [only] => only.sse().clone(),
        _ => {
            let mut all = BytesMut::with_capacity(frames.iter().map(|frame| frame.len()).sum());
            frames.iter().for_each(|frame| all.extend_from_slice(frame.sse()));
            all.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bytes_of;
    use crate::feed::size_of_result;

    #[test]
    fn an_idle_sse_stream_takes_less_than_1_kib() {
        let size = size_of_result(bytes_of);
        assert!(size < 1024, "{size} bytes; box what runs rarely");
    }
}
