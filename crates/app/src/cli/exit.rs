//! The end of a command: its exit code, and one line for an error.

use crate::{config, terminal::sanitize};
use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// Longer than any of our own messages; a server's message may be truncated.
const LINE: usize = 2000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    Failed,
    Usage,
    Interrupted,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Invalid arguments: the command cannot work, whatever the state of the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Prints the error as one line and returns the exit code.
pub fn report(error: &anyhow::Error) -> Exit {
    // The reader of our output has closed the pipe, as in `greenroom events … | head`: not an error.
    if error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe))
    {
        return Exit::Success;
    }
    let line = sanitize::line(&format!("{error:#}"), LINE);
    if writeln!(io::stderr(), "greenroom: {line}").is_err() {
        return Exit::Failed;
    }
    if error.is::<UsageError>() || error.is::<config::AppConfigError>() { Exit::Usage } else { Exit::Failed }
}
