//! Starts and stops processes: through the supervisor in production, and through a fake in tests, so that the rest of
//! this module can be tested without a program.

use crate::program::STOP_PATIENCE;
use domain::run::Receipt;
use std::{future::Future, pin::Pin};
use tokio::io::AsyncWrite;
use workbench::process::{Child, OutputLines, ProcessSpec, ProgramExit, ProgramHandle, Supervisor};

pub(super) type ClaudeProcessFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub(super) trait ClaudeLauncher: Send + Sync {
    /// Starts the process. `Err` has the reason why it could not start.
    fn launch(&self, command: ProcessSpec) -> ClaudeProcessFuture<'_, Result<LaunchedClaude, String>>;
}

pub(super) struct LaunchedClaude {
    pub lines: OutputLines,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub handle: Box<dyn ClaudeProcessHandle>,
}

/// Controls a running process. Dropping it kills the process and all its descendants.
pub(super) trait ClaudeProcessHandle: Send {
    /// Waits until the process exits.
    fn ended(&mut self) -> ClaudeProcessFuture<'_, ProgramExit>;

    /// Stops the process gracefully; its input must already be closed.
    fn stop(self: Box<Self>) -> ClaudeProcessFuture<'static, Receipt>;

    /// Kills the processes that it left running. Returns their number.
    fn end_strays(&self) -> usize;

    /// Returns the end of its standard error.
    fn last_words(&self) -> String;
}

impl ClaudeLauncher for Supervisor {
    fn launch(&self, command: ProcessSpec) -> ClaudeProcessFuture<'_, Result<LaunchedClaude, String>> {
        Box::pin(async {
            let Child { stdin, stdout, handle } = self.start(command).await.map_err(|error| error.to_string())?;
            Ok(LaunchedClaude { lines: stdout, input: Box::new(stdin), handle: Box::new(handle) })
        })
    }
}

impl ClaudeProcessHandle for ProgramHandle {
    fn ended(&mut self) -> ClaudeProcessFuture<'_, ProgramExit> {
        Box::pin(ProgramHandle::wait(self))
    }

    fn stop(self: Box<Self>) -> ClaudeProcessFuture<'static, Receipt> {
        Box::pin(ProgramHandle::stop(*self, STOP_PATIENCE))
    }

    fn end_strays(&self) -> usize {
        ProgramHandle::end_orphans(self)
    }

    fn last_words(&self) -> String {
        self.stderr().text()
    }
}
