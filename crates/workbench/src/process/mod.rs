//! Programs that are started for an agent, and the proof that they have ended.
//!
//! Each runs in a kill domain of its own, held by a keeper: our own binary, started again, which adopts whatever the
//! program leaves behind and kills all of it when told to, or when this server is gone by whatever cause (invariant 5).
//!
//! ```text
//!  server ── lifeline (socket pair) ──▶ keeper ── parent of ──▶ program ──▶ what it starts
//!     └───────── stdin, stdout, stderr: straight, no copying ─────┘          (adopted by the keeper)
//! ```
//!
//! | who dies | who ends the rest |
//! |---|---|
//! | the program | its keeper |
//! | the server, or a handle is dropped | the keeper: its lifeline has ended |
//! | the keeper | the server, in `watch`: by cgroup, by mark, by descent |
//! | server and keeper at once | the next server to start, in `Supervisor::sweep` |
//!
//! Start at `child`. Both sides speak `wire`.

mod backoff;
mod cgroup;
mod child;
mod handle;
pub mod keeper;
mod leftovers;
mod lines;
mod mark;
mod stderr;
mod table;
mod watch;
mod wire;

pub use backoff::{Backoff, Limits, Refusal};
pub use child::{Child, Command, Error, Supervisor};
pub use handle::{Ended, Handle, Patience};
pub use lines::{LineError, Lines, MAX_LINE_BYTES};
pub use stderr::Stderr;
