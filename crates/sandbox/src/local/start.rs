//! Starts a helper and waits until its sandbox is ready.

use super::{cgroup::SandboxCgroup, connection::ControlSocket};
use crate::{
    advice::{self, KernelSettings},
    driver::SandboxError,
    init,
    protocol::{self, HelperFacts, HelperReport, HelperStart, StartHelper},
};
use std::{
    io::{self, PipeWriter, pipe},
    os::fd::AsFd as _,
    path::Path,
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// A start takes a few milliseconds; this allows for an overloaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A helper whose sandbox is ready.
pub struct StartedHelper {
    pub process: Child,
    pub socket: ControlSocket,
    /// The sandbox lives as long as this is open.
    pub lifeline: PipeWriter,
    pub facts: HelperFacts,
    pub cgroup: Option<SandboxCgroup>,
}

/// Safe to drop at any point: that closes the lifeline, and the helper ends.
pub async fn start(
    program: &Path,
    start: &HelperStart,
    cgroup: Option<SandboxCgroup>,
) -> Result<StartedHelper, SandboxError> {
    let seconds = START_TIMEOUT.as_secs();
    timeout(START_TIMEOUT, start_helper(program, start, cgroup)).await.unwrap_or(Err(SandboxError::Timeout { seconds }))
}

async fn start_helper(
    program: &Path,
    start: &HelperStart,
    cgroup: Option<SandboxCgroup>,
) -> Result<StartedHelper, SandboxError> {
    let (lifeline_end, lifeline) = pipe().map_err(SandboxError::Helper)?;
    let (ours, theirs) = protocol::socket_pair().map_err(SandboxError::Helper)?;
    let body = protocol::to_body(start).map_err(SandboxError::Helper)?;
    protocol::send(ours.as_fd(), &StartHelper, &[body.as_fd(), lifeline_end.as_fd()]).map_err(SandboxError::Helper)?;
    let process = Command::new(program)
        .arg(init::SUBCOMMAND)
        .env_clear()
        // The allocator of the server's binary would start a thread before `main`, and a process with threads cannot enter a
        // user namespace.
        .env("_RJEM_MALLOC_CONF", "background_thread:false")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(SandboxError::Helper)?;
    drop((body, lifeline_end));
    let socket = ControlSocket::new(ours).map_err(SandboxError::Helper)?;
    match socket.receive().await.map_err(SandboxError::Helper)? {
        Some((HelperReport::Ready(facts), _)) => Ok(StartedHelper { process, socket, lifeline, facts, cgroup }),
        Some((HelperReport::SetupFailed(failure), _)) => {
            let advice = advice::for_failure(&failure, &KernelSettings::read());
            Err(SandboxError::Setup { failure, advice })
        }
        Some(_) => Err(SandboxError::Helper(io::Error::other("unexpected report"))),
        None => Err(SandboxError::Helper(io::Error::other("it ended before the sandbox was ready"))),
    }
}
