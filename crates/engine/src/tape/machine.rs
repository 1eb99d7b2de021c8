//! The state machine of a room's tape: the runs of the current cell, the cells behind it, and whether it is paused. Its
//! state is a row that changes in the commit that ends a run, or that carries out a person's command; a room with nothing
//! planned behind its queued runs has none.

use super::{
    planner::{CellDraft, RoomRules, may_have_rounds, next_round},
    progress::Progress,
};
use domain::{
    ids::{AgentId, MessageId, RunId},
    room::TurnOrder,
    run::RunStatus,
    tape::{CellKind, CellReason, TapeCell},
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
    /// The cell that was queued last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<PlannedCell>,
    /// The message that is being answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// The messages that are answered after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Progress>,
    /// A person has paused the room: nothing starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    /// A person has skipped the current cell: its cancelled runs do not end the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skips_current: bool,
    /// The number of the last cell.
    #[serde(default)]
    cells: u64,
}

/// Agents that will answer a message side by side. An agent is in a cell once: its provider session takes one turn at a
/// time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedCell {
    pub message_id: MessageId,
    pub agents: Vec<AgentId>,
    #[serde(default)]
    pub id: u64,
    #[serde(default)]
    pub kind: CellKind,
    #[serde(default)]
    pub reason: CellReason,
    #[serde(default)]
    pub round: u32,
}

impl PlannedCell {
    pub(crate) fn from_draft(message_id: MessageId, id: u64, draft: CellDraft) -> Self {
        let CellDraft { kind, agents, reason, round } = draft;
        Self { message_id, agents, id, kind, reason, round }
    }

    /// The cell as people see it.
    pub(crate) fn shown(&self) -> TapeCell {
        let Self { agents, kind, reason, round, .. } = self.clone();
        TapeCell { id: cell_name(self.id), kind, agents, reason, round }
    }
}

/// Whether a cell of a later round was planned because agents react to each other.
fn is_reaction(reason: CellReason) -> bool {
    !matches!(reason, CellReason::Debate | CellReason::Judge | CellReason::FinalResponse | CellReason::Inserted)
}

fn cell_name(id: u64) -> String {
    format!("p{id}")
}

/// A message with the answers that are planned for it.
#[derive(Debug, Clone)]
pub(crate) struct PlannedAnswers {
    pub message_id: MessageId,
    pub seed: u32,
    /// The agents that the message is for; empty if it is for all.
    pub audience: Vec<AgentId>,
    pub cells: Vec<CellDraft>,
}

/// How a turn of an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedTurn {
    pub run: RunId,
    pub agent: AgentId,
    pub status: RunStatus,
    /// Whether the agent has said something; false if it skipped or failed.
    pub has_spoken: bool,
    /// The agents that it has named.
    pub named: Vec<AgentId>,
    /// Whether the agent asked to end the round.
    pub ends_round: bool,
    /// Whether a budget has stopped it. What is planned goes on, because another agent may have a budget of its own.
    pub out_of_budget: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TapeEffect {
    /// Queue a run of each agent of the cell, and report the runs with [`TapeMachine::cell_queued`].
    QueueCell(PlannedCell),
    /// Further cells were planned.
    Planned { message_id: MessageId, seed: u32, round: u32, cells: Vec<TapeCell> },
}

/// Why a command to the tape is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TapeRefusal {
    #[error("the room is not paused; pause it first")]
    NotPaused,
    #[error("nothing is planned in this room")]
    NothingPlanned,
    #[error("cell {0} is not planned any more; read the tape again")]
    NoSuchCell(String),
    #[error("cells: list every planned cell exactly once; read the tape again")]
    NotAllCells,
    #[error("at: a position from 0 to {0}")]
    NoSuchPosition(usize),
    #[error("the plan has {0} cells, the most it may have")]
    TooManyCells(usize),
}

/// How many cells may be planned when a person adds to them. More than any policy plans at once.
pub(crate) const MAX_CELLS: usize = 1000;

impl TapeMachine {
    /// Plans the answers to a message: instead of everything planned, or behind it. Follow-up rounds end in any case,
    /// because a person has spoken.
    pub(crate) fn post(&mut self, answers: PlannedAnswers, replaces: bool, rules: RoomRules<'_>) -> Vec<TapeEffect> {
        let PlannedAnswers { message_id, seed, audience, cells } = answers;
        if replaces {
            self.clear();
            self.running.clear();
            (self.current, self.skips_current) = (None, false);
        }
        self.planned.retain(|cell| cell.round == 0 || !is_reaction(cell.reason));
        let mut effects = Vec::new();
        if cells.is_empty() {
            // Nobody answers it, but nobody goes on either.
            self.progress.iter_mut().for_each(|progress| progress.is_over = true);
        } else {
            let cells: Vec<PlannedCell> = cells.into_iter().map(|draft| self.number(message_id, draft)).collect();
            self.planned.extend(cells);
            self.waiting.push(Progress::new(message_id, seed, audience, rules.now));
        }
        self.advance(rules, &mut effects);
        effects
    }

    pub(crate) fn run_ended(&mut self, turn: &EndedTurn, rules: RoomRules<'_>) -> Vec<TapeEffect> {
        let before = self.running.len();
        self.running.retain(|running| *running != turn.run);
        let mut effects = Vec::new();
        if self.running.len() == before {
            // A run that was queued by a post, before or beside the plan.
            return effects;
        }
        if matches!(turn.status, RunStatus::Cancelled | RunStatus::Interrupted) && !self.skips_current {
            // A person stopped the cell, or a server did: the rest of the plan is not continued without them.
            self.clear();
        }
        self.listen(turn, rules);
        if self.running.is_empty() {
            self.skips_current = false;
            self.current = None;
            self.advance(rules, &mut effects);
        }
        effects
    }

    /// Records what the next rounds depend on.
    fn listen(&mut self, turn: &EndedTurn, rules: RoomRules<'_>) {
        let Some(progress) = &mut self.progress else { return };
        progress.is_over |= turn.out_of_budget;
        if turn.ends_round {
            progress.is_over = true;
            let (message, round) = (progress.message_id, progress.round);
            self.planned.retain(|cell| {
                cell.message_id != message || cell.round < round || cell.reason == CellReason::FinalResponse
            });
        }
        let is_moderated = rules.policy.kind == TurnOrder::Moderator;
        if turn.has_spoken && rules.member(turn.agent).is_heard() {
            progress.was_heard = true;
            if !progress.heard.contains(&turn.agent) {
                progress.heard.push(turn.agent);
            }
            if !is_moderated || rules.moderator() == Some(turn.agent) {
                for named in turn.named.iter().filter(|named| **named != turn.agent) {
                    if !progress.named.contains(named) {
                        progress.named.push(*named);
                    }
                }
            }
        }
    }

    /// The runs of the cell that the machine asked for.
    pub(crate) fn cell_queued(&mut self, runs: Vec<RunId>) {
        self.running = runs;
    }

    /// Returns whether there is nothing to store: the queue has the rest.
    pub(crate) fn is_done(&self, rules: RoomRules<'_>) -> bool {
        let may_go_on = self.progress.as_ref().is_some_and(|progress| !progress.is_over)
            && may_have_rounds(rules)
            && !self.running.is_empty();
        self.planned.is_empty() && !self.paused && !may_go_on
    }

    fn number(&mut self, message_id: MessageId, draft: CellDraft) -> PlannedCell {
        self.cells += 1;
        PlannedCell::from_draft(message_id, self.cells, draft)
    }

    /// Queues the next cell, unless one is running or the room is paused.
    fn advance(&mut self, rules: RoomRules<'_>, effects: &mut Vec<TapeEffect>) {
        if !self.paused && self.running.is_empty() {
            self.queue_next(rules, effects);
        }
    }

    fn queue_next(&mut self, rules: RoomRules<'_>, effects: &mut Vec<TapeEffect>) {
        loop {
            while let Some(mut cell) = self.planned.pop_front() {
                // Agents may have left since the plan was made.
                cell.agents.retain(|agent| rules.contains(*agent));
                if let Some(at) = self.waiting.iter().position(|waiting| waiting.message_id == cell.message_id) {
                    self.progress = Some(self.waiting.remove(at));
                }
                let is_due = cell.kind != CellKind::Interrupt
                    || self.progress.as_ref().is_none_or(|progress| progress.was_heard);
                if cell.agents.is_empty() || !is_due {
                    continue;
                }
                if let Some(progress) = &mut self.progress {
                    progress.was_heard = false;
                    progress.had_last_words |= cell.reason == CellReason::FinalResponse;
                    progress.runs += u32::try_from(cell.agents.len()).unwrap_or(u32::MAX);
                }
                self.current = Some(cell.clone());
                return effects.push(TapeEffect::QueueCell(cell));
            }
            let Some(progress) = &mut self.progress else { return };
            let drafts = next_round(rules, progress);
            if drafts.is_empty() {
                return;
            }
            let (message_id, seed, round) = (progress.message_id, progress.seed, progress.round);
            let cells: Vec<PlannedCell> = drafts.into_iter().map(|draft| self.number(message_id, draft)).collect();
            let shown = cells.iter().map(PlannedCell::shown).collect();
            effects.push(TapeEffect::Planned { message_id, seed, round, cells: shown });
            self.planned.extend(cells);
        }
    }
}

/// The commands of people.
impl TapeMachine {
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(crate) fn running(&self) -> &[RunId] {
        &self.running
    }

    pub(crate) fn current(&self) -> Option<&PlannedCell> {
        self.current.as_ref()
    }

    pub(crate) fn planned(&self) -> impl Iterator<Item = &PlannedCell> {
        self.planned.iter()
    }

    /// The cells for a message, the current one included.
    pub(crate) fn cells_of(&self, message: MessageId) -> Vec<PlannedCell> {
        let all = self.current.iter().chain(&self.planned);
        all.filter(|cell| cell.message_id == message).cloned().collect()
    }

    /// Returns whether the plan is too long for another message.
    pub(crate) fn is_full(&self) -> bool {
        self.planned.len() >= MAX_CELLS
    }

    pub(crate) fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// Stops the plan behind what is running.
    pub(crate) fn clear(&mut self) {
        self.planned.clear();
        self.waiting.clear();
        self.progress = None;
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    pub(crate) fn resume(&mut self, rules: RoomRules<'_>) -> Vec<TapeEffect> {
        self.paused = false;
        let mut effects = Vec::new();
        self.advance(rules, &mut effects);
        effects
    }

    /// Starts the next cell of a paused room.
    pub(crate) fn step(&mut self, rules: RoomRules<'_>) -> Result<Vec<TapeEffect>, TapeRefusal> {
        if !self.paused {
            return Err(TapeRefusal::NotPaused);
        }
        let mut effects = Vec::new();
        if self.running.is_empty() {
            self.queue_next(rules, &mut effects);
        }
        Ok(effects)
    }

    /// Leaves a planned cell out; without a name the next one.
    pub(crate) fn skip(&mut self, cell: Option<&str>) -> Result<(), TapeRefusal> {
        let at = match cell {
            None => 0,
            Some(name) => self.position(name).ok_or_else(|| TapeRefusal::NoSuchCell(name.to_owned()))?,
        };
        self.planned.remove(at).map(drop).ok_or(TapeRefusal::NothingPlanned)
    }

    /// Goes on with the plan when the current cell is cancelled. Returns its runs, if `cell` is it.
    pub(crate) fn skip_current(&mut self, cell: Option<&str>) -> Option<Vec<RunId>> {
        let current = self.current.as_ref().filter(|_| !self.running.is_empty())?;
        if cell.is_some_and(|name| name != cell_name(current.id)) {
            return None;
        }
        self.skips_current = true;
        Some(self.running.clone())
    }

    /// Inserts a turn of an agent before the planned cell at a position; by default as the next.
    pub(crate) fn insert(
        &mut self,
        message_id: MessageId,
        agent: AgentId,
        at: Option<usize>,
        rules: RoomRules<'_>,
    ) -> Result<Vec<TapeEffect>, TapeRefusal> {
        let (at, most) = (at.unwrap_or(0), self.planned.len());
        if self.is_full() {
            return Err(TapeRefusal::TooManyCells(MAX_CELLS));
        }
        if at > most {
            return Err(TapeRefusal::NoSuchPosition(most));
        }
        let round = self.progress.as_ref().map_or(0, |progress| progress.round);
        let (kind, reason) = (CellKind::Sequential, CellReason::Inserted);
        let cell = self.number(message_id, CellDraft { kind, agents: vec![agent], reason, round });
        self.planned.insert(at, cell);
        let mut effects = Vec::new();
        self.advance(rules, &mut effects);
        Ok(effects)
    }

    /// Puts the planned cells in another order; all of them have to be named.
    pub(crate) fn reorder(&mut self, cells: &[String]) -> Result<(), TapeRefusal> {
        let mut order = VecDeque::with_capacity(cells.len());
        for name in cells {
            let at = self.position(name).ok_or_else(|| TapeRefusal::NoSuchCell(name.clone()))?;
            order.push_back(self.planned[at].clone());
        }
        let mut ids: Vec<u64> = order.iter().map(|cell| cell.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() != self.planned.len() || order.len() != self.planned.len() {
            return Err(TapeRefusal::NotAllCells);
        }
        self.planned = order;
        Ok(())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.planned.iter().position(|cell| cell_name(cell.id) == name)
    }
}
