//! How a server has been doing: figures, and the last of what it said beside the protocol.

use super::{Identity, Listing};
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
pub enum State {
    /// Not started yet, or stopped because nobody used it; a call starts it.
    Stopped,
    Starting,
    Ready,
    /// It ended or did not start; a call starts it again.
    Failed,
    /// It failed too often; a call is refused until the rest is over.
    Resting,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    pub state: State,
    pub transport: &'static str,
    pub protocol_version: Option<String>,
    pub server: Option<Identity>,
    pub tools: Option<usize>,
    pub quarantined: usize,
    pub calls: u64,
    /// Calls that brought no answer.
    pub failures: u64,
    pub restarts: u64,
    /// Lines on its output that were no messages.
    pub noise_lines: u64,
    pub in_flight: usize,
    pub process_id: Option<i32>,
    pub uptime_ms: Option<u64>,
    pub retry_in_ms: Option<u64>,
    pub last_error: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LogLine {
    pub at: Timestamp,
    /// `stdout`: noise; `server`: a message of its log; `manager`: what happened to it.
    pub source: &'static str,
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Logs {
    pub lines: Vec<LogLine>,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
}

/// Outlives the connections of its server.
#[derive(Debug, Default)]
pub struct Health {
    pub calls: AtomicU64,
    pub failures: AtomicU64,
    pub restarts: AtomicU64,
    pub noise: AtomicU64,
    pub in_flight: AtomicUsize,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    lines: VecDeque<LogLine>,
    last_error: Option<String>,
}

impl Health {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn log(&self, source: &'static str, text: &str) {
        let text: String = text.trim_end().chars().take(MAX_LINE_CHARS).collect();
        let mut notes = self.notes();
        if notes.lines.len() == KEPT_LINES {
            notes.lines.pop_front();
        }
        notes.lines.push_back(LogLine { at: Timestamp::now(), source, text });
    }

    pub fn noise(&self, line: &str) {
        self.noise.fetch_add(1, Ordering::Relaxed);
        self.log("stdout", line);
    }

    pub fn error(&self, text: &str) {
        self.log("manager", text);
        self.notes().last_error = Some(text.chars().take(MAX_LINE_CHARS).collect());
    }

    pub fn last_error(&self) -> Option<String> {
        self.notes().last_error.clone()
    }

    pub fn lines(&self) -> Vec<LogLine> {
        self.notes().lines.iter().cloned().collect()
    }

    /// The figures; what belongs to the connection is the caller's to fill in.
    pub fn status(&self, state: State, transport: &'static str, listing: Option<&Listing>) -> Status {
        let figure = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Status {
            state,
            transport,
            protocol_version: None,
            server: None,
            tools: listing.map(|listing| listing.tools.len()),
            quarantined: listing.map_or(0, |listing| listing.quarantined.len()),
            calls: figure(&self.calls),
            failures: figure(&self.failures),
            restarts: figure(&self.restarts),
            noise_lines: figure(&self.noise),
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
    use super::{Health, KEPT_LINES, MAX_LINE_CHARS};

    #[test]
    fn invariant_14_limits_only_the_last_lines_are_kept() {
        let health = Health::default();
        for number in 0..KEPT_LINES + 5 {
            health.noise(&format!("{number} {}", "x".repeat(2 * MAX_LINE_CHARS)));
        }
        let lines = health.lines();
        assert_eq!((lines.len(), lines[0].text.chars().count()), (KEPT_LINES, MAX_LINE_CHARS));
        assert!(lines[0].text.starts_with("5 "));
        assert_eq!(health.noise.into_inner(), KEPT_LINES as u64 + 5);
    }
}
