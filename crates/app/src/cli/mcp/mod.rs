//! `greenroom mcp`: a bridge from MCP on standard input and output to a running server, for clients that can only start
//! processes.
//!
//! Messages are forwarded unchanged, one per line, for every protocol revision: a client can do here what the server's
//! `/mcp` can do. Standard output carries nothing else; notes for people go to standard error. `reader` reads the
//! client's messages, `forwarder` sends them to the server through `endpoint`, `pending_answer` and `listener` return
//! the server's messages, and `session` restores the session after a restart of the server.

mod endpoint;
mod forwarder;
mod headers;
mod lines;
mod listener;
mod message;
mod open_requests;
mod pending_answer;
mod reader;
mod session;

use super::{Exit, ServerArgs, client::ApiClient};
use crate::terminal::sanitize;
use endpoint::McpEndpoint;
use forwarder::McpForwarder;
use reader::StdinReader;
use std::{
    io::{self, BufReader, Write as _},
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

/// Maximum number of messages that wait for the client to read them.
const QUEUE: usize = 64;
/// Time to end the session, and again for the client to read the last lines.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// Longer than any of our own notes; a server's message may be truncated.
const NOTE: usize = 1000;

pub async fn run(connection: &ServerArgs) -> anyhow::Result<Exit> {
    let endpoint = McpEndpoint::new(ApiClient::new(connection)?, connection.calling_agent);
    let (out, lines) = mpsc::channel(QUEUE);
    let mut ends = StopEvents {
        interrupted: signal(SignalKind::interrupt())?,
        terminated: signal(SignalKind::terminate())?,
        writing: JoinSet::new(),
    };
    ends.writing.spawn_blocking(|| write(lines));
    let forwarder = Arc::new(McpForwarder::new(endpoint, out));
    let mut reader = StdinReader::new(Arc::clone(&forwarder), BufReader::new(io::stdin()));
    let exit = tokio::select! {
        exit = ends.next() => exit,
        read = reader.run() => {
            read?;
            Exit::Success
        }
    };
    reader.close().await;
    forwarder.end_current_session().await;
    // Drops the last sender, so that the writer ends.
    drop(forwarder);
    if timeout(CLOSE_DEADLINE, ends.writing.join_next()).await.is_err() {
        note("the last messages were not read");
    }
    Ok(exit)
}

/// The events that end the command, other than the end of its input.
struct StopEvents {
    interrupted: Signal,
    terminated: Signal,
    writing: JoinSet<io::Result<()>>,
}

impl StopEvents {
    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupted.recv() => Exit::Interrupted,
            // SIGTERM is how clients stop the servers that they started.
            _ = self.terminated.recv() => Exit::Success,
            // The client has closed our output.
            _ = self.writing.join_next() => Exit::Success,
        }
    }
}

/// Writes messages until the channel or the output is closed.
fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

/// Prints one line for people to standard error, which a client may show or discard.
fn note(text: &str) {
    writeln!(io::stderr(), "greenroom mcp: {}", sanitize::line(text, NOTE)).unwrap_or_default();
}
