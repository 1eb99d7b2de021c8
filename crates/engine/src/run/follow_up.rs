//! What follows the end of a run: the room's tape decides, and its decision is stored in the commit of the end.

use super::RunJournal;
use crate::{
    tape::{self, EndedTurn, RoomRules, TapeMachine},
    tape_commit::{QueuedCells, hold_of},
};
use domain::{agent::Agent, event::NewEvent, ids::AgentId, room::RoomPolicy, time::Timestamp};
use store::{
    StoreError, TapeRecord,
    journal::{RowChange, SeqRef, TapeHold},
};

/// The plan of a room after a run has ended. Empty for a room without a plan, which is not even looked for: a plan that
/// exists rejects the commit of an end that does not know it.
#[derive(Default)]
pub(super) struct FollowUp {
    change: Option<RowChange>,
    queued: QueuedCells,
}

/// What the tape has to know of a run's end.
#[derive(Debug, Clone)]
pub(crate) struct SpokenTurn {
    /// What the agent said; empty if it skipped or failed.
    pub text: String,
    pub ends_round: bool,
}

impl FollowUp {
    /// Decides with the stored plan. `None` stands for a plan that was removed meanwhile.
    pub(super) fn decide(
        mut turn: EndedTurn,
        spoken: &SpokenTurn,
        stored: Option<TapeRecord>,
        room: &(RoomPolicy, Vec<Agent>),
    ) -> Result<Self, StoreError> {
        let Some(TapeRecord { version, state, released_cell }) = stored else { return Ok(Self::default()) };
        let mut machine: TapeMachine = serde_json::from_str(&state)?;
        let (policy, agents) = room;
        let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
        let rules = RoomRules { policy, agents: &ids, now: Timestamp::now() };
        turn.named = tape::mentions_in(&spoken.text, agents);
        (turn.has_spoken, turn.ends_round) = (!spoken.text.trim().is_empty(), spoken.ends_round);
        let effects = machine.run_ended(&turn, rules);
        let queued = QueuedCells::from_effects(effects, &mut machine);
        let is_done = machine.is_done(rules);
        let state = if is_done { None } else { Some(serde_json::to_string(&machine)?) };
        let hold = if is_done { TapeHold::Nothing } else { hold_of(&machine, released_cell.map(SeqRef::Known)) };
        Ok(Self { change: Some(RowChange::PutTape { based_on: version, state, hold }), queued })
    }

    pub(super) fn events(&self) -> impl Iterator<Item = NewEvent> {
        self.queued.events().iter().cloned()
    }

    /// `first` is the index of the first of `events` in the commit; the runs are one cell.
    pub(super) fn changes(&self, journal: &RunJournal, first: usize) -> Vec<RowChange> {
        let mut changes: Vec<RowChange> = self.change.clone().into_iter().collect();
        changes.extend(self.queued.changes(journal.owner(), None, first));
        changes
    }
}
