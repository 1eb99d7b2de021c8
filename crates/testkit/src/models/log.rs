//! Records the requests for tests.

use super::handler::VendorApi;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};
use tokio::sync::watch;

/// The maximum number of kept requests; the oldest are dropped first. A CLI request has several hundred kilobytes.
const KEPT: usize = 500;

#[derive(Debug)]
pub struct RecordedRequest {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// `Null` if the body was not JSON.
    pub body: Value,
    /// The API that was asked for an answer; `None` for all other endpoints.
    pub api: Option<VendorApi>,
    pub model: Option<String>,
    /// The API key, from any header or parameter.
    pub key: Option<String>,
    /// The last user text, without the wrappers that the CLI adds.
    pub prompt: String,
    progress: AtomicU8,
}

/// The state of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerProgress {
    Answering,
    Complete,
    /// The client disconnected before the end: an interrupt that reached the model.
    ClientDisconnected,
}

impl RecordedRequest {
    pub fn new(method: String, path: String, headers: BTreeMap<String, String>, body: Value) -> Self {
        let (api, model, key, prompt) = (None, None, None, String::new());
        Self { method, path, headers, body, api, model, key, prompt, progress: AtomicU8::new(0) }
    }

    pub fn progress(&self) -> AnswerProgress {
        match self.progress.load(Ordering::Acquire) {
            0 => AnswerProgress::Answering,
            1 => AnswerProgress::Complete,
            _ => AnswerProgress::ClientDisconnected,
        }
    }

    pub(super) fn mark_complete(&self) {
        self.progress.store(1, Ordering::Release);
    }

    /// Marks the answer as abandoned unless it has ended already.
    pub(super) fn mark_abandoned(&self) -> bool {
        self.progress.compare_exchange(0, 2, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[derive(Debug)]
pub struct RequestLog {
    requests: Mutex<VecDeque<Arc<RecordedRequest>>>,
    /// Counts changes, to wake waiting tests.
    changes: watch::Sender<u64>,
}

impl Default for RequestLog {
    fn default() -> Self {
        Self { requests: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl RequestLog {
    pub fn all(&self) -> Vec<Arc<RecordedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub fn add(&self, request: RecordedRequest) -> Arc<RecordedRequest> {
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

    pub async fn wait_for(&self, fits: impl Fn(&RecordedRequest) -> bool) -> Arc<RecordedRequest> {
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
