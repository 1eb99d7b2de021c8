//! What a server says by itself: progress, changes, its log. What it asks of us is declined by rmcp's defaults, because
//! nothing of it was offered.

#![expect(deprecated, reason = "servers up to 2025-11-25 still send their log")]

use super::{Progress, health::Health};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, LoggingMessageNotificationParam, ProgressNotificationParam,
        ProgressToken, ProtocolVersion,
    },
    service::NotificationContext,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};

/// Progress that came before its call was known here: a fast server, a slow thread.
const EARLY: usize = 64;

#[derive(Clone, Debug)]
pub struct Handler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    health: Arc<Health>,
    /// Counts the times that the server said its tools have changed.
    changes: watch::Sender<u64>,
    watchers: Mutex<Watchers>,
}

#[derive(Debug, Default)]
struct Watchers {
    by_token: HashMap<ProgressToken, mpsc::Sender<Progress>>,
    early: VecDeque<(ProgressToken, Progress)>,
}

/// Dropped, nobody is told of the progress any more.
pub struct Watching {
    handler: Handler,
    token: ProgressToken,
}

impl Handler {
    pub fn new(health: Arc<Health>) -> Self {
        Self(Arc::new(Inner { health, changes: watch::Sender::new(0), watchers: Mutex::default() }))
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub fn note_change(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    pub fn watch(&self, token: ProgressToken, sender: mpsc::Sender<Progress>) -> Watching {
        let mut watchers = self.watchers();
        for (_, progress) in watchers.early.iter().filter(|(early, _)| *early == token) {
            deliver(&sender, progress.clone());
        }
        watchers.early.retain(|(early, _)| *early != token);
        watchers.by_token.insert(token.clone(), sender);
        Watching { handler: self.clone(), token }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.handler.watchers().by_token.remove(&self.token);
    }
}

/// Progress is a hint: a reader that is too slow misses some.
fn deliver(to: &mpsc::Sender<Progress>, progress: Progress) {
    if to.try_send(progress).is_err() {
        tracing::trace!("progress that nobody takes");
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("greenroom", env!("CARGO_PKG_VERSION")).with_title("Greenroom");
        // Not rmcp's default, which is a revision that has no such greeting.
        ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = Progress { progress: params.progress, total: params.total, message: params.message };
        let mut watchers = self.watchers();
        match watchers.by_token.get(&params.progress_token) {
            Some(watcher) => deliver(watcher, progress),
            None => {
                if watchers.early.len() == EARLY {
                    watchers.early.pop_front();
                }
                watchers.early.push_back((params.progress_token, progress));
            }
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note_change();
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        self.0.health.log("server", &text);
    }
}
