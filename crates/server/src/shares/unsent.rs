//! Responses and events in memory that a client has not received yet. A client that asks for large ones and reads none of
//! them could otherwise fill the memory, because each is complete before it is sent.

use super::{
    StreamPermit, UserShares, WAIT, busy,
    client_memory::{MemoryPermit, kibibytes},
};
use crate::error::Problem;
use axum::{
    body::{Body, HttpBody as _, to_bytes},
    http::{HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use domain::actor::Actor;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

/// What is taken for a page before its size is known. Most pages have less, and what is left is given back.
/// A page has about 4 MB, or one message more than that, and its JSON has the text twice.
pub(super) const PAGE_KIBIBYTES: u32 = 16 * 1024;
/// Smaller responses are not counted: they fit into the buffers of the socket.
const COUNTED_FROM: u64 = 64 * 1024;

/// The right to read one long page and to keep it in memory until it is sent.
pub struct PageShare {
    _reading: OwnedSemaphorePermit,
    memory: MemoryPermit,
}

/// Marks a response that is counted already.
#[derive(Clone)]
struct CountedResponse;

/// The bytes of a response, counted until the last of them is written to the socket.
struct CountedBytes {
    bytes: Bytes,
    _memory: MemoryPermit,
}

impl MemoryPermit {
    /// The bytes that this memory was taken for. The memory is given back when the last of them is sent.
    pub fn hold(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _memory: self })
    }
}

impl StreamPermit {
    /// Waits until a large event may be read: it takes memory until it is sent.
    pub async fn take_memory(&self, bytes: usize) -> Result<MemoryPermit, Problem> {
        let taken = timeout(WAIT, self.0.memory.take(kibibytes(bytes as u64))).await.ok().flatten();
        taken.ok_or_else(too_much)
    }

    /// Counts a message that is complete in memory, like [`UserShares::count_unsent`]. `None` for a small one.
    pub fn try_memory(&self, bytes: usize) -> Result<Option<MemoryPermit>, Problem> {
        if (bytes as u64) < COUNTED_FROM {
            return Ok(None);
        }
        self.0.memory.try_take(kibibytes(bytes as u64)).map(Some).ok_or_else(too_much)
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PageShare {
    pub(super) fn new(reading: OwnedSemaphorePermit, memory: MemoryPermit) -> Self {
        Self { _reading: reading, memory }
    }

    /// The page as a JSON response, counted until it is sent. A page that is larger than others needs more than was
    /// taken for it, and is refused if that is not left.
    pub fn respond(self, page: Vec<u8>) -> Result<Response, Problem> {
        let Self { _reading, mut memory } = self;
        if !memory.resize(kibibytes(page.len() as u64)) {
            return Err(too_much());
        }
        let mut response = Response::new(Body::from(memory.hold(page.into())));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.extensions_mut().insert(CountedResponse);
        Ok(response)
    }
}

/// The body of a response was replaced: it is counted again.
pub(crate) fn count_again(response: &mut Response) {
    response.extensions_mut().remove::<CountedResponse>();
}

fn too_much() -> Problem {
    busy("You have large responses open that you do not read; read or close some of them.")
}

impl UserShares {
    /// Counts a response that is complete in memory, and refuses it if the user has too many bytes in others: to wait
    /// would keep it in memory. Streams and pages pass.
    pub async fn count_unsent(&self, actor: &Actor, response: Response) -> Result<Response, Problem> {
        let Some(size) = response.body().size_hint().exact().filter(|size| *size >= COUNTED_FROM) else {
            return Ok(response);
        };
        if response.extensions().get::<CountedResponse>().is_some() {
            return Ok(response);
        }
        let memory = self.share(actor).memory.try_take(kibibytes(size)).ok_or_else(too_much)?;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
        Ok(Response::from_parts(parts, Body::from(memory.hold(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTED_FROM, PAGE_KIBIBYTES};
    use crate::{
        error::Code,
        shares::{ShareLimits, UserShares, client_memory::USER_KIBIBYTES as KIBIBYTES},
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
    async fn m6_pages_that_nobody_reads_are_bounded_before_they_are_read() {
        let shares = UserShares::new(ShareLimits { streams: 1, subscriptions: 1 });
        let ada = Actor::local();
        let mut open = Vec::new();
        for _ in 0..KIBIBYTES as u32 / PAGE_KIBIBYTES {
            let page = shares.read_page(&ada).await.unwrap();
            let response = page.respond(vec![b'7'; PAGE_KIBIBYTES as usize * 1024]).unwrap();
            open.push(shares.count_unsent(&ada, response).await.unwrap());
        }
        assert_eq!(shares.read_page(&ada).await.err().unwrap().code(), Code::TooManyRequests);
        open.pop();
        let small = shares.read_page(&ada).await.unwrap().respond(vec![b'7'; 10]).unwrap();
        let next = shares.read_page(&ada).await.unwrap();
        let larger = next.respond(vec![b'7'; 2 * PAGE_KIBIBYTES as usize * 1024]);
        assert_eq!(larger.err().unwrap().code(), Code::TooManyRequests, "only one page is left");
        drop((open, small));
        let alone = shares.read_page(&ada).await.unwrap();
        assert!(alone.respond(vec![b'7'; 2 * KIBIBYTES * 1024]).is_ok(), "alone, any page is sent");
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
