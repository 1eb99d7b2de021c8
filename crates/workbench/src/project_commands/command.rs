//! One command: its state, and what is kept of its output.

use super::{CommandFollower, OutputPart, output::KeptOutput};
use domain::{
    ids::CommandId,
    owner::Owner,
    project::{ProjectSpace, SpaceKey},
    project_command::CommandStatus,
    time::Timestamp,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What readers wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OutputProgress {
    pub status: CommandStatus,
    /// The end of the output so far.
    pub position: u64,
}

#[derive(Debug)]
pub struct ProjectCommand {
    pub id: CommandId,
    pub owner: Owner,
    pub space: SpaceKey,
    /// The line for the shell.
    pub line: String,
    pub started_at: Timestamp,
    progress: watch::Sender<OutputProgress>,
    state: Mutex<CommandRecord>,
    /// Canceled when somebody wants the command to end.
    pub(super) stop: CancellationToken,
    /// Canceled when no process of the command is left.
    pub(super) gone: CancellationToken,
}

#[derive(Debug, Default)]
struct CommandRecord {
    output: KeptOutput,
    ended_at: Option<Timestamp>,
}

impl ProjectCommand {
    pub(super) fn new(space: &ProjectSpace, line: String) -> Self {
        Self {
            id: CommandId::generate(),
            owner: space.owner.clone(),
            space: space.key,
            line,
            started_at: Timestamp::now(),
            progress: watch::Sender::new(OutputProgress { status: CommandStatus::RUNNING, position: 0 }),
            state: Mutex::default(),
            stop: CancellationToken::new(),
            gone: CancellationToken::new(),
        }
    }

    pub fn status(&self) -> CommandStatus {
        self.progress.borrow().status
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        self.lock().ended_at
    }

    /// Whether a process of the command is left: the command itself, or one that it has started and left behind.
    pub fn has_processes(&self) -> bool {
        !self.gone.is_cancelled()
    }

    /// Waits until the command itself has ended.
    pub async fn ended(&self) -> CommandStatus {
        let mut progress = self.progress.subscribe();
        match progress.wait_for(|progress| !progress.status.is_running()).await {
            Ok(progress) => progress.status,
            // The sender is in `self`, so it is not dropped before.
            Err(_) => self.status(),
        }
    }

    /// Standard output and standard error after a position, as far as they are kept.
    pub fn output(&self, after: u64) -> OutputPart {
        self.lock().output.after(after)
    }

    /// Reads the output from a position on, to the end of the command.
    pub fn follow(self: &Arc<Self>, after: u64) -> CommandFollower {
        CommandFollower::new(Arc::clone(self), self.progress.subscribe(), after)
    }

    /// Lets the command be killed, with everything that it has started, without waiting for that.
    pub fn request_stop(&self) {
        self.stop.cancel();
    }

    /// Returns how much was printed so far.
    pub(super) fn push(&self, bytes: &[u8]) -> u64 {
        let position = {
            let mut state = self.lock();
            state.output.push(bytes);
            state.output.total_bytes()
        };
        self.progress.send_modify(|progress| progress.position = position);
        position
    }

    /// The command itself has ended; only the first end counts.
    pub(super) fn end(&self, status: CommandStatus) {
        if !self.status().is_running() {
            return;
        }
        let position = {
            let mut state = self.lock();
            state.output.finish();
            state.ended_at = Some(Timestamp::now());
            state.output.total_bytes()
        };
        self.progress.send_replace(OutputProgress { status, position });
    }

    fn lock(&self) -> MutexGuard<'_, CommandRecord> {
        // Every change leaves readable text.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
