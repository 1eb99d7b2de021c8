//! Sends an answer: whole, or as frames with pauses.

use super::log::{RecordedRequest, RequestLog};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use futures_util::{Stream, stream};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Numbered ids in the style of the vendors.
#[derive(Debug, Default)]
pub struct IdSequence(AtomicU64);

impl IdSequence {
    pub fn next(&self, prefix: &str) -> String {
        format!("{prefix}_double{:06}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[derive(Debug)]
pub enum ModelReply {
    Whole { status: u16, retry_after: Option<u32>, body: Value },
    Stream(PacedFrames),
}

impl ModelReply {
    pub fn ok(body: Value) -> Self {
        Self::Whole { status: 200, retry_after: None, body }
    }
}

/// Server-sent events with the pauses between them.
#[derive(Debug)]
pub struct PacedFrames {
    steps: VecDeque<FrameStep>,
    pace: Duration,
    has_sent: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum FrameStep {
    Frame(String),
    Pause(Duration),
    Cut,
}

impl PacedFrames {
    pub fn paced(pace: Duration) -> Self {
        Self { steps: VecDeque::new(), pace, has_sent: false }
    }

    /// Adds the pause before a delta; the first delta has none.
    pub fn pause(&mut self) {
        if self.has_sent && !self.pace.is_zero() {
            self.steps.push_back(FrameStep::Pause(self.pace));
        }
        self.has_sent = true;
    }

    pub fn event(&mut self, name: &str, data: &Value) {
        self.steps.push_back(FrameStep::Frame(format!("event: {name}\ndata: {data}\n\n")));
    }

    pub fn data(&mut self, data: &Value) {
        self.literal(&data.to_string());
    }

    pub fn literal(&mut self, data: &str) {
        self.steps.push_back(FrameStep::Frame(format!("data: {data}\n\n")));
    }

    pub fn cut(&mut self) {
        self.steps.push_back(FrameStep::Cut);
    }
}

/// Marks the end of the answer in the log, also if the client disconnects and the guard is dropped.
struct AnswerGuard {
    request: Arc<RecordedRequest>,
    log: Arc<RequestLog>,
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        if self.request.mark_abandoned() {
            self.log.changed();
        }
    }
}

pub fn respond(reply: ModelReply, request: Arc<RecordedRequest>, log: &Arc<RequestLog>, id: &str) -> Response {
    let (status, kind, retry_after, body) = match reply {
        ModelReply::Whole { status, retry_after, body } => {
            request.mark_complete();
            log.changed();
            (status, "application/json", retry_after, Body::from(body.to_string()))
        }
        ModelReply::Stream(frames) => {
            let guard = AnswerGuard { request, log: Arc::clone(log) };
            (200, "text/event-stream", None, Body::from_stream(play(frames, guard)))
        }
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("request-id", id.clone());
        headers.insert("x-request-id", id);
    }
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}

/// Long enough to write a few frames on a busy machine.
const BEFORE_CUT: std::time::Duration = std::time::Duration::from_millis(200);

/// Deadlines are cumulative, so delays do not add up. An error closes the connection without a proper end.
fn play(frames: PacedFrames, guard: AnswerGuard) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let begin = (frames.steps, Instant::now(), Some(guard));
    stream::unfold(begin, |(mut steps, mut due, mut guard)| async move {
        loop {
            match steps.pop_front() {
                Some(FrameStep::Frame(frame)) => return Some((Ok(Bytes::from(frame)), (steps, due, guard))),
                Some(FrameStep::Pause(pause)) => {
                    due += pause;
                    sleep_until(due).await;
                }
                Some(FrameStep::Cut) => {
                    // An error drops frames that are not written yet; those before the cut must arrive.
                    tokio::time::sleep(BEFORE_CUT).await;
                    let cut = io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script");
                    complete(guard.take());
                    return Some((Err(cut), (VecDeque::new(), due, None)));
                }
                None => {
                    complete(guard.take());
                    return None;
                }
            }
        }
    })
}

fn complete(guard: Option<AnswerGuard>) {
    if let Some(guard) = guard {
        guard.request.mark_complete();
        guard.log.changed();
    }
}

/// Estimates tokens as four characters of JSON each.
pub fn tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4).max(1)
}

/// Splits the input of a call the way the vendors do.
pub fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(16).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::{FrameStep, PacedFrames};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn first_delta_has_no_pause() {
        let mut frames = PacedFrames::paced(Duration::from_millis(5));
        for number in 1..=2 {
            frames.pause();
            frames.event("delta", &json!({"n": number}));
        }
        let expected = [
            FrameStep::Frame("event: delta\ndata: {\"n\":1}\n\n".into()),
            FrameStep::Pause(Duration::from_millis(5)),
            FrameStep::Frame("event: delta\ndata: {\"n\":2}\n\n".into()),
        ];
        assert_eq!(frames.steps, expected);
    }
}
