//! A command in a sandbox of this machine.

use super::connection::{BrokerConnection, CommandProgress};
use crate::{
    command::CommandExit,
    driver::{SandboxCommand, SandboxError, SandboxFuture},
    protocol::BrokerRequest,
};
use std::{
    fs,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

/// The broker kills within a second or ends the sandbox.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Dropping it kills the command and all its descendants.
pub struct RunningCommand {
    id: u64,
    process_id: Option<i32>,
    waits_for_leftovers: bool,
    progress: watch::Receiver<CommandProgress>,
    connection: Arc<BrokerConnection>,
    is_detached: bool,
}

impl RunningCommand {
    pub(super) fn new(
        id: u64,
        waits_for_leftovers: bool,
        progress: watch::Receiver<CommandProgress>,
        connection: Arc<BrokerConnection>,
    ) -> Self {
        Self { id, process_id: None, waits_for_leftovers, progress, connection, is_detached: false }
    }

    pub(super) fn set_process(&mut self, process: Option<OwnedFd>) {
        self.process_id = process.and_then(process_id);
    }

    async fn wait_for(&mut self, exit: impl Fn(CommandProgress) -> Option<CommandExit>) -> CommandExit {
        let found = self.progress.wait_for(|progress| exit(*progress).is_some()).await;
        // Without a sender the sandbox has ended.
        found.ok().and_then(|progress| exit(*progress)).unwrap_or(CommandExit::SandboxEnded)
    }

    async fn wait_until_gone(&mut self) -> CommandExit {
        self.wait_for(|progress| match progress {
            CommandProgress::Gone(exit) => Some(exit),
            CommandProgress::Running | CommandProgress::Exited(_) => None,
        })
        .await
    }

    async fn wait(&mut self) -> CommandExit {
        if self.waits_for_leftovers {
            return self.wait_until_gone().await;
        }
        self.wait_for(|progress| match progress {
            CommandProgress::Gone(exit) | CommandProgress::Exited(exit) => Some(exit),
            CommandProgress::Running => None,
        })
        .await
    }

    async fn kill(&mut self) -> Result<CommandExit, SandboxError> {
        if !matches!(*self.progress.borrow(), CommandProgress::Gone(_)) {
            // An error means that the sandbox has ended, and the command with it.
            self.connection.send(&BrokerRequest::Kill { command: self.id }).await.ok();
        }
        let seconds = KILL_TIMEOUT.as_secs();
        timeout(KILL_TIMEOUT, self.wait_until_gone()).await.map_err(|_| SandboxError::Timeout { seconds })
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if !self.is_detached {
            self.connection.kill_later(self.id);
        }
    }
}

impl SandboxCommand for RunningCommand {
    fn id(&self) -> u64 {
        self.id
    }

    fn process_id(&self) -> Option<i32> {
        self.process_id
    }

    fn wait(&mut self) -> SandboxFuture<'_, CommandExit> {
        Box::pin(self.wait())
    }

    fn wait_until_gone(&mut self) -> SandboxFuture<'_, CommandExit> {
        Box::pin(self.wait_until_gone())
    }

    fn signal(&self, signal: i32) -> SandboxFuture<'_, Result<(), SandboxError>> {
        let command = self.id;
        Box::pin(async move { self.connection.send(&BrokerRequest::Signal { command, signal }).await })
    }

    fn kill(&mut self) -> SandboxFuture<'_, Result<CommandExit, SandboxError>> {
        Box::pin(self.kill())
    }

    fn detach(mut self: Box<Self>) {
        self.is_detached = true;
    }
}

/// The number of a process in our own process list: inside, it has another.
fn process_id(process: OwnedFd) -> Option<i32> {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let id = facts.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    // 0 and -1: not visible here, and ended.
    Some(id).filter(|id| *id > 0)
}
