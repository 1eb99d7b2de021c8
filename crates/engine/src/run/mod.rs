//! Executes a run: starts the provider, pumps what it says through the turn machine into the journal, and carries out
//! what the machine decides.
//!
//! `drive` is one run from claim to end, `ahead` what it needs to know before, `start` what the journal says of its beginning, `pump`
//! the loop inside it with its `clocks`, `knowledge` what the provider's session knows of the room, `active` the board of runs that
//! are on this server.

mod active;
mod ahead;
mod clocks;
mod drive;
mod knowledge;
mod ledger;
mod memory;
mod pump;
mod start;
mod told;

pub(crate) use active::{Accepted, Active, Halt, Signals};
pub(crate) use ahead::Ahead;
pub(crate) use drive::{Brief, drive};
pub(crate) use ledger::Ledger;
pub(crate) use start::Start;
