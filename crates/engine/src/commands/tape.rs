//! What people do to the tape of a room: look at it, pause it, let it make a step, skip, insert and reorder cells. A command
//! changes the stored plan in one commit, with the runs that it queues, so it works on every server.

use super::{
    RunRef,
    rooms::audit_detail,
    tape_messages::{self, MovedRun},
};
use crate::{
    Engine, EngineError,
    tape::{PlannedCell, RoomRules, TapeEffect, TapeMachine, TapeRefusal},
    tape_commit::{QueuedCells, hold_of},
};
use domain::{
    actor::Actor,
    event::{NewEvent, TapePlanned},
    ids::{AgentId, MessageId, RoomId},
    owner::Owner,
    permission::Permission,
    room::RoomPolicy,
    run::RunStatus,
    tape::{CellKind, CellReason, TapeCell, TapeChange},
    time::Timestamp,
};
use serde::Serialize;
use store::{
    CellRun, StoreError, TapeRecord,
    journal::{Commit, Guard, RowChange, SeqRef},
};

/// The plan of a room: what runs, and what follows.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Tape)]
pub struct TapeView {
    pub state: TapeState,
    /// In the order in which they start.
    pub cells: Vec<TapeCellView>,
    /// The number of the current follow-up round; 0 for the answers to the message.
    pub round: u32,
    /// The runs that the current message has caused so far; 0 if nothing is planned.
    pub messages: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TapeState {
    Idle,
    Running,
    /// Nothing starts until somebody resumes the room.
    Paused,
}

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = TapeCellState)]
pub struct TapeCellView {
    #[serde(flatten)]
    pub cell: TapeCell,
    pub status: CellStatus,
    /// The message that its agents answer.
    pub message_id: MessageId,
    /// The runs of a cell that is queued or running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    Running,
    Queued,
    /// Can be skipped and moved.
    Planned,
}

/// A command to the tape.
#[derive(Debug, Clone)]
pub enum TapeCommand {
    Pause,
    Resume,
    Step,
    /// Without a name the next planned cell, or the running one if nothing else is planned.
    Skip {
        cell: Option<String>,
    },
    Insert {
        agent: AgentId,
        at: Option<usize>,
    },
    Reorder {
        cells: Vec<String>,
    },
    /// All waiting messages, in their new order.
    ReorderMessages {
        messages: Vec<MessageId>,
    },
}

impl TapeCommand {
    fn change(&self) -> TapeChange {
        match self {
            Self::Pause => TapeChange::Paused,
            Self::Resume => TapeChange::Resumed,
            Self::Step => TapeChange::Stepped,
            Self::Skip { .. } => TapeChange::Skipped,
            Self::Insert { .. } => TapeChange::Inserted,
            Self::Reorder { .. } | Self::ReorderMessages { .. } => TapeChange::Reordered,
        }
    }
}

/// What a command does besides changing the plan.
#[derive(Default)]
struct CommandResult {
    effects: Vec<TapeEffect>,
    /// Runs that the command stops.
    stopped: Vec<domain::ids::RunId>,
    /// A cell of the queue that a paused room may start.
    released: Option<SeqRef>,
    /// Queued runs that change their cell.
    moved: Vec<MovedRun>,
    /// The waiting messages in their new order.
    messages: Vec<MessageId>,
}

impl Engine {
    pub async fn tape(&self, actor: &Actor, room: RoomId) -> Result<TapeView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        self.store().head(owner, room).await?;
        let (stored, runs) = self.store().tape_with_runs(room).await?;
        Ok(view(&machine_of(stored.as_ref())?, &runs))
    }

    /// Carries out a command. Returns the tape after it.
    pub async fn command_tape(
        &self,
        actor: &Actor,
        room: RoomId,
        command: TapeCommand,
    ) -> Result<TapeView, EngineError> {
        let owner = actor.require(Permission::Post)?;
        loop {
            let (found, planned) =
                tokio::join!(self.store().room_with_agents(owner, room), self.store().tape_with_runs(room));
            let ((policy, agents), (stored, runs)) = (found?, planned?);
            let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
            let rules = RoomRules { policy: &policy, agents: &ids, now: Timestamp::now() };
            let mut machine = machine_of(stored.as_ref())?;
            let result = carry_out(&mut machine, &command, &runs, rules)?;
            let stopped = result.stopped.clone();
            let change = TapeChanges { owner, actor, room, change: command.change(), rules, stored: stored.as_ref() };
            match self.store().commit(change.commit(&mut machine, result)?).await {
                // An end, a start, a message or another command came first: decide again.
                Err(StoreError::TapeChanged | StoreError::Fenced) => {}
                done => {
                    done?;
                    if !stopped.is_empty() {
                        self.request_cancel(actor, &stopped).await?;
                    }
                    // The room may have queued runs that were held, and another server may be the one with a free slot.
                    self.store().notify_queue();
                    return self.tape(actor, room).await;
                }
            }
        }
    }

    /// Drops what is planned in a room, when everything in it is cancelled.
    pub(super) async fn clear_tape(&self, actor: &Actor, room: RoomId) -> Result<(), EngineError> {
        while let Some(stored) = self.store().tape(room).await? {
            let mut machine = machine_of(Some(&stored))?;
            if machine.planned().next().is_none() && machine.progress().is_none() {
                return Ok(());
            }
            machine.clear();
            let (policy, owner) = (RoomPolicy::default(), &actor.workspace);
            let rules = RoomRules { policy: &policy, agents: &[], now: Timestamp::now() };
            let change = TapeChanges { owner, actor, room, change: TapeChange::Cleared, rules, stored: Some(&stored) };
            match self.store().commit(change.commit(&mut machine, CommandResult::default())?).await {
                Err(StoreError::TapeChanged) => {}
                done => return done.map(drop).map_err(EngineError::from),
            }
        }
        Ok(())
    }
}

/// A change of the stored plan by a person.
struct TapeChanges<'a> {
    owner: &'a Owner,
    actor: &'a Actor,
    room: RoomId,
    change: TapeChange,
    rules: RoomRules<'a>,
    stored: Option<&'a TapeRecord>,
}

impl TapeChanges<'_> {
    fn commit(&self, machine: &mut TapeMachine, result: CommandResult) -> Result<Commit, StoreError> {
        let CommandResult { effects, released, moved, messages, .. } = result;
        let queued = QueuedCells::from_effects(effects, machine);
        let plan = machine.planned().map(PlannedCell::shown).collect();
        let mut events = vec![NewEvent::new(TapePlanned { messages, ..TapePlanned::changed(self.change, plan) })];
        let first = events.len();
        events.extend(queued.events().iter().cloned());
        let released = queued
            .first_cell(first)
            .or(released)
            .or_else(|| self.stored.and_then(|stored| stored.released_cell).map(SeqRef::Known));
        let hold = match (machine.is_paused(), released) {
            // A step may release runs that were queued before the room had a plan.
            (true, Some(cell)) if self.change == TapeChange::Stepped => store::journal::TapeHold::AllBut(cell),
            _ => hold_of(machine, released),
        };
        let state = if machine.is_done(self.rules) { None } else { Some(serde_json::to_string(machine)?) };
        let mut changes = vec![
            RowChange::PutTape { based_on: self.stored.map_or(0, |stored| stored.version), state, hold },
            audit_detail(self.actor, self.room, serde_json::json!({"tape": self.change.as_str()})),
        ];
        changes.extend(moved.into_iter().map(|MovedRun { run_id, cell }| RowChange::MoveRun { run_id, cell }));
        changes.extend(queued.changes(self.owner, None, first));
        Ok(Commit { room_id: self.room, guard: Guard::None, events, changes })
    }
}

fn carry_out(
    machine: &mut TapeMachine,
    command: &TapeCommand,
    runs: &[CellRun],
    rules: RoomRules<'_>,
) -> Result<CommandResult, EngineError> {
    let mut result = CommandResult::default();
    match command {
        TapeCommand::Pause => machine.pause(),
        TapeCommand::Resume => result.effects = machine.resume(rules),
        TapeCommand::Step => {
            // What was queued before the pause comes first.
            let waiting = runs.iter().find(|run| run.status == RunStatus::Queued).filter(|_| machine.is_paused());
            match waiting {
                Some(run) => result.released = Some(SeqRef::Known(run.cell)),
                None => result.effects = machine.step(rules)?,
            }
        }
        TapeCommand::Skip { cell } => {
            let may_be_running = cell.is_some() || machine.planned().next().is_none();
            let running = if may_be_running { machine.skip_current(cell.as_deref()) } else { None };
            match running {
                Some(runs) => result.stopped = runs,
                None => machine.skip(cell.as_deref())?,
            }
        }
        TapeCommand::Insert { agent, at } => {
            if !rules.agents.contains(agent) {
                let detail = format!("agent {agent} is not in this room");
                return Err(EngineError::refused("/agent_id", detail));
            }
            let message = message_of(machine).ok_or_else(|| {
                EngineError::Conflict("nothing is planned in this room; use POST /api/rooms/{id}/runs".to_owned())
            })?;
            result.effects = machine.insert(message, *agent, *at, rules)?;
        }
        TapeCommand::Reorder { cells } => machine.reorder(cells)?,
        TapeCommand::ReorderMessages { messages } => {
            let order = tape_messages::reordered(messages, runs, machine.planned())?;
            machine.reorder(&order.planned)?;
            (result.moved, result.messages) = (order.moved, messages.clone());
        }
    }
    Ok(result)
}

/// The message that is being answered.
fn message_of(machine: &TapeMachine) -> Option<MessageId> {
    let cell = machine.current().or_else(|| machine.planned().next());
    machine.progress().map(|progress| progress.message_id).or_else(|| cell.map(|cell| cell.message_id))
}

fn machine_of(stored: Option<&TapeRecord>) -> Result<TapeMachine, StoreError> {
    Ok(match stored {
        Some(record) => serde_json::from_str(&record.state)?,
        None => TapeMachine::default(),
    })
}

impl From<TapeRefusal> for EngineError {
    fn from(refusal: TapeRefusal) -> Self {
        match refusal {
            TapeRefusal::NotAllCells => Self::refused("/cells", refusal.to_string()),
            TapeRefusal::NoSuchPosition(_) => Self::refused("/at", refusal.to_string()),
            _ => Self::Conflict(refusal.to_string()),
        }
    }
}

fn view(machine: &TapeMachine, runs: &[CellRun]) -> TapeView {
    let mut cells: Vec<TapeCellView> = Vec::new();
    let mut last = None;
    for run in runs {
        let run_ref = RunRef { id: run.run_id, agent_id: run.agent_id };
        if last != Some(run.cell) {
            last = Some(run.cell);
            let current = machine.current().filter(|_| machine.running().contains(&run.run_id));
            let cell = current.map_or_else(|| queued_cell(run), |cell| TapeCell { agents: Vec::new(), ..cell.shown() });
            let (status, message_id) = (CellStatus::Queued, run.message_id);
            cells.push(TapeCellView { cell, status, message_id, runs: Vec::new() });
        }
        if let Some(shown) = cells.last_mut() {
            shown.cell.agents.push(run.agent_id);
            shown.runs.push(run_ref);
            if run.status != RunStatus::Queued {
                shown.status = CellStatus::Running;
            }
        }
    }
    let state = match (machine.is_paused(), cells.is_empty()) {
        (true, _) => TapeState::Paused,
        (false, true) => TapeState::Idle,
        (false, false) => TapeState::Running,
    };
    cells.extend(machine.planned().map(|cell| TapeCellView {
        cell: cell.shown(),
        status: CellStatus::Planned,
        message_id: cell.message_id,
        runs: Vec::new(),
    }));
    let (round, messages) = machine.progress().map_or((0, 0), |progress| (progress.round, progress.runs));
    TapeView { state, cells, round, messages }
}

/// A cell that was queued without a plan.
fn queued_cell(run: &CellRun) -> TapeCell {
    let (kind, reason) = (CellKind::Sequential, CellReason::JoiningOrder);
    TapeCell { id: format!("q{}", run.cell), kind, agents: Vec::new(), reason, round: 0 }
}
