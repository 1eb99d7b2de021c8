//! Reads a command live: a position, and a wake-up. A slow reader gets the end of what it has missed.

use super::{OutputPart, ProjectCommand, command::OutputProgress};
use domain::project_command::CommandStatus;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandStep {
    Output(OutputPart),
    /// The command itself has ended. There may be more output, of processes that it has left behind.
    Ended(CommandStatus),
}

#[derive(Debug)]
pub struct CommandFollower {
    command: Arc<ProjectCommand>,
    progress: watch::Receiver<OutputProgress>,
    position: u64,
}

impl CommandFollower {
    pub(super) fn new(command: Arc<ProjectCommand>, progress: watch::Receiver<OutputProgress>, position: u64) -> Self {
        Self { command, progress, position }
    }

    pub fn command(&self) -> &Arc<ProjectCommand> {
        &self.command
    }

    /// Waits for output or for the end. Cancel safe.
    pub async fn next(&mut self) -> CommandStep {
        loop {
            let OutputProgress { status, position } = *self.progress.borrow_and_update();
            if self.position < position {
                let part = self.command.output(self.position);
                self.position = part.next;
                return CommandStep::Output(part);
            }
            if !status.is_running() {
                return CommandStep::Ended(status);
            }
            if self.progress.changed().await.is_err() {
                return CommandStep::Ended(self.command.status());
            }
        }
    }
}
