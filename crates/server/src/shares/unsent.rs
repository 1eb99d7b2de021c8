//! Responses in memory that a client has not received yet. A client that asks for large pages and reads none of them could
//! otherwise fill the memory, because each response is complete before it is sent.

use super::{UserShares, WAIT, busy};
use crate::error::Problem;
use axum::{
    body::{Body, HttpBody as _, to_bytes},
    response::Response,
};
use bytes::Bytes;
use domain::actor::Actor;
use std::sync::Arc;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

/// What one user may have in responses that are not sent yet. A larger response is sent when nothing else is left.
pub(super) const KIBIBYTES: usize = 32 * 1024;
/// Smaller responses are not counted: they fit into the buffers of the socket.
const COUNTED_FROM: u64 = 64 * 1024;

/// The bytes of a response, counted until the last of them is written to the socket.
struct CountedBytes {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl UserShares {
    /// Counts a response that is complete in memory, and waits if the user has too many bytes in others. Streams pass.
    pub async fn count_unsent(&self, actor: &Actor, response: Response) -> Result<Response, Problem> {
        let Some(size) = response.body().size_hint().exact().filter(|size| *size >= COUNTED_FROM) else {
            return Ok(response);
        };
        let unsent = Arc::clone(&self.share(actor).unsent);
        let counted = usize::try_from(size / 1024).unwrap_or(KIBIBYTES).min(KIBIBYTES);
        let permits = u32::try_from(counted).unwrap_or(u32::MAX);
        let Ok(Ok(permit)) = timeout(WAIT, unsent.acquire_many_owned(permits)).await else {
            return Err(busy("You have large responses open that you do not read; read or close some of them."));
        };
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
        Ok(Response::from_parts(parts, Body::from(Bytes::from_owner(CountedBytes { bytes, _permit: permit }))))
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTED_FROM, KIBIBYTES};
    use crate::{
        error::Code,
        shares::{ShareLimits, UserShares},
    };
    use axum::{
        body::{Body, HttpBody as _},
        response::Response,
    };
    use domain::actor::Actor;

    fn response(bytes: usize) -> Response {
        Response::new(Body::from(vec![7; bytes]))
    }

    #[tokio::test(start_paused = true)]
    async fn m6_responses_that_nobody_reads_are_bounded() {
        let shares = UserShares::new(ShareLimits { streams: 1, subscriptions: 1 });
        let ada = Actor::local();
        let half = KIBIBYTES * 1024 / 2;
        let first = shares.count_unsent(&ada, response(half)).await.unwrap();
        let second = shares.count_unsent(&ada, response(half)).await.unwrap();
        assert_eq!(first.body().size_hint().exact(), Some(half as u64), "the length is still known");
        let refused = shares.count_unsent(&ada, response(half)).await.unwrap_err();
        assert_eq!(refused.code(), Code::TooManyRequests);
        assert!(shares.count_unsent(&ada, response(COUNTED_FROM as usize - 1)).await.is_ok(), "a small one passes");
        drop(second);
        let sent = shares.count_unsent(&ada, response(half)).await.unwrap().into_body();
        drop(first);
        let bytes = axum::body::to_bytes(sent, usize::MAX).await.unwrap();
        assert!(shares.count_unsent(&ada, response(3 * half)).await.is_err(), "the bytes are counted, not the body");
        drop(bytes);
        assert!(shares.count_unsent(&ada, response(3 * half)).await.is_ok(), "alone, a larger one is sent");
    }
}
