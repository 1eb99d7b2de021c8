//! `greenroom mcp`: MCP on standard input and output, carried to a running server, for clients that only start processes.
//!
//! Messages pass through as they are, one per line, whatever revision they speak: what a client can do here is what the
//! server's `/mcp` can do. Standard output carries nothing else; notes for people go to standard error. `reader` takes what
//! the client writes, `carrier` brings it to the server through `door`, `following` and `listener` bring back what the
//! server says, and `session` outlives a restart of the server.

mod carrier;
mod door;
mod following;
mod headers;
mod lines;
mod listener;
mod message;
mod open;
mod reader;
mod session;

use super::{Connection, Exit, client::Client};
use crate::terminal::sanitise;
use carrier::Carrier;
use door::Door;
use reader::Reader;
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

/// Messages that wait for the client to read them.
const QUEUE: usize = 64;
/// To end the session, and once more for the last lines to be read.
const GOODBYE: Duration = Duration::from_secs(2);
/// Longer than any note of ours; a server's words may be cut.
const NOTE: usize = 1000;

pub async fn run(connection: &Connection) -> anyhow::Result<Exit> {
    let door = Door::new(Client::new(connection)?);
    let (out, lines) = mpsc::channel(QUEUE);
    let mut ends = Ends {
        interrupted: signal(SignalKind::interrupt())?,
        terminated: signal(SignalKind::terminate())?,
        writing: JoinSet::new(),
    };
    ends.writing.spawn_blocking(|| write(lines));
    let carrier = Arc::new(Carrier::new(door, out));
    let mut reader = Reader::new(Arc::clone(&carrier), BufReader::new(io::stdin()));
    let exit = tokio::select! {
        exit = ends.next() => exit,
        read = reader.run() => {
            read?;
            Exit::Success
        }
    };
    reader.close().await;
    carrier.leave().await;
    // With it goes the last who could write.
    drop(carrier);
    if timeout(GOODBYE, ends.writing.join_next()).await.is_err() {
        note("the last messages were not read");
    }
    Ok(exit)
}

/// What can end the command besides the end of its input.
struct Ends {
    interrupted: Signal,
    terminated: Signal,
    writing: JoinSet<io::Result<()>>,
}

impl Ends {
    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupted.recv() => Exit::Interrupted,
            // How clients stop the programs that they have started.
            _ = self.terminated.recv() => Exit::Success,
            // Nobody reads any more.
            _ = self.writing.join_next() => Exit::Success,
        }
    }
}

/// Writes messages until there are no more, or nobody reads them.
fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

/// One line for a person. A client may show what its server writes to standard error, or throw it away.
fn note(text: &str) {
    writeln!(io::stderr(), "greenroom mcp: {}", sanitise::line(text, NOTE)).unwrap_or_default();
}
