//! The right to use an open sandbox. While somebody has it, the sandbox is not idle.

use super::{SandboxSpec, manager::SandboxSlot};
use sandbox::{
    CapturedCommand, CommandIo, CommandSpec, CommandUsage, Isolation, OutputLimits, ProjectSandbox, SandboxCommand,
    SandboxError,
};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Cheap to clone. A sandbox that was stopped meanwhile answers with [`SandboxError::Ended`]; open it again.
pub struct SandboxLease {
    slot: Arc<SandboxSlot>,
    sandbox: Arc<dyn ProjectSandbox>,
    spec: Arc<SandboxSpec>,
}

impl SandboxLease {
    /// The slot must have counted this lease already, by [`SandboxSlot::add_lease`].
    pub(super) fn new(slot: Arc<SandboxSlot>, sandbox: Arc<dyn ProjectSandbox>, spec: Arc<SandboxSpec>) -> Self {
        Self { slot, sandbox, spec }
    }

    /// What the sandbox was opened with.
    pub fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    pub fn isolation(&self) -> &Isolation {
        self.sandbox.isolation()
    }

    /// The sandbox itself. It is kept open by leases, not by this.
    pub fn sandbox(&self) -> Arc<dyn ProjectSandbox> {
        Arc::clone(&self.sandbox)
    }

    /// Starts a command. Dropping what it returns kills the command.
    pub async fn run(&self, command: CommandSpec, io: CommandIo) -> Result<Box<dyn SandboxCommand>, SandboxError> {
        self.sandbox.run(command, io).await
    }

    /// Runs a command without input to its end. Dropping the future kills the command.
    pub async fn capture(&self, command: CommandSpec, limits: OutputLimits) -> Result<CapturedCommand, SandboxError> {
        sandbox::capture(&*self.sandbox, command, limits).await
    }

    /// The commands that still have processes.
    pub async fn list(&self) -> Result<Vec<CommandUsage>, SandboxError> {
        self.sandbox.list().await
    }

    /// Listens on a port inside; connections that commands make to it arrive here.
    pub async fn listen(&self, port: u16) -> Result<TcpListener, SandboxError> {
        self.sandbox.listen(port).await
    }

    /// Connects to a port inside.
    pub async fn connect(&self, port: u16) -> Result<TcpStream, SandboxError> {
        self.sandbox.connect(port).await
    }
}

impl Clone for SandboxLease {
    fn clone(&self) -> Self {
        self.slot.add_lease();
        Self::new(Arc::clone(&self.slot), Arc::clone(&self.sandbox), Arc::clone(&self.spec))
    }
}

impl Drop for SandboxLease {
    fn drop(&mut self) {
        self.slot.remove_lease();
    }
}
