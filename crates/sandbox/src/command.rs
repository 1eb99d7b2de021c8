//! A command as plain data: what to run, with which pipes, and how it ended.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, os::fd::OwnedFd};

/// The command to run. Its environment is exactly `env`; the server's own is never inherited.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program, which is looked up in the `PATH` of `env` if it has no slash, and its arguments.
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The folder to start in, as the command sees it.
    pub folder: String,
    pub leftovers: LeftoverProcesses,
}

impl CommandSpec {
    /// A command in the project's folder with the usual variables.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", crate::GUEST_HOME),
            ("USER", "agent"),
            ("LANG", "C.UTF-8"),
            ("TERM", "xterm-256color"),
            ("TMPDIR", "/tmp"),
        ];
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            folder: crate::GUEST_WORKSPACE.to_owned(),
            leftovers: LeftoverProcesses::End,
        }
    }
}

impl fmt::Debug for CommandSpec {
    /// Omits arguments and environment: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSpec")
            .field("program", &self.argv.first())
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// What happens to processes that are still running when the command itself has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverProcesses {
    /// They are killed.
    End,
    /// They stay until the command is killed or the sandbox stops: a dev server that was started in the background.
    Stay,
}

/// The pipes, files or terminal of a command.
#[derive(Debug)]
pub struct CommandIo {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    Code(i32),
    Signal(i32),
    /// The sandbox ended, and the command with it.
    SandboxEnded,
}

impl CommandExit {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// A command that still has processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandUsage {
    pub id: u64,
    /// How many processes belong to the command now, itself included.
    pub processes: u32,
    /// Whether the command itself is still running, not only what it left behind.
    pub is_running: bool,
}
