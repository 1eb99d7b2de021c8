//! A program that runs in a sandbox: waits for it and stops it, as `crate::process::ProgramHandle` does outside.

use super::SandboxLease;
use crate::process::{
    AdoptedTree, ProcessFuture, ProcessHandle, ProcessSet, ProgramExit, StderrTail, StopTimeouts, collect_stderr,
};
use domain::run::Receipt;
use sandbox::{CommandExit, SandboxCommand};
use std::time::{Duration, Instant};
use tokio::{net::unix::pipe::Receiver, task::JoinSet, time::timeout};

/// How long the last output may stay in the stderr pipe after the program has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);
const SIGTERM: i32 = 15;

/// Dropping it kills the program and all its descendants; the sandbox stays.
pub struct SandboxedProgram {
    command: Box<dyn SandboxCommand>,
    /// Its parent is the shepherd of the command.
    tree: Option<AdoptedTree>,
    stderr: StderrTail,
    /// One task, which ends when stderr is closed.
    readers: JoinSet<()>,
    /// Whether `wait` has returned the exit.
    exit_reported: bool,
    _lease: SandboxLease,
}

impl SandboxedProgram {
    pub fn new(command: Box<dyn SandboxCommand>, lease: SandboxLease, errors: Receiver) -> Self {
        let stderr = StderrTail::default();
        let mut readers = JoinSet::new();
        readers.spawn(collect_stderr(errors, stderr.clone()));
        let tree = command.process_id().and_then(AdoptedTree::of);
        Self { command, tree, stderr, readers, exit_reported: false, _lease: lease }
    }

    async fn stop(mut self, timeouts: StopTimeouts) -> Receipt {
        let begun = Instant::now();
        let (mut signals, mut processes) = (Vec::new(), 0);
        if !self.exit_reported {
            processes = self.tree.map_or(0, |tree| tree.count());
            let mut ended = false;
            if !timeouts.after_input_closed.is_zero() {
                signals.push("eof");
                ended = timeout(timeouts.after_input_closed, self.command.wait()).await.is_ok();
            }
            if !ended && !timeouts.after_sigterm.is_zero() {
                signals.push("SIGTERM");
                // An error means that the sandbox has ended, and the program with it.
                self.command.signal(SIGTERM).await.ok();
                ended = timeout(timeouts.after_sigterm, self.command.wait()).await.is_ok();
            }
            if !ended {
                signals.push("SIGKILL");
            }
        }
        if let Err(error) = self.command.kill().await {
            tracing::warn!(%error, "a program in a sandbox could not be killed");
        }
        Receipt {
            processes: u32::try_from(processes).unwrap_or(u32::MAX),
            signals: signals.into_iter().map(Into::into).collect(),
            millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl ProcessHandle for SandboxedProgram {
    fn process_id(&self) -> i32 {
        // Without an id it had already ended when it was asked for.
        self.command.process_id().unwrap_or_default()
    }

    fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    fn wait(&mut self) -> ProcessFuture<'_, ProgramExit> {
        Box::pin(async {
            let exit = self.command.wait().await;
            timeout(STDERR_TIMEOUT, self.readers.join_next()).await.ok();
            self.exit_reported = true;
            match exit {
                CommandExit::Code(code) => ProgramExit::Code(code),
                CommandExit::Signal(signal) => ProgramExit::Signal(signal),
                CommandExit::SandboxEnded => ProgramExit::Unknown,
            }
        })
    }

    fn stop(self: Box<Self>, timeouts: StopTimeouts) -> ProcessFuture<'static, Receipt> {
        Box::pin(SandboxedProgram::stop(*self, timeouts))
    }

    fn end_orphans(&self) -> ProcessSet {
        self.tree.map(|tree| tree.end_orphans()).unwrap_or_default()
    }
}
