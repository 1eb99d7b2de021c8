//! Starts programs for agents, and kills a program and all its children (the process tree) when it has to end.
//!
//! Each program runs in its own kill domain, held by a keeper: our own binary, started again. The keeper adopts
//! orphaned descendants of the program and kills all of them on request, or when this server dies for any reason
//! (invariant 5).
//!
//! ```text
//!  server ── lifeline (socket pair) ──▶ keeper ── parent of ──▶ program ──▶ descendants
//!     └───────── stdin, stdout, stderr: direct, no copying ───────┘        (adopted by the keeper)
//! ```
//!
//! | what dies | what ends the rest |
//! |---|---|
//! | the program | its keeper |
//! | the server, or a handle is dropped | the keeper: its lifeline is closed |
//! | the keeper | the server, in `watch`: by cgroup, by domain id, by descent |
//! | server and keeper at once | the next server to start, in `Supervisor::end_abandoned` |
//!
//! To read how a program is started, begin at `child`; how it is stopped and killed: `handle` on the server's side,
//! `keeper::held_program` on the keeper's. `keeper_protocol` is the protocol between server and keeper. `launcher` is the trait that users of
//! this module start programs with.

mod backoff;
mod cgroup;
mod child;
mod domain_id;
mod handle;
pub mod keeper;
mod keeper_protocol;
mod launcher;
mod leftovers;
mod lines;
mod orphans;
mod process_set;
mod process_table;
mod stderr;
mod watch;

pub use backoff::{Backoff, BackoffLimits, BackoffRefusal};
pub(crate) use child::collect_stderr;
pub use child::{Child, ProcessSpec, ProcessStartError, Supervisor};
pub use handle::{ProgramExit, ProgramHandle, StopTimeouts};
pub use launcher::{LaunchedProcess, Launcher, ProcessFuture, ProcessHandle};
pub use lines::{LineError, MAX_LINE_BYTES, OutputLines};
pub(crate) use orphans::AdoptedTree;
pub use process_set::ProcessSet;
pub use stderr::StderrTail;
