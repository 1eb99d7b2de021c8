//! Executes a run: starts the provider, pumps what it says through the turn machine into the journal, and carries out
//! what the machine decides.
//!
//! `drive` is one run from claim to end, `pump` the loop inside it, `active` the board of runs that are on this server.

mod active;
mod drive;
mod ledger;
mod pump;

pub(crate) use active::{Active, Halt, Signals};
pub(crate) use drive::drive;
pub(crate) use ledger::Ledger;
