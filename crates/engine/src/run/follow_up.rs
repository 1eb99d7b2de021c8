//! What follows the end of a run: the room's tape decides, and its decision is stored in the commit of the end.

use super::RunJournal;
use crate::tape::{PlannedCell, TapeEffect, TapeInput, TapeMachine};
use domain::{
    event::{NewEvent, RunQueued},
    ids::{AgentId, MessageId, RunId},
    run::RunStatus,
};
use store::{
    StoreError, TapeRecord,
    journal::{RowChange, SeqRef},
};

/// The plan of a room after a run has ended. Empty for a room without a plan, which is not even looked for: a plan that
/// exists rejects the commit of an end that does not know it.
#[derive(Default)]
pub(super) struct FollowUp {
    change: Option<RowChange>,
    queued: Vec<QueuedRun>,
}

struct QueuedRun {
    run_id: RunId,
    agent_id: AgentId,
    message_id: MessageId,
    event: NewEvent,
}

impl FollowUp {
    /// Decides with the stored plan. `None` stands for a plan that was removed meanwhile.
    pub(super) fn decide(run: RunId, status: RunStatus, stored: Option<TapeRecord>) -> Result<Self, StoreError> {
        let Some(TapeRecord { version, state }) = stored else { return Ok(Self::default()) };
        let mut tape: TapeMachine = serde_json::from_str(&state)?;
        let (mut queued, mut is_done) = (Vec::new(), false);
        let mut input = Some(TapeInput::RunEnded { run, status });
        while let Some(effect) = input.take().and_then(|input| tape.handle(input)) {
            match effect {
                TapeEffect::QueueCell(PlannedCell { message_id, agents }) => {
                    queued.extend(agents.into_iter().map(|agent_id| {
                        let run_id = RunId::generate();
                        let event = NewEvent::new(RunQueued { message_id }).of_run(run_id, agent_id);
                        QueuedRun { run_id, agent_id, message_id, event }
                    }));
                    input = Some(TapeInput::CellQueued { runs: queued.iter().map(|run| run.run_id).collect() });
                }
                TapeEffect::Done => is_done = true,
            }
        }
        let state = if is_done { None } else { Some(serde_json::to_string(&tape)?) };
        Ok(Self { change: Some(RowChange::PutTape { based_on: version, state }), queued })
    }

    pub(super) fn events(&self) -> impl Iterator<Item = NewEvent> {
        self.queued.iter().map(|run| run.event.clone())
    }

    /// `first` is the index of the first of `events` in the commit; the runs are one cell.
    pub(super) fn changes(&self, journal: &RunJournal, first: usize) -> Vec<RowChange> {
        let mut changes: Vec<RowChange> = self.change.clone().into_iter().collect();
        for (index, run) in (first..).zip(&self.queued) {
            changes.push(RowChange::QueueRun {
                owner: journal.owner().clone(),
                run_id: run.run_id,
                agent_id: run.agent_id,
                message_id: run.message_id,
                seq: SeqRef::Event(index),
                cell: SeqRef::Event(first),
                claim: None,
            });
        }
        changes
    }
}
