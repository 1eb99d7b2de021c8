//! A fake program for tests: the other end of an RPC connection.

use crate::fake_launcher::FakeProgram;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use workbench::process::OutputLines;

/// Long enough for a loaded machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct FakeRpcPeer {
    input: OutputLines,
    pub output: DuplexStream,
}

impl FakeRpcPeer {
    /// Returns the program's output, its input, and the fake program.
    pub fn new() -> (OutputLines, DuplexStream, Self) {
        let (output, our_reader) = tokio::io::duplex(64 * 1024);
        let (our_writer, input) = tokio::io::duplex(64 * 1024);
        (OutputLines::new(our_reader), our_writer, Self { input: OutputLines::new(input), output })
    }

    /// Acts as a started program.
    pub fn of(program: FakeProgram) -> Self {
        Self { input: program.stdin, output: program.stdout }
    }

    /// Returns the next message it received; `None` when its input was closed.
    pub async fn next(&mut self) -> Option<Value> {
        let line =
            tokio::time::timeout(PATIENCE, self.input.next()).await.expect("no message received in time").ok()??;
        Some(serde_json::from_str(&line).expect("the message is JSON"))
    }

    /// Returns the next message, which must have this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.expect("the input is open");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(&format!("{message}\n")).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.expect("the other side reads");
    }
}
