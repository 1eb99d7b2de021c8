//! Turns what a tape decides into events and row changes: the runs of the cells to queue, and the plan that everybody sees.

use crate::{
    commands::RunRef,
    tape::{PlannedCell, TapeEffect, TapeMachine},
};
use domain::{
    event::{NewEvent, RunQueued, TapePlanned},
    ids::{MessageId, RunId},
    owner::Owner,
    run_tree::TreePlace,
};
use store::journal::{RowChange, SeqRef, TapeHold};

/// Runs that are queued in one commit, with their events.
#[derive(Default)]
pub(crate) struct QueuedCells {
    events: Vec<NewEvent>,
    runs: Vec<QueuedRun>,
}

struct QueuedRun {
    run: RunRef,
    message_id: MessageId,
    /// The index of its event, and of the first event of its cell.
    event: usize,
    cell: usize,
}

impl QueuedCells {
    /// Carries out the effects of a machine, and tells it the runs of the cell that it asked for.
    pub(crate) fn from_effects(effects: Vec<TapeEffect>, machine: &mut TapeMachine) -> Self {
        let mut queued = Self::default();
        for effect in effects {
            match effect {
                TapeEffect::Planned { message_id, seed, round, cells } => {
                    queued.events.push(NewEvent::new(TapePlanned::new(message_id, round, seed, cells)));
                }
                TapeEffect::QueueCell(cell) => {
                    let runs = queued.push(&cell);
                    machine.cell_queued(runs.iter().map(|run| run.id).collect());
                }
            }
        }
        queued
    }

    /// Queues a run of each agent of a cell.
    pub(crate) fn push(&mut self, PlannedCell { message_id, agents, .. }: &PlannedCell) -> Vec<RunRef> {
        let cell = self.events.len();
        let message_id = *message_id;
        for agent_id in agents.iter().copied() {
            let run = RunRef { id: RunId::generate(), agent_id };
            self.runs.push(QueuedRun { run, message_id, event: self.events.len(), cell });
            self.events.push(NewEvent::new(RunQueued { message_id }).of_run(run.id, agent_id));
        }
        self.runs[self.runs.len() - agents.len()..].iter().map(|queued| queued.run).collect()
    }

    pub(crate) fn events(&self) -> &[NewEvent] {
        &self.events
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = RunRef> {
        self.runs.iter().map(|queued| queued.run)
    }

    /// The cell of the first run, if there is one. `first` is the index of the first of `events` in the commit.
    pub(crate) fn first_cell(&self, first: usize) -> Option<SeqRef> {
        self.runs.first().map(|queued| SeqRef::Event(first + queued.cell))
    }

    /// `first` is the index of the first of `events` in the commit. `place` is for runs that another run starts.
    pub(crate) fn changes(
        &self,
        owner: &Owner,
        place: Option<TreePlace>,
        first: usize,
    ) -> impl Iterator<Item = RowChange> {
        self.runs.iter().map(move |QueuedRun { run, message_id, event, cell }| RowChange::QueueRun {
            owner: owner.clone(),
            run_id: run.id,
            agent_id: run.agent_id,
            message_id: *message_id,
            place,
            seq: SeqRef::Event(first + event),
            cell: SeqRef::Event(first + cell),
            claim: None,
        })
    }
}

/// What the queue holds back. `released` is the cell of the step that a paused room is making.
pub(crate) fn hold_of(machine: &TapeMachine, released: Option<SeqRef>) -> TapeHold {
    match (machine.is_paused(), released) {
        (false, _) => TapeHold::Nothing,
        (true, Some(cell)) if !machine.running().is_empty() => TapeHold::AllBut(cell),
        (true, _) => TapeHold::All,
    }
}
