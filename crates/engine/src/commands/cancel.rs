//! Cancels runs: one ([`Engine::cancel_run`]) or all of a room ([`Engine::cancel_room`]). Returns when the work has
//! really stopped, with a receipt of what that took.

use crate::{Engine, EngineError, follow::EventUpdate, run::RunStop};
use domain::{
    actor::Actor,
    ids::{RoomId, RunId},
    owner::Owner,
    permission::Permission,
    position::Position,
    run::{Receipt, Run, RunStatus},
};
use serde::Serialize;
use std::{collections::HashSet, time::Duration};
use store::{StoreError, journal::StopRequest};
use tokio::time::Instant;

/// A run that has ended.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Stopped)]
pub struct StoppedRun {
    pub id: RunId,
    pub status: RunStatus,
    /// What was stopped: of this run, and of the runs below it that were stopped with it.
    pub receipt: Receipt,
    /// How many runs below this one were stopped with it.
    pub stopped_below: usize,
}

/// The runs of a room that were cancelled.
#[derive(Debug, Clone)]
pub struct StoppedRoom {
    /// How many runs have ended.
    pub count: usize,
    /// The first of them.
    pub runs: Vec<StoppedRun>,
}

/// How many runs of a room are described when all are cancelled. A queue may have thousands.
const DESCRIBED_RUNS: usize = 100;

/// Longer than a provider's grace period: a run that has not stopped by then is an error.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);

impl Engine {
    /// Cancels a run. For a run that has already ended, returns how it ended. The operator can cancel the runs of all
    /// workspaces.
    pub async fn cancel_run(&self, actor: &Actor, run: RunId) -> Result<StoppedRun, EngineError> {
        let own = actor.require(Permission::Post)?;
        let (owner, run) = match self.store().run(own, run).await {
            Err(StoreError::NotFound) if actor.may(Permission::Operate) => {
                let owner = self.store().workspace_of_run(run).await?;
                let run = self.store().run(&owner, run).await?;
                (owner, run)
            }
            found => (own.clone(), found?),
        };
        // Also for a run that has ended: those below it may not have heard of it yet.
        let all = self.request_cancel(actor, &[run.id]).await?;
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let left = || deadline.saturating_duration_since(Instant::now());
        let ended = self.wait_for_end_in(&owner, run.id, left()).await?;
        let mut below = Vec::new();
        for id in all.into_iter().filter(|id| *id != run.id) {
            below.push(self.wait_for_end_in(&owner, id, left()).await?);
        }
        Ok(stopped_run(ended, below))
    }

    /// Cancels all running and queued runs of a room. Returns when all of them have ended.
    pub async fn cancel_room(&self, actor: &Actor, room: RoomId) -> Result<StoppedRoom, EngineError> {
        let owner = actor.require(Permission::Post)?;
        let room = self.store().room(owner, room).await?;
        self.clear_tape(actor, room.id).await?;
        let runs = self.store().unfinished_runs(owner, room.id).await?;
        let all = self.request_cancel(actor, &runs).await?;
        // Those in the queue have ended by now. The others are few: those that a worker holds, and the runs below them.
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let asked: HashSet<RunId> = runs.iter().copied().collect();
        let left = self.store().unfinished_runs(owner, room.id).await?.into_iter().filter(|run| asked.contains(run));
        for run in left.chain(all.into_iter().filter(|run| !asked.contains(run))) {
            self.wait_for_end(actor, run, deadline.saturating_duration_since(Instant::now())).await?;
        }
        let mut described = Vec::new();
        for run in runs.iter().take(DESCRIBED_RUNS) {
            described.push(stopped_run(self.store().run(owner, *run).await?, Vec::new()));
        }
        Ok(StoppedRoom { count: runs.len(), runs: described })
    }

    /// Returns the unfinished runs that are asked to stop: the given ones and those below them.
    pub(crate) async fn request_cancel(&self, actor: &Actor, runs: &[RunId]) -> Result<Vec<RunId>, EngineError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let all = self.store().request_stop(actor, runs, StopRequest::Cancel).await?;
        for run in &all {
            self.active_runs().stop(*run, RunStop::Cancel);
        }
        self.end_stopped_in_queue().await?;
        Ok(all)
    }

    /// Waits until the run has its terminal event.
    pub async fn wait_for_end(&self, actor: &Actor, run: RunId, limit: Duration) -> Result<Run, EngineError> {
        self.wait_for_end_in(actor.require(Permission::Read)?, run, limit).await
    }

    async fn wait_for_end_in(&self, owner: &Owner, run: RunId, limit: Duration) -> Result<Run, EngineError> {
        let deadline = Instant::now() + limit;
        let room = self.store().run(owner, run).await?.room_id;
        // Registers interest first, then reads: an end in between is not missed.
        let mut events = self.queries().room_events(owner, room, &Position::START).await?.from_now_on().of_run(run);
        let found = self.store().run(owner, run).await?;
        if found.status.is_terminal() {
            return Ok(found);
        }
        loop {
            match events.next_before(deadline).await? {
                EventUpdate::RunEnded => return Ok(self.store().run(owner, run).await?),
                EventUpdate::CaughtUp => {
                    let status = self.store().run(owner, run).await?.status;
                    let limit = limit.as_secs();
                    let why = format!("the run has not ended within {limit} s; its status is {status}");
                    return Err(EngineError::Unavailable(why));
                }
                EventUpdate::Events(_) | EventUpdate::Large { .. } | EventUpdate::Reset { .. } => {}
            }
        }
    }
}

/// `below` are the runs that were stopped with it.
fn stopped_run(run: Run, below: Vec<Run>) -> StoppedRun {
    let stopped_below = below.len();
    let receipt = Receipt::of_all([run.receipt].into_iter().chain(below.into_iter().map(|run| run.receipt)).flatten());
    StoppedRun { id: run.id, status: run.status, receipt, stopped_below }
}
