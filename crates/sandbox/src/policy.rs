//! What a sandbox gets: folders, programs and limits.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the project's folder is, as commands see it.
pub const GUEST_WORKSPACE: &str = "/workspace";
/// The home folder, as commands see it.
pub const GUEST_HOME: &str = "/home/agent";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// The project's folder, mounted at [`GUEST_WORKSPACE`]. Writable.
    pub workspace: PathBuf,
    /// Mounted at [`GUEST_HOME`]. Without one, the home folder is empty and is lost when the sandbox stops.
    pub home: Option<PathBuf>,
    /// Programs outside of `/usr`, such as a coding CLI. Read-only inside.
    pub programs: Vec<BindMount>,
    pub limits: SandboxLimits,
}

impl SandboxPolicy {
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into(), home: None, programs: Vec::new(), limits: SandboxLimits::default() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BindMount {
    /// A file or folder of this machine.
    pub source: PathBuf,
    /// Where it is inside: an absolute path without `..`.
    pub target: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Of one process. Counts data, not address space: Node.js reserves far more than it uses.
    pub process_memory_bytes: u64,
    /// Of all processes together. Needs a delegated cgroup.
    pub total_memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    pub open_files: u64,
    /// The largest file that can be written.
    pub file_bytes: u64,
    /// `/tmp`, which is in memory.
    pub temp_bytes: u64,
    /// Processor time of one process. A program that runs for long always reaches it, so there is none by default.
    pub cpu_seconds: Option<u64>,
    /// Processor time of all processes together, in percent of one processor. Needs a delegated cgroup.
    pub cpu_percent: Option<u32>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            process_memory_bytes: 2 << 30,
            total_memory_bytes: 4 << 30,
            processes: 512,
            open_files: 4096,
            file_bytes: 2 << 30,
            temp_bytes: 512 << 20,
            cpu_seconds: None,
            cpu_percent: None,
        }
    }
}
