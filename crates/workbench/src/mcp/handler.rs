//! Handles notifications from a server: progress, changes, log messages. Requests from the server are declined by
//! rmcp's defaults, because we offer no such capabilities.

#![expect(deprecated, reason = "servers up to 2025-11-25 still send log messages")]

use super::{McpProgress, health::McpServerHealth};
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

/// Progress that arrived before its call was registered, by a race.
const MAX_EARLY_PROGRESS: usize = 64;

#[derive(Clone, Debug)]
pub struct McpClientHandler(Arc<ClientHandlerInner>);

#[derive(Debug)]
struct ClientHandlerInner {
    health: Arc<McpServerHealth>,
    /// Counts the server's notifications that its tools have changed.
    changes: watch::Sender<u64>,
    watchers: Mutex<ProgressWatchers>,
}

#[derive(Debug, Default)]
struct ProgressWatchers {
    by_token: HashMap<ProgressToken, mpsc::Sender<McpProgress>>,
    early: VecDeque<(ProgressToken, McpProgress)>,
}

/// Dropping it unregisters the receiver of the progress.
pub struct ProgressWatch {
    handler: McpClientHandler,
    token: ProgressToken,
}

impl McpClientHandler {
    pub fn new(health: Arc<McpServerHealth>) -> Self {
        Self(Arc::new(ClientHandlerInner { health, changes: watch::Sender::new(0), watchers: Mutex::default() }))
    }

    fn watchers(&self) -> MutexGuard<'_, ProgressWatchers> {
        // Each change is one step, so a panic leaves nothing inconsistent.
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub fn record_tool_change(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    pub fn watch_progress(&self, token: ProgressToken, sender: mpsc::Sender<McpProgress>) -> ProgressWatch {
        let mut watchers = self.watchers();
        for (_, progress) in watchers.early.iter().filter(|(early, _)| *early == token) {
            deliver(&sender, progress.clone());
        }
        watchers.early.retain(|(early, _)| *early != token);
        watchers.by_token.insert(token.clone(), sender);
        ProgressWatch { handler: self.clone(), token }
    }
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.handler.watchers().by_token.remove(&self.token);
    }
}

/// Progress is a hint: a slow receiver misses some.
fn deliver(to: &mpsc::Sender<McpProgress>, progress: McpProgress) {
    if to.try_send(progress).is_err() {
        tracing::trace!("dropped progress: its receiver is full or closed");
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("greenroom", env!("CARGO_PKG_VERSION")).with_title("Greenroom");
        // rmcp's default is a revision without `initialize`.
        ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = McpProgress { progress: params.progress, total: params.total, message: params.message };
        let mut watchers = self.watchers();
        match watchers.by_token.get(&params.progress_token) {
            Some(watcher) => deliver(watcher, progress),
            None => {
                if watchers.early.len() == MAX_EARLY_PROGRESS {
                    watchers.early.pop_front();
                }
                watchers.early.push_back((params.progress_token, progress));
            }
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.record_tool_change();
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        self.0.health.log("server", &text);
    }
}
