//! The SSE stream (server-sent events) of a room: `id: <epoch>-<seq>`, `event: <type>`, `data: <the event>`.

use super::room_reader::{RoomReader, RoomUpdate};
use crate::{App, error::Problem};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use domain::{
    ids::RunId,
    position::{Epoch, Position},
};
use futures_util::stream::{self, Stream};
use std::{convert::Infallible, sync::Arc};
use store::journal::Frame;

pub const MIME: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Sent first: when to reconnect after the connection is lost. It also makes the client see the open stream at once.
const RETRY_HINT: &str = "retry: 1000\n\n";

/// Returns whether the client asked for a stream instead of a page.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.split(';').next().unwrap_or("").trim() == MIME)
}

/// The position to resume at. `Last-Event-ID`, which a reconnecting browser sends, wins over the URL.
pub fn position(headers: &HeaderMap, after: Option<&str>) -> Result<Position, Problem> {
    let last = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let text = match last {
        Some(value) => value.to_str().map_err(|_| Problem::invalid("Last-Event-ID is not text"))?,
        None => match after {
            Some(after) => after,
            None => return Ok(Position::START),
        },
    };
    text.parse().map_err(|error| Problem::invalid(format!("after: {error}")))
}

/// Streams the whole room without an end.
pub fn room(app: &App, live: RoomReader) -> Response {
    stream_of(app, live, None)
}

/// Streams one run's events and ends after its terminal event.
pub fn run(app: &App, live: RoomReader, run: RunId) -> Response {
    stream_of(app, live, Some(run))
}

fn stream_of(app: &App, live: RoomReader, run: Option<RunId>) -> Response {
    let state = SseState { live, epoch: app.engine.queries().epoch().clone(), run, started: false, ended: false };
    respond(bytes_of(state))
}

fn bytes_of(state: SseState) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(state, |mut state| async move { Some((state.next().await?, state)) })
}

/// Adds the headers that keep proxies from buffering, caching or compressing the stream.
pub fn respond(bytes: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt as _;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MIME)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(bytes.map(Ok::<_, Infallible>))).into_response()
}

struct SseState {
    live: RoomReader,
    epoch: Epoch,
    run: Option<RunId>,
    started: bool,
    ended: bool,
}

impl SseState {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(Bytes::from_static(RETRY_HINT.as_bytes()));
        }
        while !self.ended {
            let epoch = &self.epoch;
            let bytes: Bytes = match self.live.next().await {
                RoomUpdate::Frames(frames) => match self.select(&frames) {
                    Some(bytes) => bytes,
                    None => continue,
                },
                RoomUpdate::Reset { head } => {
                    format!("event: reset\ndata: {{\"epoch\":\"{epoch}\",\"head\":{head}}}\n\n").into()
                }
                // Without an id, so that it does not move the position that a client resumes from.
                RoomUpdate::Heartbeat { head } => {
                    format!(": keep-alive\n\nevent: heartbeat\ndata: {{\"epoch\":\"{epoch}\",\"head\":{head}}}\n\n")
                        .into()
                }
                RoomUpdate::Stopping => {
                    self.ended = true;
                    Bytes::from_static(b": the server is stopping\nretry: 1000\n\n")
                }
                RoomUpdate::Failed(problem) => {
                    self.ended = true;
                    problem.log("sse");
                    let data = serde_json::json!({"code": problem.code(), "message": problem.detail()});
                    format!("event: error\ndata: {data}\n\n").into()
                }
            };
            return Some(bytes);
        }
        None
    }

    /// Joins all ready frames, for one socket write instead of many.
    fn select(&mut self, frames: &[Arc<Frame>]) -> Option<Bytes> {
        let Some(run) = self.run else { return Some(joined(frames.iter())) };
        let end = frames.iter().position(|frame| frame.run_id == Some(run) && frame.kind.ends_a_run());
        self.ended = end.is_some();
        let until = end.map_or(frames.len(), |at| at + 1);
        let ours: Vec<_> = frames[..until].iter().filter(|frame| frame.run_id == Some(run)).collect();
        if ours.is_empty() { None } else { Some(joined(ours.into_iter())) }
    }
}

fn joined<'a>(mut frames: impl Iterator<Item = &'a Arc<Frame>> + Clone) -> Bytes {
    let total = frames.clone().map(|frame| frame.len()).sum();
    match (frames.clone().next(), frames.clone().nth(1)) {
        // A single frame is shared without copying.
        (Some(only), None) => only.sse().clone(),
        _ => {
            let bytes = frames.try_fold(BytesMut::with_capacity(total), |mut all, frame| {
                all.extend_from_slice(frame.sse());
                Some(all)
            });
            bytes.unwrap_or_default().freeze()
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
