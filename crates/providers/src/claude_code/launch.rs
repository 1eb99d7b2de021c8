//! Where a process comes from and how it ends. The supervisor in earnest; tests bring a double, so that everything
//! above this is played through without a program.

use crate::program::STOP;
use domain::run::Receipt;
use std::{future::Future, pin::Pin};
use tokio::io::AsyncWrite;
use workbench::process::{Child, Command, Ended, Handle, Lines, Supervisor};

pub(super) type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub(super) trait Launcher: Send + Sync {
    /// `Err` says why it could not be started.
    fn launch(&self, command: Command) -> Soon<'_, Result<Launched, String>>;
}

pub(super) struct Launched {
    pub lines: Lines,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub life: Box<dyn Life>,
}

/// Dropping it ends the process and all that it started, at once.
pub(super) trait Life: Send {
    /// Comes back when the process has ended by itself.
    fn ended(&mut self) -> Soon<'_, Ended>;

    /// Ends it in good order; its input was closed before.
    fn stop(self: Box<Self>) -> Soon<'static, Receipt>;

    /// Ends what it has started and abandoned; how many processes that were.
    fn end_strays(&self) -> usize;

    /// What it wrote to its standard error last.
    fn last_words(&self) -> String;
}

impl Launcher for Supervisor {
    fn launch(&self, command: Command) -> Soon<'_, Result<Launched, String>> {
        Box::pin(async {
            let Child { stdin, stdout, handle } = self.start(command).await.map_err(|error| error.to_string())?;
            Ok(Launched { lines: stdout, input: Box::new(stdin), life: Box::new(handle) })
        })
    }
}

impl Life for Handle {
    fn ended(&mut self) -> Soon<'_, Ended> {
        Box::pin(Handle::ended(self))
    }

    fn stop(self: Box<Self>) -> Soon<'static, Receipt> {
        Box::pin(Handle::stop(*self, STOP))
    }

    fn end_strays(&self) -> usize {
        Handle::end_strays(self)
    }

    fn last_words(&self) -> String {
        self.stderr().tail()
    }
}
