//! An answer that is long in coming. Its head has to be out soon all the same: proxies and clients give up on a silent
//! connection, and so does our own deadline. So after a moment the answer becomes a stream that says now and then that it is
//! still there, and ends with what came.

use super::reply::{self, Body, Reply};
use bytes::Bytes;
use futures_util::stream;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use std::{convert::Infallible, future::Future, pin::Pin, time::Duration};
use tokio::time::{sleep, timeout};

/// A quick answer is a plain one.
const MOMENT: Duration = Duration::from_secs(2);

type Coming = Pin<Box<dyn Future<Output = Reply> + Send>>;

enum State {
    Coming(Coming),
    Flowing(Body),
    Over,
}

/// Dropping what is returned drops the answer that is still coming.
pub async fn patiently(answer: impl Future<Output = Reply> + Send + 'static, heartbeat: Duration) -> Reply {
    let mut answer: Coming = Box::pin(answer);
    if let Ok(reply) = timeout(MOMENT, &mut answer).await {
        return reply;
    }
    let frames = stream::unfold(State::Coming(answer), move |state| next(state, heartbeat));
    reply::stream(StreamBody::new(frames).boxed_unsync())
}

async fn next(state: State, heartbeat: Duration) -> Option<(Result<Frame<Bytes>, Infallible>, State)> {
    let data = |bytes: Bytes| Ok(Frame::data(bytes));
    match state {
        State::Coming(mut answer) => tokio::select! {
            reply = &mut answer => {
                if reply::is_stream(&reply) {
                    let mut body = reply.into_body();
                    return Some((body.frame().await?, State::Flowing(body)));
                }
                let Ok(whole) = reply.into_body().collect().await;
                Some((data(event(&whole.to_bytes())), State::Over))
            }
            () = sleep(heartbeat) => Some((data(Bytes::from_static(b": still at work\n\n")), State::Coming(answer))),
        },
        State::Flowing(mut body) if !body.is_end_stream() => Some((body.frame().await?, State::Flowing(body))),
        State::Flowing(_) | State::Over => None,
    }
}

/// A line each, as the format of event streams wants it.
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
    use super::patiently;
    use crate::transport::reply;
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
        let reply = patiently(answer, HEARTBEAT).await;
        let streamed = reply::is_stream(&reply);
        let Ok(body) = reply.into_body().collect().await;
        (streamed, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_answer_is_plain_and_a_slow_one_is_announced() {
        assert_eq!(answer_after(1).await, (false, r#"{"id":1}"#.into()));
        let (streamed, said) = answer_after(40).await;
        assert!(streamed);
        assert_eq!(said, ": still at work\n\n: still at work\n\ndata: {\"id\":1}\n\n");
    }
}
