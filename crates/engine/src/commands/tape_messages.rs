//! Reorders the messages of a room that wait for their answers. Pure: from the order that a person gives to the cells of
//! queued runs and of the plan.

use crate::{EngineError, tape::PlannedCell};
use domain::{
    ids::{MessageId, RunId},
    position::Seq,
    run::RunStatus,
};
use store::CellRun;

/// A queued run that changes its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MovedRun {
    pub run_id: RunId,
    pub cell: Seq,
}

/// What has to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageOrder {
    pub moved: Vec<MovedRun>,
    /// All planned cells in their new order.
    pub planned: Vec<String>,
}

/// `runs` are the unfinished runs of the room by cell, `planned` is what follows them. The cells of waiting messages exchange
/// their places; those of a message that is being answered stay.
pub(super) fn reordered<'a>(
    messages: &[MessageId],
    runs: &[CellRun],
    planned: impl Iterator<Item = &'a PlannedCell>,
) -> Result<MessageOrder, EngineError> {
    let planned: Vec<&PlannedCell> = planned.collect();
    let has_started =
        |message: MessageId| runs.iter().any(|run| run.message_id == message && run.status != RunStatus::Queued);
    let mut waiting: Vec<MessageId> = Vec::new();
    for message in runs.iter().map(|run| run.message_id).chain(planned.iter().map(|cell| cell.message_id)) {
        if !has_started(message) && !waiting.contains(&message) {
            waiting.push(message);
        }
    }
    let mut asked = messages.to_vec();
    asked.sort_unstable();
    let mut known = waiting.clone();
    known.sort_unstable();
    if asked != known {
        let detail = "these are not the messages that wait in this room now; get its tape and try again";
        return Err(EngineError::Conflict(detail.to_owned()));
    }
    let place = |message: MessageId| messages.iter().position(|other| *other == message);
    let mut queued: Vec<&CellRun> = runs.iter().filter(|run| place(run.message_id).is_some()).collect();
    let mut cells: Vec<Seq> = queued.iter().map(|run| run.cell).collect();
    cells.dedup();
    // Stable: the cells of one message keep their order.
    queued.sort_by_key(|run| (place(run.message_id), run.cell));
    let mut moved = Vec::new();
    let (mut free, mut last) = (cells.into_iter(), None);
    for run in queued {
        // The runs of a cell stay together.
        let (_, cell) = match last {
            Some((before, cell)) if before == run.cell => (before, cell),
            _ => *last.insert((run.cell, free.next().unwrap_or(run.cell))),
        };
        if cell != run.cell {
            moved.push(MovedRun { run_id: run.run_id, cell });
        }
    }
    let mut planned = planned;
    // `None` comes first: what belongs to the message that is being answered.
    planned.sort_by_key(|cell| place(cell.message_id));
    Ok(MessageOrder { moved, planned: planned.into_iter().map(|cell| cell.shown().id).collect() })
}

#[cfg(test)]
mod tests {
    use super::{MovedRun, reordered};
    use crate::tape::{CellDraft, PlannedCell};
    use domain::{
        ids::{AgentId, MessageId, RunId},
        run::RunStatus,
        tape::{CellKind, CellReason},
    };
    use store::CellRun;

    fn run(message_id: MessageId, cell: u64, status: RunStatus) -> CellRun {
        CellRun { run_id: RunId::generate(), agent_id: AgentId::generate(), message_id, cell, status }
    }

    fn planned(message_id: MessageId, id: u64) -> PlannedCell {
        let draft = CellDraft {
            kind: CellKind::Sequential,
            agents: vec![AgentId::generate()],
            reason: CellReason::Priority,
            round: 0,
        };
        PlannedCell::from_draft(message_id, id, draft)
    }

    fn ids<const N: usize>() -> [MessageId; N] {
        std::array::from_fn(|_| MessageId::generate())
    }

    #[test]
    fn waiting_messages_exchange_their_cells() {
        let [now, one, two, three] = ids();
        let runs = [
            run(now, 3, RunStatus::Running),
            run(one, 7, RunStatus::Queued),
            run(two, 9, RunStatus::Queued),
            run(three, 12, RunStatus::Queued),
        ];
        let order = reordered(&[three, one, two], &runs, std::iter::empty()).unwrap();
        let moved = |at: usize, cell: u64| MovedRun { run_id: runs[at].run_id, cell };
        assert_eq!(order.moved, [moved(3, 7), moved(1, 9), moved(2, 12)]);
        let same = reordered(&[one, two, three], &runs, std::iter::empty()).unwrap();
        assert_eq!(same.moved, [], "nothing moves without a reason");
    }

    #[test]
    fn several_agents_of_a_message_stay_together_and_in_their_order() {
        let [one, two] = ids();
        let runs = [
            run(one, 5, RunStatus::Queued),
            run(one, 5, RunStatus::Queued),
            run(one, 7, RunStatus::Queued),
            run(two, 9, RunStatus::Queued),
        ];
        let order = reordered(&[two, one], &runs, std::iter::empty()).unwrap();
        let cells: Vec<u64> = runs
            .iter()
            .map(|run| order.moved.iter().find(|moved| moved.run_id == run.run_id).map_or(run.cell, |moved| moved.cell))
            .collect();
        assert_eq!(cells, [7, 7, 9, 5]);
    }

    #[test]
    fn planned_cells_follow_their_messages_behind_the_answer_in_progress() {
        let [now, one, two] = ids();
        let runs = [run(now, 3, RunStatus::Running)];
        let plan = [planned(now, 1), planned(one, 2), planned(one, 3), planned(two, 4)];
        let order = reordered(&[two, one], &runs, plan.iter()).unwrap();
        let names: Vec<String> = [0, 3, 1, 2].map(|at| plan[at].shown().id).into();
        assert_eq!((order.planned, order.moved), (names, Vec::new()));
    }

    #[test]
    fn a_message_that_has_started_or_is_unknown_is_a_conflict() {
        let [now, one, other] = ids();
        let runs = [run(now, 3, RunStatus::Running), run(one, 7, RunStatus::Queued)];
        for wrong in [vec![now, one], vec![], vec![other], vec![one, one]] {
            assert!(reordered(&wrong, &runs, std::iter::empty()).is_err(), "{wrong:?}");
        }
    }
}
