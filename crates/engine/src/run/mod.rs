//! Executes a run: starts the provider, passes its events through the turn machine into the journal, and carries out
//! the machine's effects.
//!
//! Start at `drive`: one run from claim to end. `claimed` is the run as its driver gets it, `prefetch` reads its data early, `start` writes its start, `pump` is
//! its main loop with its `clocks`, `signals` are the requests to it, `ending` is its end, `follow_up` what comes after it. `transcript` and
//! `session_marks` decide which messages the provider receives, `room_view` what it is told about the room, `context` reads both back, `above` is what a
//! run inherits, `journal` commits, `active` wakes the runs on this server.

mod above;
mod active;
mod claimed;
mod clocks;
mod context;
mod drive;
mod ending;
mod follow_up;
mod journal;
mod prefetch;
mod pump;
mod room_view;
mod session_marks;
mod signals;
mod start;
mod transcript;

pub(crate) use above::RunsAbove;
pub(crate) use active::{ActiveRun, ActiveRuns, RunStop};
pub(crate) use claimed::ClaimedRun;
pub use context::{ContextMessage, RunContextView};
pub(crate) use drive::{drive, drive_queued};
pub(crate) use ending::RunEnd;
pub(crate) use journal::RunJournal;
pub(crate) use prefetch::Prefetch;
pub(crate) use room_view::RoomView;
pub(crate) use signals::SettledSignals;
pub(crate) use start::{StoredStart, start_events};
