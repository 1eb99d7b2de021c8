//! Reads lines from the host with a timeout.

use serde_json::Value;
use std::{
    io::{self, BufRead as _},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

const QUEUE: usize = 1000;

pub enum HostInput {
    Line(Value),
    /// A line that is not JSON.
    NotJson(String),
    /// No line before the deadline.
    Timeout,
    /// The host has closed the input.
    End,
}

pub struct StdinLines {
    lines: Receiver<String>,
}

impl StdinLines {
    /// Reads in a separate thread, because reading stdin has no timeout.
    pub fn open() -> Self {
        let (sender, lines) = sync_channel(QUEUE);
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { lines }
    }

    pub fn next_before(&self, due: Instant) -> HostInput {
        self.next_within(due.saturating_duration_since(Instant::now()))
    }

    /// Waits without a timeout for a line or the end of the input.
    pub fn next(&self) -> HostInput {
        loop {
            match self.next_within(Duration::from_secs(3600)) {
                HostInput::Timeout => {}
                input => return input,
            }
        }
    }

    fn next_within(&self, time: Duration) -> HostInput {
        match self.lines.recv_timeout(time) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(value) => HostInput::Line(value),
                Err(_) => HostInput::NotJson(line),
            },
            Err(RecvTimeoutError::Timeout) => HostInput::Timeout,
            Err(RecvTimeoutError::Disconnected) => HostInput::End,
        }
    }
}
