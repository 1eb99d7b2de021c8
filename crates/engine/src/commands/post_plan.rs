//! Which runs answer a new message: the runs to queue with it, and what is planned behind them.

use super::RunRef;
use crate::{
    EngineError,
    tape::{self, CellDraft, PlannedAnswers, PlannedCell, RoomRules, TapeMachine},
    tape_commit::{QueuedCells, hold_of},
};
use domain::{
    event::{NewEvent, TapePlanned},
    ids::{AgentId, MessageId},
    room::{RoomPolicy, TurnOrder, WhenBusy},
};
use store::{
    StoreError, TapeRecord,
    journal::{RowChange, SeqRef, TapeHold},
};

/// A message as the tape sees it.
pub(super) struct TapeQuestion<'a> {
    pub message_id: MessageId,
    pub rules: RoomRules<'a>,
    pub cells: Vec<CellDraft>,
    /// The agents that the message is for; empty if it is for all.
    pub audience: Vec<AgentId>,
    pub when_busy: WhenBusy,
}

/// What a message changes in the queue and the tape.
#[derive(Default)]
pub(super) struct PostPlan {
    /// What everybody sees, if more than one agent answers.
    pub shown: Option<NewEvent>,
    pub queued: QueuedCells,
    pub tape: Option<RowChange>,
}

impl TapeQuestion<'_> {
    /// Plans with the stored tape. The agents of `steered` take the message into their answer in progress.
    pub(super) fn plan(&self, stored: Option<&TapeRecord>, steered: &[RunRef]) -> Result<PostPlan, EngineError> {
        let Self { message_id, rules, audience, .. } = self;
        let seed = tape::seed_of(rules.policy, *message_id);
        let mut cells = self.cells.clone();
        for cell in &mut cells {
            cell.agents.retain(|agent| !steered.iter().any(|run| run.agent_id == *agent));
        }
        cells.retain(|cell| !cell.agents.is_empty());
        if stored.is_none() && queues_all(rules.policy) {
            return Ok(plan_at_once(*message_id, seed, cells));
        }
        let mut machine: TapeMachine = match stored {
            Some(record) => serde_json::from_str(&record.state).map_err(StoreError::from)?,
            None => TapeMachine::default(),
        };
        let replaces = self.when_busy == WhenBusy::Interrupt;
        if machine.is_full() && !replaces && !cells.is_empty() {
            return Err(EngineError::PlanFull { limit: tape::MAX_CELLS });
        }
        let is_first = stored.is_none() && !cells.is_empty();
        let answers = PlannedAnswers { message_id: *message_id, seed, audience: audience.clone(), cells };
        let effects = machine.post(answers, replaces, *rules);
        let planned = machine.cells_of(*message_id);
        let shown = shown(*message_id, seed, &planned);
        let queued = QueuedCells::from_effects(effects, &mut machine);
        let tape = match (machine.is_done(*rules), stored) {
            (true, None) => None,
            (is_done, stored) => {
                let based_on = stored.map_or(0, |record| record.version);
                let released = stored.and_then(|record| record.released_cell).map(SeqRef::Known);
                let state =
                    if is_done { None } else { Some(serde_json::to_string(&machine).map_err(StoreError::from)?) };
                Some(RowChange::PutTape { based_on, state, hold: hold_of(&machine, released) })
            }
        };
        // A message that nobody answers leaves a room without a plan as it is. One that interrupts must not meet a plan
        // that it does not know: its runs would go on.
        let unplanned = RowChange::PutTape { based_on: 0, state: None, hold: TapeHold::Nothing };
        let checks = stored.is_none() && rules.agents.len() > 1 && replaces;
        let tape = tape.filter(|_| is_first || stored.is_some()).or(checks.then_some(unplanned));
        Ok(PostPlan { shown, queued, tape })
    }
}

/// A fixed order is queued with its message: nothing later changes it.
fn queues_all(policy: &RoomPolicy) -> bool {
    policy.kind == TurnOrder::InOrder && !policy.follow_up
}

fn plan_at_once(message_id: MessageId, seed: u32, cells: Vec<CellDraft>) -> PostPlan {
    let cells: Vec<PlannedCell> =
        (1..).zip(cells).map(|(id, draft)| PlannedCell::from_draft(message_id, id, draft)).collect();
    let mut queued = QueuedCells::default();
    for cell in &cells {
        queued.push(cell);
    }
    PostPlan { shown: shown(message_id, seed, &cells), queued, tape: None }
}

fn shown(message_id: MessageId, seed: u32, cells: &[PlannedCell]) -> Option<NewEvent> {
    let agents: usize = cells.iter().map(|cell| cell.agents.len()).sum();
    let cells = cells.iter().map(PlannedCell::shown).collect();
    (agents > 1).then(|| NewEvent::new(TapePlanned::new(message_id, 0, seed, cells)))
}
