//! The requests that have no answer yet, by the client's ids.

use super::message::Request;
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

/// As many requests as this are open at once, and no more than this of their bytes.
const MAX_REQUESTS: usize = 1024;
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A request is on its way for no longer than this before the cancellation that follows it.
const ARRIVAL: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Requests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<String, Arc<Open>>,
    bytes: usize,
}

pub struct Open {
    is_modern: bool,
    is_subscription: bool,
    bytes: usize,
    /// Ends carrying it, without an answer.
    pub cancel: CancellationToken,
    /// The client does not wait for it any more.
    given_up: AtomicBool,
    stage: watch::Sender<Stage>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Waiting,
    Sent,
    Arrived,
}

impl Open {
    pub fn sent(&self) {
        self.stage.send_replace(Stage::Sent);
    }

    /// The server has begun to answer.
    pub fn arrived(&self) {
        self.stage.send_replace(Stage::Arrived);
    }

    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns when the server knows of it, as far as that can be seen.
    pub async fn known(&self) {
        let mut stage = self.stage.subscribe();
        // Both an end and a delay mean the same here: there is nothing more to wait for.
        timeout(ARRIVAL, stage.wait_for(|stage| *stage == Stage::Arrived)).await.map(drop).unwrap_or_default();
    }
}

/// What to do with a cancellation.
pub enum Cancellation {
    /// The server has to hear of it, after the request.
    Forward(Option<Arc<Open>>),
    Done,
}

impl Requests {
    /// Takes a request on; otherwise says why not.
    pub fn begin(&self, request: &Request, bytes: usize) -> Result<Arc<Open>, &'static str> {
        let mut state = self.state();
        if state.open.len() >= MAX_REQUESTS || state.bytes + bytes > MAX_BYTES {
            return Err("too many requests are open at once; wait for some of them to be answered");
        }
        let Entry::Vacant(vacant) = state.open.entry(request.id.clone()) else {
            return Err("a request with this id is open already");
        };
        let open = Arc::new(Open {
            is_modern: request.is_modern(),
            is_subscription: request.is_subscription(),
            bytes,
            cancel: CancellationToken::new(),
            given_up: AtomicBool::new(false),
            stage: watch::Sender::new(Stage::Waiting),
        });
        vacant.insert(Arc::clone(&open));
        state.bytes += bytes;
        Ok(open)
    }

    pub fn end(&self, id: &str) {
        let mut state = self.state();
        if let Some(open) = state.open.remove(id) {
            open.stage.send_replace(Stage::Arrived);
            state.bytes -= open.bytes;
        }
    }

    pub fn cancel(&self, id: &str) -> Cancellation {
        let Some(open) = self.state().open.get(id).cloned() else { return Cancellation::Forward(None) };
        open.given_up.store(true, Ordering::Relaxed);
        // Without sessions, hanging up is how a request is cancelled; what was never sent needs nothing else either.
        if open.is_modern || *open.stage.borrow() == Stage::Waiting {
            open.cancel.cancel();
            return Cancellation::Done;
        }
        Cancellation::Forward(Some(open))
    }

    /// Ends what nobody waits for an answer of.
    pub fn end_unawaited(&self) {
        let unawaited = |open: &&Arc<Open>| open.is_subscription || open.is_given_up();
        self.state().open.values().filter(unawaited).for_each(|open| open.cancel.cancel());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cancellation, MAX_BYTES, MAX_REQUESTS, Requests};
    use crate::cli::mcp::message::{Params, Request};

    fn request(id: usize, version: Option<&str>) -> Request {
        let params = Params { version: version.map(Into::into), ..Params::default() };
        Request { id: id.to_string(), method: "tools/call".into(), params }
    }

    #[test]
    fn invariant_14_limits_so_many_requests_and_bytes_are_open_at_once() {
        let requests = Requests::default();
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
    fn only_a_request_that_was_sent_in_a_session_is_cancelled_by_telling() {
        let requests = Requests::default();
        let modern = requests.begin(&request(1, Some("2026-07-28")), 1).unwrap();
        modern.sent();
        assert!(matches!(requests.cancel("1"), Cancellation::Done) && modern.cancel.is_cancelled());
        let waiting = requests.begin(&request(2, None), 1).unwrap();
        assert!(matches!(requests.cancel("2"), Cancellation::Done) && waiting.cancel.is_cancelled());
        let sent = requests.begin(&request(3, None), 1).unwrap();
        sent.sent();
        assert!(matches!(requests.cancel("3"), Cancellation::Forward(Some(_))) && !sent.cancel.is_cancelled());
        assert!(sent.is_given_up());
        assert!(matches!(requests.cancel("4"), Cancellation::Forward(None)));
    }
}
