//! Sends requests, notifications and responses.

use super::{CloseReason, RpcError, RpcFormat};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of pending requests; far more than any caller needs.
const MAX_PENDING: usize = 1024;

/// Why a call returned no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("{message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    #[error("it did not answer in time")]
    Timeout,
    #[error("it does not read its input")]
    Overloaded,
    #[error("{0}")]
    Closed(CloseReason),
}

type CallResult = Result<Value, CallError>;

/// Sends messages to the other side. Cheap to clone; dropping the last clone closes the other side's input.
#[derive(Clone, Debug)]
pub struct RpcPeer {
    dialect: RpcFormat,
    outgoing: mpsc::Sender<String>,
    pending: PendingCalls,
}

/// The callers that wait for a response, by request id.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingCalls(Arc<Mutex<PendingState>>);

#[derive(Debug, Default)]
struct PendingState {
    last_id: u64,
    waiters: HashMap<u64, oneshot::Sender<CallResult>>,
    closed: Option<CloseReason>,
}

impl PendingCalls {
    fn lock(&self) -> MutexGuard<'_, PendingState> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> Result<(PendingCallGuard, oneshot::Receiver<CallResult>), CallError> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.closed {
            return Err(CallError::Closed(reason.clone()));
        }
        if waiting.waiters.len() >= MAX_PENDING {
            return Err(CallError::Overloaded);
        }
        let (answer, answered) = oneshot::channel();
        waiting.last_id += 1;
        let id = waiting.last_id;
        waiting.waiters.insert(id, answer);
        Ok((PendingCallGuard { id, pending: self.clone() }, answered))
    }

    /// Delivers a response. Returns whether a caller was still waiting for it.
    pub(super) fn resolve(&self, id: u64, result: Result<Value, RpcError>) -> bool {
        let waiter = self.lock().waiters.remove(&id);
        let answer = result.map_err(|RpcError { code, message, data }| CallError::Refused { code, message, data });
        waiter.is_some_and(|waiter| waiter.send(answer).is_ok())
    }

    /// Fails all pending calls. The first reason wins.
    pub(super) fn close(&self, reason: &CloseReason) {
        let mut waiting = self.lock();
        let reason = waiting.closed.get_or_insert_with(|| reason.clone()).clone();
        let waiters = std::mem::take(&mut waiting.waiters);
        drop(waiting);
        for waiter in waiters.into_values() {
            // The caller may have stopped waiting.
            drop(waiter.send(Err(CallError::Closed(reason.clone()))));
        }
    }

    pub(super) fn closed(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }
}

/// A registered call; dropping it unregisters the caller.
struct PendingCallGuard {
    id: u64,
    pending: PendingCalls,
}

impl Drop for PendingCallGuard {
    fn drop(&mut self) {
        self.pending.lock().waiters.remove(&self.id);
    }
}

impl RpcPeer {
    pub(super) fn new(dialect: RpcFormat, outgoing: mpsc::Sender<String>, pending: PendingCalls) -> Self {
        Self { dialect, outgoing, pending }
    }

    /// Sends a request and waits for the response. Dropping the future forgets the request; the other side is not
    /// notified.
    pub async fn request(&self, method: &str, params: Value, deadline: Duration) -> CallResult {
        let (call, answered) = self.pending.register()?;
        self.send(self.dialect.request(call.id, method, params))?;
        match tokio::time::timeout(deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(CallError::Closed(self.reason())),
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// Sends a notification. Returns before it is written.
    pub fn notify(&self, method: &str, params: Value) -> Result<(), CallError> {
        self.send(self.dialect.notification(method, params))
    }

    /// Responds to a request of the other side, by that request's id. Returns before it is written.
    pub fn respond(&self, id: Value, result: Result<Value, RpcError>) -> Result<(), CallError> {
        self.send(self.dialect.response(id, result))
    }

    /// Returns why the connection is closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.pending.closed()
    }

    fn send(&self, line: String) -> Result<(), CallError> {
        if let Some(reason) = self.pending.closed() {
            return Err(CallError::Closed(reason));
        }
        self.outgoing.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => CallError::Closed(self.reason()),
        })
    }

    fn reason(&self) -> CloseReason {
        self.pending.closed().unwrap_or(CloseReason::Dropped)
    }
}
