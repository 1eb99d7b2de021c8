//! What was asked, kept for the tests to look at.

use super::door::Api;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};
use tokio::sync::watch;

/// A request of a CLI is some hundred kilobytes; more than these are forgotten, the oldest first.
const KEPT: usize = 500;

#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// `Null` when it was no JSON.
    pub body: Value,
    /// Which API was asked for an answer; `None` for all other doors.
    pub api: Option<Api>,
    pub model: Option<String>,
    /// The key that was shown, in whichever header or parameter.
    pub key: Option<String>,
    /// The last thing a person said, without what the CLI wrapped around it.
    pub prompt: String,
    progress: AtomicU8,
}

/// How far an answer got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    Answering,
    Complete,
    /// The client went away before the end: an interrupt that reached the model.
    ClientGone,
}

impl Request {
    pub fn new(method: String, path: String, headers: BTreeMap<String, String>, body: Value) -> Self {
        let (api, model, key, prompt) = (None, None, None, String::new());
        Self { method, path, headers, body, api, model, key, prompt, progress: AtomicU8::new(0) }
    }

    pub fn progress(&self) -> Progress {
        match self.progress.load(Ordering::Acquire) {
            0 => Progress::Answering,
            1 => Progress::Complete,
            _ => Progress::ClientGone,
        }
    }

    pub(super) fn complete(&self) {
        self.progress.store(1, Ordering::Release);
    }

    /// Only the first end counts.
    pub(super) fn abandoned(&self) -> bool {
        self.progress.compare_exchange(0, 2, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[derive(Debug)]
pub struct Log {
    requests: Mutex<VecDeque<Arc<Request>>>,
    /// Counts what has changed, for those who wait.
    changes: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { requests: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Log {
    pub fn all(&self) -> Vec<Arc<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub fn add(&self, request: Request) -> Arc<Request> {
        let request = Arc::new(request);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() == KEPT {
            requests.pop_front();
        }
        requests.push_back(Arc::clone(&request));
        drop(requests);
        self.changed();
        request
    }

    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub async fn wait_for(&self, fits: impl Fn(&Request) -> bool) -> Arc<Request> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(found) = self.all().into_iter().find(|request| fits(request)) {
                return found;
            }
            // The sender lives as long as this log.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
