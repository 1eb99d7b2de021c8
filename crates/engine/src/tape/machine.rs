//! The state machine of a room's tape: the runs of the current cell, and the cells behind it. Its state is a row that
//! changes in the commit that ends a run; a room with nothing planned behind its queued runs has none.

use domain::{
    ids::{AgentId, MessageId, RunId},
    run::RunStatus,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The names are stored: fields may be added, never renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TapeMachine {
    /// The unfinished runs of the cell that was queued last.
    running: Vec<RunId>,
    /// The cells that follow, in order.
    planned: VecDeque<PlannedCell>,
}

/// Agents that will answer a message side by side. An agent is in a cell once: its provider session takes one turn at a
/// time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedCell {
    pub message_id: MessageId,
    pub agents: Vec<AgentId>,
}

#[derive(Debug)]
pub(crate) enum TapeInput {
    RunEnded {
        run: RunId,
        status: RunStatus,
    },
    /// The runs of the cell that the machine asked for.
    CellQueued {
        runs: Vec<RunId>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TapeEffect {
    /// Queue a run of each agent of the cell.
    QueueCell(PlannedCell),
    /// Nothing is planned any more.
    Done,
}

impl TapeMachine {
    pub(crate) fn handle(&mut self, input: TapeInput) -> Option<TapeEffect> {
        match input {
            TapeInput::RunEnded { run, status } => {
                let before = self.running.len();
                self.running.retain(|running| *running != run);
                if self.running.len() == before {
                    // A run that was queued by a post, before or beside the plan.
                    return None;
                }
                if matches!(status, RunStatus::Cancelled | RunStatus::Interrupted) {
                    // A person stopped the cell, or a server did: the rest of the plan is not continued without them.
                    self.planned.clear();
                }
                match self.planned.is_empty() {
                    true => Some(TapeEffect::Done),
                    false if self.running.is_empty() => self.planned.pop_front().map(TapeEffect::QueueCell),
                    false => None,
                }
            }
            TapeInput::CellQueued { runs } => {
                self.running = runs;
                self.planned.is_empty().then_some(TapeEffect::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PlannedCell, TapeEffect, TapeInput, TapeMachine};
    use domain::{
        ids::{AgentId, MessageId, RunId},
        run::RunStatus,
    };
    use serde_json::json;

    fn cell(agents: usize) -> PlannedCell {
        PlannedCell { message_id: MessageId::generate(), agents: (0..agents).map(|_| AgentId::generate()).collect() }
    }

    fn runs(count: usize) -> Vec<RunId> {
        (0..count).map(|_| RunId::generate()).collect()
    }

    fn ended(run: RunId, status: RunStatus) -> TapeInput {
        TapeInput::RunEnded { run, status }
    }

    #[test]
    fn the_next_cell_is_queued_when_the_last_run_of_a_concurrent_cell_has_ended() {
        let (first, concurrent, last) = (runs(1), cell(2), cell(1));
        let mut tape =
            TapeMachine { running: first.clone(), planned: [concurrent.clone(), last.clone()].into_iter().collect() };
        assert_eq!(tape.handle(ended(first[0], RunStatus::Completed)), Some(TapeEffect::QueueCell(concurrent)));
        let both = runs(2);
        assert_eq!(tape.handle(TapeInput::CellQueued { runs: both.clone() }), None);
        assert_eq!(tape.handle(ended(both[1], RunStatus::Failed)), None, "the other agent is still answering");
        assert_eq!(tape.handle(ended(both[0], RunStatus::Completed)), Some(TapeEffect::QueueCell(last)));
        assert_eq!(
            tape.handle(TapeInput::CellQueued { runs: runs(1) }),
            Some(TapeEffect::Done),
            "the queue has the rest"
        );
    }

    #[test]
    fn a_stop_ends_the_plan_and_other_runs_do_not_matter() {
        for status in [RunStatus::Cancelled, RunStatus::Interrupted] {
            let both = runs(2);
            let mut tape = TapeMachine { running: both.clone(), planned: [cell(1)].into_iter().collect() };
            let before = tape.clone();
            assert_eq!(tape.handle(ended(RunId::generate(), status)), None);
            assert_eq!(tape, before, "a run of another post");
            assert_eq!(tape.handle(ended(both[0], status)), Some(TapeEffect::Done));
        }
    }

    #[test]
    fn stored_names_do_not_change() {
        let (runs, cell) = (runs(1), cell(2));
        let stored = json!({
            "running": runs,
            "planned": [{"message_id": cell.message_id, "agents": cell.agents}],
        });
        let tape = TapeMachine { running: runs, planned: [cell].into_iter().collect() };
        assert_eq!(serde_json::to_value(&tape).unwrap(), stored);
        assert_eq!(serde_json::from_value::<TapeMachine>(stored).unwrap(), tape);
    }
}
