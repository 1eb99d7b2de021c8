//! Programs that are started for an agent, and the proof that they have ended.
//!
//! Each runs in a kill domain of its own, held by a keeper: our own binary, started again, which adopts whatever the
//! program leaves behind and kills all of it when told to, or when this server is gone by whatever cause (invariant 5).

mod child;
mod lines;
mod stderr;

pub use child::{Child, Command, Ended, Error, Handle, Patience, Supervisor};
pub use lines::{LineError, Lines, MAX_LINE_BYTES};
pub use stderr::Stderr;
