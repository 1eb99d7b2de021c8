//! One agent's turn as a pure machine: an input in, effects out. No clock, no ids, no IO: `run` supplies the time and
//! carries the effects out.
//!
//! The machine owns the answer so far. That the text of a stopped turn is kept exactly once, that open tool calls and
//! approvals are closed, and that there is one end, is all decided here.

mod coalesce;
mod limit;
mod machine;
#[cfg(test)]
mod tests;

pub(crate) use coalesce::{Entry, coalesce};
pub(crate) use machine::{Effect, Finish, Input, Machine, Setting, Why};
