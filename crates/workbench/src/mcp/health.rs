//! Health of a server: counters, and its last log lines.

use super::{McpServerIdentity, McpToolListing};
use domain::time::Timestamp;
use serde::Serialize;
use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

const KEPT_LINES: usize = 200;
const MAX_LINE_CHARS: usize = 2000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// Not started yet, or stopped because it was idle; a call starts it.
    Stopped,
    Starting,
    Ready,
    /// It ended or failed to start; a call starts it again.
    Failed,
    /// It failed too often; calls are rejected until the backoff delay is over.
    #[serde(rename = "resting")]
    BackingOff,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct McpServerStatus {
    pub state: McpServerState,
    pub transport: &'static str,
    pub protocol_version: Option<String>,
    pub server: Option<McpServerIdentity>,
    pub tools: Option<usize>,
    pub quarantined: usize,
    pub calls: u64,
    /// Calls without an answer.
    pub failures: u64,
    pub restarts: u64,
    /// Lines of its output that were not messages.
    pub noise_lines: u64,
    pub in_flight: usize,
    pub process_id: Option<i32>,
    pub uptime_ms: Option<u64>,
    pub retry_in_ms: Option<u64>,
    pub last_error: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServerLogLine {
    pub at: Timestamp,
    /// `stdout`: noise; `server`: a log message from the server; `manager`: what happened to the server.
    pub source: &'static str,
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct McpServerLogs {
    pub lines: Vec<ServerLogLine>,
    /// The end of its stderr.
    pub stderr: String,
}

/// Outlives the connections to its server.
#[derive(Debug, Default)]
pub struct McpServerHealth {
    pub calls: AtomicU64,
    pub failures: AtomicU64,
    pub restarts: AtomicU64,
    pub noise: AtomicU64,
    pub in_flight: AtomicUsize,
    notes: Mutex<HealthNotes>,
}

#[derive(Debug, Default)]
struct HealthNotes {
    lines: VecDeque<ServerLogLine>,
    last_error: Option<String>,
}

impl McpServerHealth {
    fn notes(&self) -> MutexGuard<'_, HealthNotes> {
        // Each change is one step, so a panic leaves nothing inconsistent.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn log(&self, source: &'static str, text: &str) {
        let text: String = text.trim_end().chars().take(MAX_LINE_CHARS).collect();
        let mut notes = self.notes();
        if notes.lines.len() == KEPT_LINES {
            notes.lines.pop_front();
        }
        notes.lines.push_back(ServerLogLine { at: Timestamp::now(), source, text });
    }

    pub fn record_noise(&self, line: &str) {
        self.noise.fetch_add(1, Ordering::Relaxed);
        self.log("stdout", line);
    }

    pub fn record_error(&self, text: &str) {
        self.log("manager", text);
        self.notes().last_error = Some(text.chars().take(MAX_LINE_CHARS).collect());
    }

    pub fn last_error(&self) -> Option<String> {
        self.notes().last_error.clone()
    }

    pub fn lines(&self) -> Vec<ServerLogLine> {
        self.notes().lines.iter().cloned().collect()
    }

    /// Returns the counters. The caller fills in the fields of the connection.
    pub fn status(
        &self,
        state: McpServerState,
        transport: &'static str,
        listing: Option<&McpToolListing>,
    ) -> McpServerStatus {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        McpServerStatus {
            state,
            transport,
            protocol_version: None,
            server: None,
            tools: listing.map(|listing| listing.tools.len()),
            quarantined: listing.map_or(0, |listing| listing.quarantined.len()),
            calls: count(&self.calls),
            failures: count(&self.failures),
            restarts: count(&self.restarts),
            noise_lines: count(&self.noise),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            process_id: None,
            uptime_ms: None,
            retry_in_ms: None,
            last_error: self.last_error(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_LINES, MAX_LINE_CHARS, McpServerHealth};

    #[test]
    fn invariant_14_limits_only_the_last_lines_are_kept() {
        let health = McpServerHealth::default();
        for number in 0..KEPT_LINES + 5 {
            health.record_noise(&format!("{number} {}", "x".repeat(2 * MAX_LINE_CHARS)));
        }
        let lines = health.lines();
        assert_eq!((lines.len(), lines[0].text.chars().count()), (KEPT_LINES, MAX_LINE_CHARS));
        assert!(lines[0].text.starts_with("5 "));
        assert_eq!(health.noise.into_inner(), KEPT_LINES as u64 + 5);
    }
}
