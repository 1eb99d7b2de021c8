//! The end of a program, seen from the server: waiting for it, and bringing it about.

use super::{
    Stderr,
    table::{self, Entry},
    watch::Progress,
    wire::Order,
};
use domain::run::Receipt;
use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    net::Shutdown,
    os::unix::net::UnixStream as Socket,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, watch::Receiver},
    task::JoinSet,
    time::timeout,
};

/// What a program said last may still be in the pipe when its end is known.
const LAST_WORDS: Duration = Duration::from_millis(300);

const STRAY_ROUNDS: usize = 3;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// It is gone, but nobody saw how.
    Unknown,
}

/// How long each step of a stop may take before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After its input was closed.
    pub input_closed: Duration,
    /// After SIGTERM. Then everything is killed.
    pub terminated: Duration,
}

/// Holds the kill domain. Dropping it kills everything in it at once.
#[derive(Debug)]
pub struct Handle {
    /// The end of this is the order to kill; see `wire`.
    pub(super) lifeline: Socket,
    pub(super) progress: Receiver<Progress>,
    pub(super) impatient: Arc<Notify>,
    pub(super) program: i32,
    pub(super) keeper: Option<u32>,
    pub(super) stderr: Stderr,
    /// One task, which ends with the program's standard error.
    pub(super) readers: JoinSet<()>,
    /// Whether the holder of this was told of the end.
    pub(super) told: bool,
}

impl Handle {
    pub fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// The program's process id.
    pub fn id(&self) -> i32 {
        self.program
    }

    /// The process id of its keeper.
    pub fn keeper_id(&self) -> Option<u32> {
        self.keeper
    }

    /// Ends what the program has started and abandoned: processes whose parent is gone, so that the keeper has adopted
    /// them, with all of theirs. What the program still looks after, such as its MCP servers, stays. Returns how many.
    pub fn end_strays(&self) -> usize {
        let Some(keeper) = self.keeper.and_then(|id| i32::try_from(id).ok()) else { return 0 };
        let mut ended = BTreeSet::new();
        // Again, because one that is being killed may have started another; one that does so for ever dies with the
        // program.
        for _ in 0..STRAY_ROUNDS {
            let adopted: Vec<i32> = children(keeper).into_iter().filter(|id| *id != self.program).collect();
            if adopted.is_empty() {
                break;
            }
            let strays = table::descendants(&table::all(), &adopted);
            let adopted = adopted.iter().filter_map(|id| Entry::read(*id)).filter(|entry| entry.parent == keeper);
            for stray in adopted.chain(strays).filter(|entry| !entry.has_ended) {
                if let Err(error) = stray.kill() {
                    tracing::debug!(%error, process = stray.id, "a process that was left behind cannot be killed");
                }
                ended.insert((stray.id, stray.started));
            }
        }
        ended.len()
    }

    /// Waits until the program itself has ended, and its standard error was read. Cancel safe.
    pub async fn ended(&mut self) -> Ended {
        let ended = self.watched_end().await;
        // Whoever holds the pipe still is being killed just now.
        timeout(LAST_WORDS, self.readers.join_next()).await.ok();
        self.told = true;
        ended
    }

    async fn watched_end(&mut self) -> Ended {
        match self.progress.wait_for(|progress| progress.ended.is_some()).await {
            Ok(progress) => progress.ended.unwrap_or(Ended::Unknown),
            // Only a runtime that is shut down ends a watch before that.
            Err(_) => Ended::Unknown,
        }
    }

    /// Ends everything in the domain and says what that took. The caller has closed the input (dropped `stdin`).
    pub async fn stop(mut self, patience: Patience) -> Receipt {
        let asked = Instant::now();
        let mut signals = Vec::new();
        if !self.told {
            self.order(Order::Count);
            let mut ended = false;
            if !patience.input_closed.is_zero() {
                signals.push("eof");
                ended = timeout(patience.input_closed, self.watched_end()).await.is_ok();
            }
            if !ended && !patience.terminated.is_zero() {
                signals.push("SIGTERM");
                self.order(Order::Terminate);
                ended = timeout(patience.terminated, self.watched_end()).await.is_ok();
            }
            if !ended {
                self.order(Order::Kill);
            }
        }
        // The watch has a deadline of its own from here.
        self.impatient.notify_one();
        let gone = self.progress.wait_for(|progress| progress.gone.is_some()).await.map(|progress| progress.gone);
        let gone = gone.ok().flatten().unwrap_or_default();
        if gone.killed {
            signals.push("SIGKILL");
        }
        if gone.left > 0 {
            tracing::warn!(program = self.program, left = gone.left, "processes that cannot be killed");
        }
        Receipt {
            processes: gone.processes.saturating_sub(u32::from(self.told)),
            signals: signals.into_iter().map(Into::into).collect(),
            millis: u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// A keeper that cannot be told is dead or stuck, and the watch sees to that.
    fn order(&mut self, order: Order) {
        if let Err(error) = self.lifeline.write_all(order.line().as_bytes()) {
            tracing::debug!(?order, %error, "the keeper does not listen");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.lifeline.shutdown(Shutdown::Write) {
            tracing::debug!(%error, "the keeper is gone already");
        }
    }
}

/// Usually none but the program, so this must be cheap: a turn waits for it.
fn children(of: i32) -> Vec<i32> {
    match fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(ids) => ids.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect(),
        // A kernel that is built without that list.
        Err(_) => table::all().into_iter().filter(|entry| entry.parent == of).map(|entry| entry.id).collect(),
    }
}
