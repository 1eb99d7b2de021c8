//! The side that speaks: requests, notifications, answers.

use super::{CloseReason, Dialect, RpcError};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// More requests without an answer than any use of this has.
const MAX_PENDING: usize = 1024;

/// Why a call brought no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("{message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    #[error("it did not answer in time")]
    Timeout,
    #[error("it does not read what it is sent")]
    Overloaded,
    #[error("{0}")]
    Closed(CloseReason),
}

type Answer = Result<Value, CallError>;

/// Speaks to the other side. Cheap to clone; when the last one is dropped, the other side's input is closed.
#[derive(Clone, Debug)]
pub struct Peer {
    dialect: Dialect,
    outgoing: mpsc::Sender<String>,
    pending: Pending,
}

/// Who waits for which answer, until there can be none any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    last_id: u64,
    askers: HashMap<u64, oneshot::Sender<Answer>>,
    closed: Option<CloseReason>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Result<(Asked, oneshot::Receiver<Answer>), CallError> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.closed {
            return Err(CallError::Closed(reason.clone()));
        }
        if waiting.askers.len() >= MAX_PENDING {
            return Err(CallError::Overloaded);
        }
        let (answer, answered) = oneshot::channel();
        waiting.last_id += 1;
        let id = waiting.last_id;
        waiting.askers.insert(id, answer);
        Ok((Asked { id, pending: self.clone() }, answered))
    }

    /// Whether somebody still waited for it.
    pub(super) fn resolve(&self, id: u64, result: Result<Value, RpcError>) -> bool {
        let asker = self.lock().askers.remove(&id);
        let answer = result.map_err(|RpcError { code, message, data }| CallError::Refused { code, message, data });
        asker.is_some_and(|asker| asker.send(answer).is_ok())
    }

    /// Nobody will be answered any more. The first reason stays.
    pub(super) fn close(&self, reason: &CloseReason) {
        let mut waiting = self.lock();
        let reason = waiting.closed.get_or_insert_with(|| reason.clone()).clone();
        let askers = std::mem::take(&mut waiting.askers);
        drop(waiting);
        for asker in askers.into_values() {
            // Whoever stopped waiting needs no answer.
            drop(asker.send(Err(CallError::Closed(reason.clone()))));
        }
    }

    pub(super) fn closed(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }
}

/// A question that is open; dropped, nobody waits for its answer any more.
struct Asked {
    id: u64,
    pending: Pending,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.pending.lock().askers.remove(&self.id);
    }
}

impl Peer {
    pub(super) fn new(dialect: Dialect, outgoing: mpsc::Sender<String>, pending: Pending) -> Self {
        Self { dialect, outgoing, pending }
    }

    /// Asks and waits for the answer. Dropping the future forgets the question; the other side is not told.
    pub async fn request(&self, method: &str, params: Value, deadline: Duration) -> Answer {
        let (asked, answered) = self.pending.ask()?;
        self.send(self.dialect.request(asked.id, method, params))?;
        match tokio::time::timeout(deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(CallError::Closed(self.reason())),
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// Tells. It returns before it is written.
    pub fn notify(&self, method: &str, params: Value) -> Result<(), CallError> {
        self.send(self.dialect.notification(method, params))
    }

    /// Answers a request of the other side, by its own id. It returns before it is written.
    pub fn respond(&self, id: Value, result: Result<Value, RpcError>) -> Result<(), CallError> {
        self.send(self.dialect.response(id, result))
    }

    /// Why there is nobody to speak to any more, once that is so.
    pub fn closed(&self) -> Option<CloseReason> {
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
