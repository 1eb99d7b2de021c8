//! What the host says, line by line, without waiting for it.

use serde_json::Value;
use std::{
    io::{self, BufRead as _},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

const QUEUE: usize = 1000;

pub enum Heard {
    Line(Value),
    /// Not JSON.
    Noise(String),
    /// Nothing until then.
    Silence,
    /// The host has closed its end.
    End,
}

pub struct Input {
    lines: Receiver<String>,
}

impl Input {
    /// Read on a thread of its own, because reading has no deadline.
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

    pub fn until(&self, due: Instant) -> Heard {
        self.within(due.saturating_duration_since(Instant::now()))
    }

    /// However long it takes: the end of the input ends the wait.
    pub fn next(&self) -> Heard {
        loop {
            match self.within(Duration::from_secs(3600)) {
                Heard::Silence => {}
                heard => return heard,
            }
        }
    }

    fn within(&self, time: Duration) -> Heard {
        match self.lines.recv_timeout(time) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(value) => Heard::Line(value),
                Err(_) => Heard::Noise(line),
            },
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }
}
