//! Waits for a program, and stops it when it must not outlive its run, on the server's side: asks it to end, then
//! has the keeper kill it and all its children. Without a keeper it has to kill what is left itself.

use super::{ProcessSet, StderrTail, keeper_protocol::KeeperCommand, orphans, watch::DomainProgress};
use domain::run::Receipt;
use std::{
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

/// How long the last output may stay in the stderr pipe after the program has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// The program has ended; its exit status is not known.
    Unknown,
}

/// How long to wait after each step of a stop before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTimeouts {
    /// After stdin was closed.
    pub after_input_closed: Duration,
    /// After SIGTERM. Then all processes are killed.
    pub after_sigterm: Duration,
}

/// Owns a kill domain. Dropping it kills all processes in it at once.
#[derive(Debug)]
pub struct ProgramHandle {
    /// Closing this socket tells the keeper to kill; see `keeper_protocol`.
    pub(super) lifeline: Socket,
    pub(super) progress: Receiver<DomainProgress>,
    pub(super) stop_requested: Arc<Notify>,
    pub(super) program: i32,
    pub(super) keeper: Option<u32>,
    pub(super) stderr: StderrTail,
    /// One task, which ends when stderr is closed.
    pub(super) readers: JoinSet<()>,
    /// Whether `wait` has returned the exit.
    pub(super) exit_reported: bool,
}

impl ProgramHandle {
    pub fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Returns the program's process id.
    pub fn process_id(&self) -> i32 {
        self.program
    }

    /// Returns the keeper's process id.
    pub fn keeper_id(&self) -> Option<u32> {
        self.keeper
    }

    /// Kills the program's orphans: processes whose parent has ended, so that the keeper has adopted them, and their
    /// descendants. Children that the program still has, such as MCP servers, stay. Returns the killed ones.
    pub fn end_orphans(&self) -> ProcessSet {
        let keeper = self.keeper.and_then(|id| i32::try_from(id).ok());
        keeper.map(|keeper| orphans::end_orphans(keeper, self.program)).unwrap_or_default()
    }

    /// Waits until the program itself has ended and its stderr was read. Cancel safe.
    pub async fn wait(&mut self) -> ProgramExit {
        let ended = self.wait_for_exit().await;
        // A process that still holds the pipe is being killed right now.
        timeout(STDERR_TIMEOUT, self.readers.join_next()).await.ok();
        self.exit_reported = true;
        ended
    }

    async fn wait_for_exit(&mut self) -> ProgramExit {
        match self.progress.wait_for(|progress| progress.exit.is_some()).await {
            Ok(progress) => progress.exit.unwrap_or(ProgramExit::Unknown),
            // The watch task ends earlier only if the runtime shuts down.
            Err(_) => ProgramExit::Unknown,
        }
    }

    /// Ends all processes in the domain and returns a receipt. The caller must have closed stdin (dropped `stdin`).
    pub async fn stop(mut self, timeouts: StopTimeouts) -> Receipt {
        let begun = Instant::now();
        let mut signals = Vec::new();
        if !self.exit_reported {
            self.send_command(KeeperCommand::Count);
            let mut ended = false;
            if !timeouts.after_input_closed.is_zero() {
                signals.push("eof");
                ended = timeout(timeouts.after_input_closed, self.wait_for_exit()).await.is_ok();
            }
            if !ended && !timeouts.after_sigterm.is_zero() {
                signals.push("SIGTERM");
                self.send_command(KeeperCommand::Terminate);
                ended = timeout(timeouts.after_sigterm, self.wait_for_exit()).await.is_ok();
            }
            if !ended {
                self.send_command(KeeperCommand::Kill);
            }
        }
        // From here on the watch task enforces its own deadline.
        self.stop_requested.notify_one();
        let cleanup =
            self.progress.wait_for(|progress| progress.cleanup.is_some()).await.map(|progress| progress.cleanup);
        let cleanup = cleanup.ok().flatten().unwrap_or_default();
        if cleanup.killed {
            signals.push("SIGKILL");
        }
        if cleanup.remaining > 0 {
            tracing::warn!(program = self.program, left = cleanup.remaining, "some processes could not be killed");
        }
        Receipt {
            processes: cleanup.processes.saturating_sub(u32::from(self.exit_reported)),
            signals: signals.into_iter().map(Into::into).collect(),
            millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// A failed write means that the keeper is dead or stuck, which the watch task handles.
    fn send_command(&mut self, command: KeeperCommand) {
        if let Err(error) = self.lifeline.write_all(command.line().as_bytes()) {
            tracing::debug!(?command, %error, "could not send a command to the keeper");
        }
    }
}

impl Drop for ProgramHandle {
    fn drop(&mut self) {
        if let Err(error) = self.lifeline.shutdown(Shutdown::Write) {
            tracing::debug!(%error, "the keeper has already ended");
        }
    }
}
