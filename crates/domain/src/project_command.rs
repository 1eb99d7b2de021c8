//! How a command in the sandbox of a project is doing.

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandState {
    Running,
    /// The command has ended by itself, with an exit code.
    Exited,
    /// The command was ended by a signal that was not the server's.
    Signaled,
    /// The server killed the command at its timeout.
    TimedOut,
    /// Somebody stopped the command.
    Stopped,
    /// The server killed the command because it printed too much.
    TooMuchOutput,
    /// The sandbox was stopped, and the command with it.
    SandboxEnded,
}

/// The state of a command, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct CommandStatus {
    /// Whether the command runs, and why it ended.
    pub state: CommandState,
    /// Set in the state `exited`.
    #[schema(examples(0))]
    pub exit_code: Option<i32>,
    /// Set in the state `signaled`.
    pub signal: Option<i32>,
}

impl CommandStatus {
    pub const RUNNING: Self = Self::of(CommandState::Running);

    pub const fn of(state: CommandState) -> Self {
        Self { state, exit_code: None, signal: None }
    }

    pub const fn exited(code: i32) -> Self {
        Self { exit_code: Some(code), ..Self::of(CommandState::Exited) }
    }

    pub const fn signaled(signal: i32) -> Self {
        Self { signal: Some(signal), ..Self::of(CommandState::Signaled) }
    }

    pub fn is_running(self) -> bool {
        self.state == CommandState::Running
    }
}
