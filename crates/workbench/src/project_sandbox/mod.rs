//! The sandboxes of this server: one for each project, opened when it is needed and kept until it is idle.
//!
//! ```text
//!  provider ── ProcessSpec ──▶ SandboxLauncher ── open ──▶ SandboxManager ── SandboxLease ──▶ crates/sandbox
//!                                                             │ connections from inside
//!                                                             ▼
//!                                                        GuestService (host tools, model gateway, egress proxy)
//! ```
//!
//! `manager` owns the sandboxes, `spec` says what one of them gets, `programs` which files of this machine a program needs
//! inside, and `launcher` starts programs in them as `crate::process` does outside. Knows nothing of rooms, agents and
//! providers: a sandbox has a key. Start with `manager`.

mod egress_proxy;
mod guest_ports;
mod handover;
mod launcher;
mod lease;
mod manager;
mod ports;
mod programs;
mod sandboxed_program;
mod spec;
#[cfg(test)]
mod tests;

pub use egress_proxy::{EGRESS_PORT, EgressProxy, proxy_variables};
pub use guest_ports::{GuestFuture, GuestPort, GuestService};
pub use launcher::SandboxLauncher;
pub use lease::SandboxLease;
pub use manager::{SandboxManager, SandboxManagerError, SandboxManagerSettings};
pub use ports::ListeningPort;
pub use programs::{GUEST_PROGRAMS, MountedProgram};
pub use spec::{HOMES, SandboxKey, SandboxSpec};
