//! The sandboxes of projects, as the engine and the host tools see them.

use crate::project_sandbox::{SandboxLease, SandboxManager, SandboxManagerError};
use domain::project::{ProjectIsolation, ProjectSpace, SandboxChoice, SpaceKey};
use std::{fmt, future::Future, pin::Pin};

pub type SandboxesFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Sandboxes: fmt::Debug + Send + Sync {
    /// Returns what a sandbox of this kind enforces on this machine, by a trial run that is remembered for a while.
    fn isolation(&self, choice: SandboxChoice) -> SandboxesFuture<'_, Result<ProjectIsolation, SandboxUnavailable>>;

    /// Returns the running sandbox of a space, and starts it first if it does not run. The folder of the space must exist.
    fn open<'a>(&'a self, space: &'a ProjectSpace) -> SandboxesFuture<'a, Result<SandboxLease, SandboxOpenError>>;

    /// Returns where the programs of agents run in a space: what the project chooses, else what the operator has set. `None`:
    /// outside, by such a setting, with all rights of the server's user.
    fn for_programs<'a>(
        &'a self,
        space: &'a ProjectSpace,
    ) -> SandboxesFuture<'a, Result<Option<SandboxManager>, SandboxUnavailable>>;

    /// Returns the sandbox of a space if it runs.
    fn find(&self, space: SpaceKey) -> SandboxesFuture<'_, Option<SandboxLease>>;

    /// Stops the sandbox of a space and everything in it, if it runs.
    fn stop(&self, space: SpaceKey) -> SandboxesFuture<'_, ()>;

    /// Stops all sandboxes, with the server. None is opened from now on.
    fn close(&self) -> SandboxesFuture<'_, ()>;
}

/// No sandbox of the wanted kind works here. The text says why, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SandboxUnavailable(pub String);

#[derive(Debug, thiserror::Error)]
pub enum SandboxOpenError {
    #[error(transparent)]
    Unavailable(#[from] SandboxUnavailable),
    #[error(transparent)]
    Manager(#[from] SandboxManagerError),
}

/// For a server that runs nothing, and for tests.
#[derive(Clone, Copy, Debug)]
pub struct NoSandboxes;

fn none() -> SandboxUnavailable {
    SandboxUnavailable("this server has no sandboxes".to_owned())
}

impl Sandboxes for NoSandboxes {
    fn isolation(&self, _: SandboxChoice) -> SandboxesFuture<'_, Result<ProjectIsolation, SandboxUnavailable>> {
        Box::pin(async { Err(none()) })
    }

    fn open<'a>(&'a self, _: &'a ProjectSpace) -> SandboxesFuture<'a, Result<SandboxLease, SandboxOpenError>> {
        Box::pin(async { Err(none().into()) })
    }

    fn for_programs<'a>(
        &'a self,
        _: &'a ProjectSpace,
    ) -> SandboxesFuture<'a, Result<Option<SandboxManager>, SandboxUnavailable>> {
        Box::pin(async { Ok(None) })
    }

    fn find(&self, _: SpaceKey) -> SandboxesFuture<'_, Option<SandboxLease>> {
        Box::pin(async { None })
    }

    fn stop(&self, _: SpaceKey) -> SandboxesFuture<'_, ()> {
        Box::pin(async {})
    }

    fn close(&self) -> SandboxesFuture<'_, ()> {
        Box::pin(async {})
    }
}
