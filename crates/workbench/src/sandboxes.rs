//! The sandboxes of projects, as the engine and the host tools see them.

use domain::project::{ProjectIsolation, SandboxChoice, SpaceKey};
use std::{fmt, future::Future, pin::Pin};

pub type SandboxesFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Sandboxes: fmt::Debug + Send + Sync {
    /// Returns what a sandbox of this kind enforces on this machine, by a trial run that is remembered for a while.
    fn isolation(&self, choice: SandboxChoice) -> SandboxesFuture<'_, Result<ProjectIsolation, SandboxUnavailable>>;

    /// Stops the sandbox of a space and everything in it, if it runs.
    fn stop(&self, space: SpaceKey) -> SandboxesFuture<'_, ()>;
}

/// No sandbox of the wanted kind works here. The text says why, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SandboxUnavailable(pub String);

/// For a server that runs nothing, and for tests.
#[derive(Clone, Copy, Debug)]
pub struct NoSandboxes;

impl Sandboxes for NoSandboxes {
    fn isolation(&self, _: SandboxChoice) -> SandboxesFuture<'_, Result<ProjectIsolation, SandboxUnavailable>> {
        Box::pin(async { Err(SandboxUnavailable("this server has no sandboxes".to_owned())) })
    }

    fn stop(&self, _: SpaceKey) -> SandboxesFuture<'_, ()> {
        Box::pin(async {})
    }
}
