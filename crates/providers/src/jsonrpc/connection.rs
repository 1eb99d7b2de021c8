//! The reader and writer tasks behind a peer, and how they end.

use super::{
    RpcFormat, RpcPeer,
    message::{RpcMessage, parse},
    peer::PendingCalls,
};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use workbench::process::{LineError, OutputLines};

/// Maximum number of unwritten lines; beyond that, the other side counts as not reading.
const OUTGOING_CAPACITY: usize = 1024;
/// Maximum number of received messages that are not consumed yet; beyond that, reading pauses.
const INCOMING_CAPACITY: usize = 256;
/// Single stray lines (library output) are skipped; this many in a row mean that the program does not speak JSON-RPC.
const MAX_INVALID_LINES: usize = 20;
/// After a write error, how long to keep reading: a dying program may still have output in the pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A message that the other side sent on its own, with the raw line.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcIncoming {
    Notification {
        method: String,
        params: Value,
        raw: String,
    },
    /// Must be answered with [`RpcPeer::respond`]. The id is chosen by the other side.
    Request {
        id: Value,
        method: String,
        params: Value,
        raw: String,
    },
    /// Always the last message.
    Closed(CloseReason),
}

/// Why the connection was closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("the program closed its output")]
    Ended,
    #[error("the program exited in the middle of a line: {0}")]
    HalfLine(String),
    #[error("{0}")]
    BadOutput(String),
    #[error("the program's output cannot be read: {0}")]
    Unreadable(String),
    #[error("the program no longer accepts input: {0}")]
    Unwritable(String),
    #[error("the connection was closed")]
    Dropped,
}

impl CloseReason {
    /// The stable error code of a run that failed for this reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadOutput(_) => "bad_output",
            Self::Ended | Self::HalfLine(_) | Self::Unreadable(_) | Self::Unwritable(_) | Self::Dropped => {
                "program_crashed"
            }
        }
    }
}

impl From<LineError> for CloseReason {
    fn from(error: LineError) -> Self {
        match error {
            LineError::TooLong => Self::BadOutput(error.to_string()),
            LineError::Unfinished(start) => Self::HalfLine(start),
            LineError::Io(source) => Self::Unreadable(source.to_string()),
        }
    }
}

/// Owns the reader and writer tasks. Dropping it stops both and closes the pipes.
#[derive(Debug)]
pub struct RpcConnection {
    tasks: JoinSet<()>,
    pending: PendingCalls,
}

impl RpcConnection {
    pub fn start(
        reader: OutputLines,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        dialect: RpcFormat,
    ) -> (Self, RpcPeer, mpsc::Receiver<RpcIncoming>) {
        let pending = PendingCalls::default();
        let (outgoing, to_write) = mpsc::channel(OUTGOING_CAPACITY);
        let (received, incoming) = mpsc::channel(INCOMING_CAPACITY);
        let (failed, writing_failed) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(writer, to_write, failed));
        tasks.spawn(read(reader, pending.clone(), received, writing_failed));
        let peer = RpcPeer::new(dialect, outgoing, pending.clone());
        (Self { tasks, pending }, peer, incoming)
    }

    /// Stops both tasks. The pipes are closed when this returns.
    pub async fn close(mut self) {
        self.pending.close(&CloseReason::Dropped);
        self.tasks.shutdown().await;
    }
}

impl Drop for RpcConnection {
    fn drop(&mut self) {
        self.pending.close(&CloseReason::Dropped);
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
    failed: oneshot::Sender<CloseReason>,
) {
    while let Some(line) = lines.recv().await {
        let written = async {
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            // The receiver is dropped if the reader has already seen the end of the output.
            drop(failed.send(CloseReason::Unwritable(error.to_string())));
            return;
        }
    }
}

async fn read(
    mut lines: OutputLines,
    pending: PendingCalls,
    received: mpsc::Sender<RpcIncoming>,
    writing_failed: oneshot::Receiver<CloseReason>,
) {
    let unwritable = async {
        match writing_failed.await {
            Ok(reason) => {
                tokio::time::sleep(DRAIN_TIMEOUT).await;
                reason
            }
            // The writer ended because every peer was dropped; there may still be output to read.
            Err(_) => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        reason = read_messages(&mut lines, &pending, &received) => reason,
        reason = unwritable => reason,
    };
    pending.close(&reason);
    // A dropped receiver does not need the reason.
    drop(received.send(RpcIncoming::Closed(reason)).await);
}

async fn read_messages(
    lines: &mut OutputLines,
    pending: &PendingCalls,
    received: &mpsc::Sender<RpcIncoming>,
) -> CloseReason {
    let mut garbage = 0;
    loop {
        let raw = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return CloseReason::Ended,
            Err(error) => return error.into(),
        };
        if raw.trim().is_empty() {
            continue;
        }
        let incoming = match parse(&raw) {
            Some(RpcMessage::Notification { method, params }) => RpcIncoming::Notification { method, params, raw },
            Some(RpcMessage::Request { id, method, params }) => RpcIncoming::Request { id, method, params, raw },
            Some(RpcMessage::Response { id, result }) => {
                garbage = 0;
                if !id.is_some_and(|id| pending.resolve(id, result)) {
                    tracing::debug!(?id, "response without a waiting caller");
                }
                continue;
            }
            None => {
                garbage += 1;
                let start: String = raw.chars().take(200).collect();
                tracing::debug!(garbage, start, "skipped a line that is not a JSON-RPC message");
                if garbage == MAX_INVALID_LINES {
                    return CloseReason::BadOutput(format!(
                        "the program sent {MAX_INVALID_LINES} lines in a row that are not JSON-RPC messages; the last one: {start}"
                    ));
                }
                continue;
            }
        };
        garbage = 0;
        if received.send(incoming).await.is_err() {
            return CloseReason::Dropped;
        }
    }
}
