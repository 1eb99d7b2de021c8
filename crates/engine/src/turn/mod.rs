//! One agent's turn as a pure state machine: input in, effects out. No clock, no ids, no IO: `run` supplies the time
//! and carries out the effects.
//!
//! The machine owns the answer so far. It ensures that the text of a stopped turn is stored exactly once, that open
//! tool calls and approvals are closed, and that a turn ends exactly once. Start at `machine`.

mod coalesce;
mod limit;
mod machine;
mod metered;
mod output_size;
#[cfg(test)]
mod tests;

pub(crate) use coalesce::{PendingEvent, coalesce};
pub(crate) use limit::BUDGET_USED_UP;
pub(crate) use machine::{RunFinish, TurnEffect, TurnInput, TurnMachine, TurnSettings, TurnStopReason};
