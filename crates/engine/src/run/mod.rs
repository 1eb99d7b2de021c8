//! Executes a run: starts the provider, passes its events through the turn machine into the journal, and carries out
//! the machine's effects.
//!
//! Start at `drive`: one run from claim to end. `prefetch` reads its data early, `start` writes its start, `pump` is
//! its main loop with its `clocks`, `transcript` and `session_marks` decide which messages the provider receives,
//! `journal` commits, `active` lists the runs on this server.

mod active;
mod clocks;
mod drive;
mod journal;
mod memory;
mod prefetch;
mod pump;
mod session_marks;
mod start;
mod transcript;

pub(crate) use active::{ActiveRuns, AnswerOutcome, Halt, RunSignals};
pub(crate) use drive::{PreloadedRun, drive};
pub(crate) use journal::RunJournal;
pub(crate) use prefetch::Prefetch;
pub(crate) use start::PendingStart;
