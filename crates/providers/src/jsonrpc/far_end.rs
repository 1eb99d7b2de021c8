//! The other side of a connection, for tests: a program without the program.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use workbench::process::Lines;

/// Long enough for a loaded machine; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct FarEnd {
    heard: Lines,
    pub output: DuplexStream,
}

impl FarEnd {
    /// The pipes of a program: its output, its input, and the program.
    pub fn new() -> (Lines, DuplexStream, Self) {
        let (output, our_reader) = tokio::io::duplex(64 * 1024);
        let (our_writer, input) = tokio::io::duplex(64 * 1024);
        (Lines::new(our_reader), our_writer, Self { heard: Lines::new(input), output })
    }

    /// The next message that it was sent; `None` when its input was closed.
    pub async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.heard.next()).await.expect("nothing was sent").ok()??;
        Some(serde_json::from_str(&line).expect("it was sent JSON"))
    }

    /// The next message, which must be of this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.expect("its input is open");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(&format!("{message}\n")).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.expect("somebody reads");
    }
}
