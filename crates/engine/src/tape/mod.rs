//! The tape: which agent of a room speaks next. It decides which agents answer, in which cells, and what follows. Pure: no clock,
//! no ids, no IO.
//!
//! The agents of a cell answer side by side, the cells one after another; the queue keeps the order. `planner` is the
//! policies: who answers a message, and who reacts to the answers. `machine` is what is planned behind the queued runs: it hears
//! how runs end and what people command, and says what to queue. `mentions` finds the agents that a text names.

mod machine;
#[cfg(test)]
mod machine_tests;
mod mentions;
mod planner;
#[cfg(test)]
mod planner_tests;
mod progress;
mod shuffle;

pub(crate) use machine::{EndedTurn, MAX_CELLS, PlannedAnswers, PlannedCell, TapeEffect, TapeMachine, TapeRefusal};
pub(crate) use mentions::mentions_in;
pub(crate) use planner::{CellDraft, RoomRules, first_round, names_restrict};

use domain::{ids::MessageId, room::RoomPolicy};

/// The seed of a message's plan: another one for every message, so that no agent is always the first.
pub(crate) fn seed_of(policy: &RoomPolicy, message: MessageId) -> u32 {
    let [.., a, b, c, d] = *message.0.as_bytes();
    policy.seed ^ u32::from_be_bytes([a, b, c, d])
}
