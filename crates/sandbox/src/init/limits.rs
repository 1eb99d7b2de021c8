//! Resource limits that hold without a cgroup.

use super::setup::{DuringSetup as _, SetupResult};
use crate::{policy::SandboxLimits, protocol::SetupStep};
use nix::{
    errno::Errno,
    sys::resource::{Resource, getrlimit, setrlimit},
};

const LOCKED_MEMORY_BYTES: u64 = 64 << 20;

/// For the broker and everything that it starts.
pub fn set(limits: &SandboxLimits) -> SetupResult<()> {
    let wanted = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_DATA, limits.process_memory_bytes),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_MEMLOCK, LOCKED_MEMORY_BYTES),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_NPROC, limits.processes),
    ];
    for (resource, value) in wanted {
        lower(resource, value).during(SetupStep::Limits, format!("set {resource:?}"))?;
    }
    Ok(())
}

/// For a command only: the broker lives as long as the sandbox.
pub fn set_cpu(limits: &SandboxLimits) -> Result<(), Errno> {
    limits.cpu_seconds.map_or(Ok(()), |seconds| lower(Resource::RLIMIT_CPU, seconds))
}

/// Raising a limit needs a right that the helper may not have.
fn lower(resource: Resource, value: u64) -> Result<(), Errno> {
    let (_, hard) = getrlimit(resource)?;
    let value = value.min(hard);
    setrlimit(resource, value, value)
}
