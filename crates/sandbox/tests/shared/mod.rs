//! What the tests tell the fixture to do, and what it answers.

use sandbox::{CommandSpec, Isolation, IsolationTier, SandboxPolicy};
use serde::{Deserialize, Serialize};

/// The fixture opens a sandbox and runs one command in it, as a server would.
#[derive(Serialize, Deserialize, Debug)]
pub struct DriveRequest {
    pub tier: IsolationTier,
    pub without_user_namespaces: bool,
    pub policy: SandboxPolicy,
    pub command: CommandSpec,
    pub wall_milliseconds: u64,
    pub total_bytes: u64,
    /// Drops the future of the command after this time.
    pub cancel_after_milliseconds: Option<u64>,
    /// A file that is opened without the close-on-exec flag before the sandbox is.
    pub leaked_file: Option<String>,
}

/// Devices that lead out of a sandbox, where a machine has them.
pub const DEVICES: [&str; 8] =
    ["/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/kvm", "/dev/fuse"];

#[derive(Serialize, Deserialize, Debug)]
pub struct DriveResult {
    pub isolation: Option<Isolation>,
    /// `exited 0`, `signal 9`, `timed out`, `too much output`, `cancelled`, or an error.
    pub end: String,
    pub stdout: String,
    pub stderr: String,
    pub total_bytes: u64,
    pub milliseconds: u128,
}
