//! How a command ends: its exit code, and the one line that says why it failed.

use crate::{config, terminal::sanitise};
use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// Longer than any message of ours; a server's may be cut.
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

/// The command was asked for in a way that cannot work, whatever the state of the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Prints the error as one line and says which exit code it means.
pub fn report(error: &anyhow::Error) -> Exit {
    // Whoever read our output has gone, as in `greenroom events … | head`: nothing went wrong.
    if error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe))
    {
        return Exit::Success;
    }
    let line = sanitise::line(&format!("{error:#}"), LINE);
    if writeln!(io::stderr(), "greenroom: {line}").is_err() {
        return Exit::Failed;
    }
    if error.is::<Usage>() || error.is::<config::Error>() { Exit::Usage } else { Exit::Failed }
}
