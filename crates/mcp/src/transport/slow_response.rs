//! Slow responses. The response head must be sent soon: proxies, clients and our own timeout end a silent connection.
//! So after a short time the response becomes an event stream with heartbeats that ends with the answer.

use super::response::{self, McpResponse, McpResponseBody};
use bytes::Bytes;
use futures_util::stream;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use std::{convert::Infallible, future::Future, pin::Pin, time::Duration};
use tokio::time::{sleep, timeout};

/// An answer within this time is sent as plain JSON.
const QUICK_LIMIT: Duration = Duration::from_secs(2);

type PendingResponse = Pin<Box<dyn Future<Output = McpResponse> + Send>>;

enum SlowResponseState {
    Pending(PendingResponse),
    Streaming(McpResponseBody),
    Done,
}

/// Returns the answer, or a stream that ends with it. Dropping the response drops a pending answer.
pub async fn stream_if_slow(
    answer: impl Future<Output = McpResponse> + Send + 'static,
    heartbeat: Duration,
) -> McpResponse {
    let mut answer: PendingResponse = Box::pin(answer);
    if let Ok(response) = timeout(QUICK_LIMIT, &mut answer).await {
        return response;
    }
    let frames = stream::unfold(SlowResponseState::Pending(answer), move |state| next(state, heartbeat));
    response::event_stream(StreamBody::new(frames).boxed_unsync())
}

async fn next(
    state: SlowResponseState,
    heartbeat: Duration,
) -> Option<(Result<Frame<Bytes>, Infallible>, SlowResponseState)> {
    let data = |bytes: Bytes| Ok(Frame::data(bytes));
    match state {
        SlowResponseState::Pending(mut answer) => tokio::select! {
            response = &mut answer => {
                if response::is_stream(&response) {
                    let mut body = response.into_body();
                    return Some((body.frame().await?, SlowResponseState::Streaming(body)));
                }
                let Ok(whole) = response.into_body().collect().await;
                Some((data(event(&whole.to_bytes())), SlowResponseState::Done))
            }
            () = sleep(heartbeat) => Some((data(Bytes::from_static(b": still at work\n\n")), SlowResponseState::Pending(answer))),
        },
        SlowResponseState::Streaming(mut body) if !body.is_end_stream() => {
            Some((body.frame().await?, SlowResponseState::Streaming(body)))
        }
        SlowResponseState::Streaming(_) | SlowResponseState::Done => None,
    }
}

/// Event streams need a `data:` prefix on each line.
fn event(json: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(json.len() + 16);
    for line in json.split(|byte| *byte == b'\n') {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::stream_if_slow;
    use crate::transport::response;
    use bytes::Bytes;
    use http::Response;
    use http_body_util::{BodyExt as _, Full};
    use std::time::Duration;
    use tokio::time::sleep;

    const HEARTBEAT: Duration = Duration::from_secs(15);

    async fn answer_after(seconds: u64) -> (bool, String) {
        let answer = async move {
            sleep(Duration::from_secs(seconds)).await;
            Response::new(Full::new(Bytes::from_static(br#"{"id":1}"#)).boxed_unsync())
        };
        let response = stream_if_slow(answer, HEARTBEAT).await;
        let streamed = response::is_stream(&response);
        let Ok(body) = response.into_body().collect().await;
        (streamed, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_answer_is_plain_and_a_slow_one_is_streamed() {
        assert_eq!(answer_after(1).await, (false, r#"{"id":1}"#.into()));
        let (streamed, body) = answer_after(40).await;
        assert!(streamed);
        assert_eq!(body, ": still at work\n\n: still at work\n\ndata: {\"id\":1}\n\n");
    }
}
