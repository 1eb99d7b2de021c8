//! Runs the commands of a project in a sandbox: its own files, processes and network, on plain Linux, without root and
//! without Docker.
//!
//! ```text
//!  server ── lifeline ──▶ supervisor (our own binary, started again)
//!     │                        └─ broker: pid 1 of the sandbox, without any right
//!     └── control socket ────────────┘ └─ shepherd ─▶ command ─▶ descendants   (one shepherd per command)
//! ```
//!
//! | module | process | contents |
//! |---|---|---|
//! | `driver`, `choose` | server | the trait of all drivers, and which one is used |
//! | `isolation`, `advice` | server | what is enforced, and what to do if something is not |
//! | `local` | server | the driver for this machine: starts the helper and talks to its broker |
//! | `protocol` | both | the messages between them |
//! | `init` | helper | everything that happens between `exec` of the helper and `exec` of a command |
//! | `sys` | both | system calls without a safe wrapper elsewhere: the only unsafe code of the workspace |
//!
//! Knows nothing of rooms, agents and providers, and depends on no other crate of the workspace. Start at `driver`, then
//! `init`.

mod advice;
mod choose;
mod command;
mod driver;
mod init;
mod isolation;
mod local;
mod output;
mod policy;
mod protocol;
#[expect(unsafe_code, reason = "system calls for which no dependency has a safe wrapper")]
mod sys;

pub use choose::{ChosenDriver, SandboxRefusal, SandboxSetting, choose};
pub use command::{CommandExit, CommandIo, CommandSpec, CommandUsage, LeftoverProcesses};
pub use driver::{ProjectSandbox, SandboxCommand, SandboxDriver, SandboxError, SandboxFuture};
pub use init::{SUBCOMMAND as HELPER_SUBCOMMAND, helper_main};
pub use isolation::{Enforcement, Isolation, IsolationTier};
pub use local::{LocalDriver, LocalSandbox, RunningCommand};
pub use output::{CapturedCommand, CommandEnd, HeadAndTail, OutputLimits, capture};
pub use policy::{BindMount, GUEST_HOME, GUEST_WORKSPACE, SandboxLimits, SandboxPolicy};
