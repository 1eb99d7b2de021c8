//! The interface of all sandboxes: a driver starts them, and commands run in them. `local` implements it for this machine.

use crate::{
    CommandExit, CommandIo, CommandSpec, CommandUsage, Isolation, IsolationTier, SandboxPolicy, protocol::SetupFailure,
};
use std::{io, pin::Pin, sync::Arc};
use tokio::net::{TcpListener, TcpStream};

pub type SandboxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait SandboxDriver: Send + Sync {
    fn tier(&self) -> IsolationTier;

    /// Starts a sandbox with everything in it, runs a command and stops it again. Only that tells what works here.
    fn probe(&self) -> SandboxFuture<'_, Result<Isolation, SandboxError>>;

    fn start_sandbox(&self, policy: SandboxPolicy) -> SandboxFuture<'_, Result<Arc<dyn ProjectSandbox>, SandboxError>>;
}

/// The running sandbox of one project. Dropping the last reference stops it and kills everything in it.
pub trait ProjectSandbox: Send + Sync {
    fn isolation(&self) -> &Isolation;

    /// Whether it was stopped or has ended by itself.
    fn has_ended(&self) -> bool;

    /// Starts a command. Dropping what it returns kills the command.
    fn run(
        &self,
        command: CommandSpec,
        io: CommandIo,
    ) -> SandboxFuture<'_, Result<Box<dyn SandboxCommand>, SandboxError>>;

    /// The commands that still have processes.
    fn list(&self) -> SandboxFuture<'_, Result<Vec<CommandUsage>, SandboxError>>;

    /// Listens on a port of the sandbox's own loopback; 0 is any free port. Connections that commands make to it arrive
    /// here, in the server: the way to host tools, to a model gateway and to an egress proxy.
    fn listen(&self, port: u16) -> SandboxFuture<'_, Result<TcpListener, SandboxError>>;

    /// Connects to a port inside, for a preview of what a command serves there.
    fn connect(&self, port: u16) -> SandboxFuture<'_, Result<TcpStream, SandboxError>>;

    /// Kills everything and waits until it is gone.
    fn stop(&self) -> SandboxFuture<'_, Result<(), SandboxError>>;
}

/// A started command.
pub trait SandboxCommand: Send + Sync {
    fn id(&self) -> u64;

    /// The process id on this machine, if the command has one here and had not ended before it could be read.
    fn process_id(&self) -> Option<i32>;

    /// Waits until the command has ended and, unless they may stay, the processes that it left. Cancel safe.
    fn wait(&mut self) -> SandboxFuture<'_, CommandExit>;

    /// Waits until no process of the command is left. Cancel safe.
    fn wait_until_gone(&mut self) -> SandboxFuture<'_, CommandExit>;

    /// Sends a signal to the command's process group.
    fn signal(&self, signal: i32) -> SandboxFuture<'_, Result<(), SandboxError>>;

    /// Kills the command and all its descendants, and waits until they are gone.
    fn kill(&mut self) -> SandboxFuture<'_, Result<CommandExit, SandboxError>>;

    /// Lets the command run on after this handle is dropped, until the sandbox stops.
    fn detach(self: Box<Self>);
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("cannot set up a sandbox: {failure}{}", advice.as_ref().map(|text| format!(". {text}")).unwrap_or_default())]
    Setup { failure: SetupFailure, advice: Option<String> },
    #[error("cannot start the sandbox helper: {0}")]
    Helper(#[source] io::Error),
    #[error("the sandbox did not answer within {seconds} s")]
    Timeout { seconds: u64 },
    #[error("the sandbox has ended")]
    Ended,
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} cannot start in the folder {folder}: {source}")]
    Folder { program: String, folder: String, source: io::Error },
    #[error("cannot use port {port} of the sandbox: {source}")]
    Port { port: u16, source: io::Error },
    #[error("{0}")]
    Unsuitable(String),
}
