//! An answer on its way: whole, or in frames by the clock.

use super::log::{Log, Request};
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

/// Ids like the vendors', in the order they are asked for.
#[derive(Debug, Default)]
pub struct Ids(AtomicU64);

impl Ids {
    pub fn next(&self, prefix: &str) -> String {
        format!("{prefix}_double{:06}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[derive(Debug)]
pub enum Reply {
    Whole { status: u16, retry_after: Option<u32>, body: Value },
    Stream(Frames),
}

impl Reply {
    pub fn ok(body: Value) -> Self {
        Self::Whole { status: 200, retry_after: None, body }
    }
}

/// Server-sent events, with the pauses between them.
#[derive(Debug)]
pub struct Frames {
    beats: VecDeque<Beat>,
    pace: Duration,
    has_spoken: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Beat {
    Frame(String),
    Pause(Duration),
    Cut,
}

impl Frames {
    pub fn paced(pace: Duration) -> Self {
        Self { beats: VecDeque::new(), pace, has_spoken: false }
    }

    /// Comes before each delta. The first one is said at once.
    pub fn pause(&mut self) {
        if self.has_spoken && !self.pace.is_zero() {
            self.beats.push_back(Beat::Pause(self.pace));
        }
        self.has_spoken = true;
    }

    pub fn event(&mut self, name: &str, data: &Value) {
        self.beats.push_back(Beat::Frame(format!("event: {name}\ndata: {data}\n\n")));
    }

    pub fn data(&mut self, data: &Value) {
        self.literal(&data.to_string());
    }

    pub fn literal(&mut self, data: &str) {
        self.beats.push_back(Beat::Frame(format!("data: {data}\n\n")));
    }

    pub fn cut(&mut self) {
        self.beats.push_back(Beat::Cut);
    }
}

/// Marks the end of the answer in the log, also when the client goes away and this is dropped.
struct Ending {
    request: Arc<Request>,
    log: Arc<Log>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.request.abandoned() {
            self.log.changed();
        }
    }
}

pub fn respond(reply: Reply, request: Arc<Request>, log: &Arc<Log>, id: &str) -> Response {
    let (status, kind, retry_after, body) = match reply {
        Reply::Whole { status, retry_after, body } => {
            request.complete();
            log.changed();
            (status, "application/json", retry_after, Body::from(body.to_string()))
        }
        Reply::Stream(frames) => {
            let ending = Ending { request, log: Arc::clone(log) };
            (200, "text/event-stream", None, Body::from_stream(play(frames, ending)))
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

/// Deadlines add up from the start, so that lateness does not. An error ends the connection without an end.
fn play(frames: Frames, ending: Ending) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let begin = (frames.beats, Instant::now(), Some(ending));
    stream::unfold(begin, |(mut beats, mut due, mut ending)| async move {
        loop {
            match beats.pop_front() {
                Some(Beat::Frame(frame)) => return Some((Ok(Bytes::from(frame)), (beats, due, ending))),
                Some(Beat::Pause(pause)) => {
                    due += pause;
                    sleep_until(due).await;
                }
                Some(Beat::Cut) => {
                    let cut = io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script");
                    complete(ending.take());
                    return Some((Err(cut), (VecDeque::new(), due, None)));
                }
                None => {
                    complete(ending.take());
                    return None;
                }
            }
        }
    })
}

fn complete(ending: Option<Ending>) {
    if let Some(ending) = ending {
        ending.request.complete();
        ending.log.changed();
    }
}

/// As good as any count of ours: four characters of JSON each.
pub fn tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4).max(1)
}

/// As the vendors cut the input of a call.
pub fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(16).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Beat, Frames};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn the_first_delta_does_not_wait() {
        let mut frames = Frames::paced(Duration::from_millis(5));
        for number in 1..=2 {
            frames.pause();
            frames.event("delta", &json!({"n": number}));
        }
        let expected = [
            Beat::Frame("event: delta\ndata: {\"n\":1}\n\n".into()),
            Beat::Pause(Duration::from_millis(5)),
            Beat::Frame("event: delta\ndata: {\"n\":2}\n\n".into()),
        ];
        assert_eq!(frames.beats, expected);
    }
}
