//! How providers and MCP clients start programs, without knowing where the programs run: [`Supervisor`] starts them on
//! this machine, and tests start fakes.
//!
//! A [`ProcessSpec`] is all that a launcher gets: the program sees this folder, these arguments and exactly this
//! environment, wherever it runs.

use super::{
    Child, OutputLines, ProcessSet, ProcessSpec, ProcessStartError, ProgramExit, ProgramHandle, StderrTail,
    StopTimeouts, Supervisor,
};
use domain::run::Receipt;
use std::pin::Pin;
use tokio::io::AsyncWrite;

pub type ProcessFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Launcher: Send + Sync {
    /// Starts a program. Dropping the future before it is ready leaves no process behind.
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>>;
}

/// A running program: its pipes and the handle that ends it.
pub struct LaunchedProcess {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: OutputLines,
    pub handle: Box<dyn ProcessHandle>,
}

/// Controls a running program. Dropping it kills the program and all its descendants.
pub trait ProcessHandle: Send {
    /// The program's process id, as this machine's process list shows it.
    fn process_id(&self) -> i32;

    fn stderr(&self) -> &StderrTail;

    /// Waits until the program itself has ended and its stderr was read. Cancel safe.
    fn wait(&mut self) -> ProcessFuture<'_, ProgramExit>;

    /// Ends the program and all its descendants. The caller must have closed stdin.
    fn stop(self: Box<Self>, timeouts: StopTimeouts) -> ProcessFuture<'static, Receipt>;

    /// Kills processes that the program started and then left: not those that are still its children. Returns them.
    fn end_orphans(&self) -> ProcessSet;
}

impl Launcher for Supervisor {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        Box::pin(async {
            let Child { stdin, stdout, handle } = self.start(spec).await?;
            Ok(LaunchedProcess { stdin: Box::new(stdin), stdout, handle: Box::new(handle) })
        })
    }
}

impl ProcessHandle for ProgramHandle {
    fn process_id(&self) -> i32 {
        ProgramHandle::process_id(self)
    }

    fn stderr(&self) -> &StderrTail {
        ProgramHandle::stderr(self)
    }

    fn wait(&mut self) -> ProcessFuture<'_, ProgramExit> {
        Box::pin(ProgramHandle::wait(self))
    }

    fn stop(self: Box<Self>, timeouts: StopTimeouts) -> ProcessFuture<'static, Receipt> {
        Box::pin(ProgramHandle::stop(*self, timeouts))
    }

    fn end_orphans(&self) -> ProcessSet {
        ProgramHandle::end_orphans(self)
    }
}
