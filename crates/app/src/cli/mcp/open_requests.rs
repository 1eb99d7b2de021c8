//! The unanswered requests, by the client's ids.

use super::message::ClientRequest;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

/// Limits on the number of open requests and on their total size.
const MAX_REQUESTS: usize = 1024;
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long a cancellation waits for its request to reach the server.
const MAX_TRANSIT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct BridgeRequests {
    state: Mutex<BridgeRequestsState>,
}

#[derive(Default)]
struct BridgeRequestsState {
    open: HashMap<String, Arc<BridgeRequest>>,
    bytes: usize,
}

pub struct BridgeRequest {
    is_modern: bool,
    is_subscription: bool,
    bytes: usize,
    /// Stops forwarding it, without a response.
    pub cancel: CancellationToken,
    /// The client has cancelled it.
    cancelled_by_client: AtomicBool,
    stage: watch::Sender<RequestStage>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestStage {
    Waiting,
    Sent,
    Received,
}

impl BridgeRequest {
    pub fn mark_sent(&self) {
        self.stage.send_replace(RequestStage::Sent);
    }

    /// The server has started to respond.
    pub fn mark_received(&self) {
        self.stage.send_replace(RequestStage::Received);
    }

    pub fn is_cancelled_by_client(&self) -> bool {
        self.cancelled_by_client.load(Ordering::Relaxed)
    }

    /// Waits until the server has presumably received the request.
    pub async fn wait_until_received(&self) {
        let mut stage = self.stage.subscribe();
        // Stop waiting, whether the request has ended or the wait timed out.
        timeout(MAX_TRANSIT, stage.wait_for(|stage| *stage == RequestStage::Received))
            .await
            .map(drop)
            .unwrap_or_default();
    }
}

/// What to do with a cancellation.
pub enum Cancellation {
    /// Forward the cancellation to the server, after the request.
    Forward(Option<Arc<BridgeRequest>>),
    Done,
}

impl BridgeRequests {
    /// Registers a request; the error says why it cannot be accepted.
    pub fn begin(&self, request: &ClientRequest, bytes: usize) -> Result<Arc<BridgeRequest>, &'static str> {
        let mut state = self.state();
        if state.open.len() >= MAX_REQUESTS || state.bytes + bytes > MAX_BYTES {
            return Err("too many requests are open at once; wait for some of them to be answered");
        }
        let Entry::Vacant(vacant) = state.open.entry(request.id.clone()) else {
            return Err("a request with this id is open already");
        };
        let open = Arc::new(BridgeRequest {
            is_modern: request.is_modern(),
            is_subscription: request.is_subscription(),
            bytes,
            cancel: CancellationToken::new(),
            cancelled_by_client: AtomicBool::new(false),
            stage: watch::Sender::new(RequestStage::Waiting),
        });
        vacant.insert(Arc::clone(&open));
        state.bytes += bytes;
        Ok(open)
    }

    pub fn end(&self, id: &str) {
        let mut state = self.state();
        if let Some(open) = state.open.remove(id) {
            open.stage.send_replace(RequestStage::Received);
            state.bytes -= open.bytes;
        }
    }

    pub fn cancel(&self, id: &str) -> Cancellation {
        let Some(open) = self.state().open.get(id).cloned() else { return Cancellation::Forward(None) };
        open.cancelled_by_client.store(true, Ordering::Relaxed);
        // Without sessions, closing the connection cancels a request. An unsent request just stops waiting.
        if open.is_modern || *open.stage.borrow() == RequestStage::Waiting {
            open.cancel.cancel();
            return Cancellation::Done;
        }
        Cancellation::Forward(Some(open))
    }

    /// Ends subscriptions and cancelled requests, for which no one waits.
    pub fn end_unawaited(&self) {
        let unawaited = |open: &&Arc<BridgeRequest>| open.is_subscription || open.is_cancelled_by_client();
        self.state().open.values().filter(unawaited).for_each(|open| open.cancel.cancel());
    }

    fn state(&self) -> MutexGuard<'_, BridgeRequestsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{BridgeRequests, Cancellation, MAX_BYTES, MAX_REQUESTS};
    use crate::cli::mcp::message::{ClientParams, ClientRequest};

    fn request(id: usize, version: Option<&str>) -> ClientRequest {
        let params = ClientParams { version: version.map(Into::into), ..ClientParams::default() };
        ClientRequest { id: id.to_string(), method: "tools/call".into(), params }
    }

    #[test]
    fn invariant_14_limits_open_requests_and_their_bytes_are_limited() {
        let requests = BridgeRequests::default();
        for id in 0..MAX_REQUESTS {
            assert!(requests.begin(&request(id, None), 1).is_ok());
        }
        assert!(requests.begin(&request(MAX_REQUESTS, None), 1).is_err());
        requests.end("7");
        assert!(requests.begin(&request(8, None), 1).is_err(), "8 is open");
        assert!(requests.begin(&request(7, None), MAX_BYTES).is_err());
        assert!(requests.begin(&request(7, None), 1).is_ok());
    }

    #[test]
    fn only_a_request_sent_in_a_session_needs_a_forwarded_cancellation() {
        let requests = BridgeRequests::default();
        let modern = requests.begin(&request(1, Some("2026-07-28")), 1).unwrap();
        modern.mark_sent();
        assert!(matches!(requests.cancel("1"), Cancellation::Done) && modern.cancel.is_cancelled());
        let waiting = requests.begin(&request(2, None), 1).unwrap();
        assert!(matches!(requests.cancel("2"), Cancellation::Done) && waiting.cancel.is_cancelled());
        let sent = requests.begin(&request(3, None), 1).unwrap();
        sent.mark_sent();
        assert!(matches!(requests.cancel("3"), Cancellation::Forward(Some(_))) && !sent.cancel.is_cancelled());
        assert!(sent.is_cancelled_by_client());
        assert!(matches!(requests.cancel("4"), Cancellation::Forward(None)));
    }
}
