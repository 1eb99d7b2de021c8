//! The two tasks behind a peer, and how they come to an end.

use super::{
    Dialect, Peer,
    message::{Message, parse},
    peer::Pending,
};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use workbench::process::{LineError, Lines};

/// Lines that are not written yet; beyond that the other side does not read.
const OUTGOING: usize = 1024;
/// What was read and not taken yet; beyond that it stays in the pipe.
const INCOMING: usize = 256;
/// A stray line of a library is forgiven; so many in a row are another language.
const MAX_GARBAGE: usize = 20;
/// A program that dies shows it on both pipes; what it said last is worth a short wait.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the other side says by itself, with the line it came in.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    Notification {
        method: String,
        params: Value,
        raw: String,
    },
    /// To be answered with [`Peer::respond`]. Ids are the other side's own.
    Request {
        id: Value,
        method: String,
        params: Value,
        raw: String,
    },
    /// The last there is.
    Closed(CloseReason),
}

/// Why nothing more can be said or heard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("the program closed its output")]
    Ended,
    #[error("the program ended in the middle of a line: {0}")]
    HalfLine(String),
    #[error("{0}")]
    BadOutput(String),
    #[error("the program's output cannot be read: {0}")]
    Unreadable(String),
    #[error("the program does not take input any more: {0}")]
    Unwritable(String),
    #[error("the connection was closed")]
    Dropped,
}

impl CloseReason {
    /// The stable code of a run that failed with it.
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

/// Holds the reader and the writer. Dropped, both stop and the pipes are closed.
#[derive(Debug)]
pub struct Connection {
    tasks: JoinSet<()>,
    pending: Pending,
}

impl Connection {
    pub fn start(
        reader: Lines,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        dialect: Dialect,
    ) -> (Self, Peer, mpsc::Receiver<Incoming>) {
        let pending = Pending::default();
        let (outgoing, to_write) = mpsc::channel(OUTGOING);
        let (heard, incoming) = mpsc::channel(INCOMING);
        let (failed, writing_failed) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(writer, to_write, failed));
        tasks.spawn(read(reader, pending.clone(), heard, writing_failed));
        let peer = Peer::new(dialect, outgoing, pending.clone());
        (Self { tasks, pending }, peer, incoming)
    }

    /// Stops both tasks; when it returns, the pipes are closed.
    pub async fn close(mut self) {
        self.pending.close(&CloseReason::Dropped);
        self.tasks.shutdown().await;
    }
}

impl Drop for Connection {
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
            // Nobody listens when the reader has seen the end already.
            drop(failed.send(CloseReason::Unwritable(error.to_string())));
            return;
        }
    }
}

async fn read(
    mut lines: Lines,
    pending: Pending,
    heard: mpsc::Sender<Incoming>,
    writing_failed: oneshot::Receiver<CloseReason>,
) {
    let unwritable = async {
        match writing_failed.await {
            Ok(reason) => {
                tokio::time::sleep(LAST_WORDS).await;
                reason
            }
            // The writer ended because nobody speaks any more; there may still be something to hear.
            Err(_) => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        reason = listen(&mut lines, &pending, &heard) => reason,
        reason = unwritable => reason,
    };
    pending.close(&reason);
    // A receiver that is gone has no use for the reason.
    drop(heard.send(Incoming::Closed(reason)).await);
}

async fn listen(lines: &mut Lines, pending: &Pending, heard: &mpsc::Sender<Incoming>) -> CloseReason {
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
            Some(Message::Notification { method, params }) => Incoming::Notification { method, params, raw },
            Some(Message::Request { id, method, params }) => Incoming::Request { id, method, params, raw },
            Some(Message::Response { id, result }) => {
                garbage = 0;
                if !id.is_some_and(|id| pending.resolve(id, result)) {
                    tracing::debug!(?id, "an answer that nobody waits for");
                }
                continue;
            }
            None => {
                garbage += 1;
                let start: String = raw.chars().take(200).collect();
                tracing::debug!(garbage, start, "a line that is no message");
                if garbage == MAX_GARBAGE {
                    return CloseReason::BadOutput(format!(
                        "the program sent {MAX_GARBAGE} lines in a row that are no messages, the last one: {start}"
                    ));
                }
                continue;
            }
        };
        garbage = 0;
        if heard.send(incoming).await.is_err() {
            return CloseReason::Dropped;
        }
    }
}
