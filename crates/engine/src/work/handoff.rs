//! The fast path from a post to the worker of the same server. If a worker slot is free and the room is idle, the run
//! is claimed and started in the commit that queues it, which saves two commits before the first output.

use super::slots::{TakenSlot, WorkerSlots};
use crate::{
    Engine, EngineConfig,
    run::{ClaimedRun, Prefetch, StoredStart, start_events},
};
use domain::{
    agent::Agent,
    event::Interruption,
    ids::{MessageId, RunId},
    message::Message,
    owner::Owner,
    run::{Run, RunStatus},
    usage::Usage,
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::{
    StoreError,
    journal::{ClaimOffer, Commit, Committed},
    queue::Claim,
};
use tokio::sync::mpsc;

/// The worker of this server, if it has one.
#[derive(Default)]
pub(crate) struct Handoff(Mutex<Option<Arc<WorkerHandle>>>);

struct WorkerHandle {
    holder: String,
    lease: Duration,
    slots: Arc<WorkerSlots>,
    dispatches: mpsc::Sender<(ClaimedRun, WorkerSlot)>,
    /// Runs claimed by this worker that are not yet registered in `ActiveRuns`.
    pending: Arc<Mutex<HashSet<RunId>>>,
}

/// A worker slot that was reserved for a run before it was queued; it travels with the run to the worker.
pub(super) struct WorkerSlot {
    /// Held until the run has ended.
    pub permit: TakenSlot,
    /// Held until the run is registered in `ActiveRuns`.
    pub guard: PendingRunGuard,
}

/// Marks a run as pending while it lives, so that recovery does not take it for a run without a driver.
pub(super) struct PendingRunGuard {
    run: RunId,
    pending: Arc<Mutex<HashSet<RunId>>>,
}

impl Drop for PendingRunGuard {
    fn drop(&mut self) {
        lock(&self.pending).remove(&self.run);
    }
}

/// The worker's end of the handoff.
pub(super) struct WorkerInbox {
    pub slots: Arc<WorkerSlots>,
    pub dispatches: mpsc::Receiver<(ClaimedRun, WorkerSlot)>,
    pending: Arc<Mutex<HashSet<RunId>>>,
}

impl WorkerInbox {
    pub(super) fn is_pending(&self, run: RunId) -> bool {
        lock(&self.pending).contains(&run)
    }
}

impl Handoff {
    /// Registers a worker; it replaces an earlier one.
    pub(super) fn register_worker(&self, holder: &str, config: &EngineConfig) -> WorkerInbox {
        let slots = WorkerSlots::new(config.concurrency, config.concurrency_per_workspace);
        let pending = Arc::default();
        // There cannot be more dispatches than slots.
        let (sender, dispatches) = mpsc::channel(config.concurrency.max(1));
        let worker = WorkerHandle {
            holder: holder.to_owned(),
            lease: config.lease,
            slots: Arc::clone(&slots),
            dispatches: sender,
            pending: Arc::clone(&pending),
        };
        *lock(&self.0) = Some(Arc::new(worker));
        WorkerInbox { slots, dispatches, pending }
    }

    /// Reserves a slot for a run that is about to be queued at the event `queued_event` of its commit; `message` is the
    /// message that it answers and the index of its event. Returns `None` if there is no worker or no slot for this
    /// workspace; the run then waits in the queue.
    pub(crate) fn preclaim(
        &self,
        owner: &Owner,
        run: RunId,
        agent: &Agent,
        message: (&Message, usize),
        queued_event: usize,
    ) -> Option<PreclaimedRun> {
        let (worker, slot) = self.reserve_slot(owner, run)?;
        let (owner, agent, message) = (owner.clone(), agent.clone(), (message.0.clone(), message.1));
        Some(PreclaimedRun { worker, slot, owner, run, agent, stream_id: MessageId::generate(), message, queued_event })
    }

    fn reserve_slot(&self, owner: &Owner, run: RunId) -> Option<(Arc<WorkerHandle>, WorkerSlot)> {
        let worker = lock(&self.0).clone().filter(|worker| !worker.dispatches.is_closed())?;
        let permit = worker.slots.take(owner)?;
        lock(&worker.pending).insert(run);
        let guard = PendingRunGuard { run, pending: Arc::clone(&worker.pending) };
        Some((worker, WorkerSlot { permit, guard }))
    }
}

/// A run that is about to be queued and has a reserved slot: what is known before the commit.
pub(crate) struct PreclaimedRun {
    worker: Arc<WorkerHandle>,
    slot: WorkerSlot,
    owner: Owner,
    run: RunId,
    agent: Agent,
    /// The id of the answer.
    stream_id: MessageId,
    /// The message that the run answers, and the index of its event in the commit.
    message: (Message, usize),
    /// The index of the `run_queued` event in the commit.
    queued_event: usize,
}

impl PreclaimedRun {
    pub(crate) fn offer(&self) -> ClaimOffer {
        let WorkerHandle { holder, lease, .. } = &*self.worker;
        let start_events = start_events(self.run, &self.agent, self.stream_id);
        ClaimOffer { holder: holder.clone(), lease: *lease, start_events }
    }

    /// Builds the run as the commit has stored it, so that the driver does not read it back from the store. `fence` is
    /// that of the granted claim; the start follows the commit's own events.
    fn into_claimed(
        self,
        committed: Committed,
        fence: u64,
        own_events: usize,
        prefetch: Option<Prefetch>,
    ) -> (ClaimedRun, WorkerSlot) {
        let Self { slot, owner, run: run_id, agent, stream_id, message, queued_event, .. } = self;
        let (mut message, posted_event) = message;
        let (room_id, at) = (message.room_id, committed.at);
        let queued_seq = committed.first_seq + queued_event as u64;
        message.seq = committed.first_seq + posted_event as u64;
        let run = Run {
            id: run_id,
            room_id,
            agent_id: agent.id,
            message_id: message.id,
            status: RunStatus::Running,
            queued_seq,
            usage: Usage::default(),
            cost: None,
            model: None,
            duration_ms: None,
            error: None,
            receipt: None,
            created_at: at,
            started_at: Some(at),
            ended_at: None,
        };
        let claim = Claim { run_id, room_id, owner, queued_seq, fence, stop: None };
        let started = Some(StoredStart::new(stream_id, committed.first_seq + own_events as u64, at));
        let prefetch = prefetch.filter(|prefetch| prefetch.is_current_at(committed.first_seq));
        (ClaimedRun { claim, run, agent, message, started, prefetch }, slot)
    }
}

impl Engine {
    /// Commits, and starts the preclaimed run if its claim was granted. In a task of its own: a client that disconnects
    /// must not leave a claimed run without a driver.
    pub(crate) async fn commit_and_start(
        &self,
        commit: Commit,
        preclaimed: Option<PreclaimedRun>,
    ) -> Result<Committed, StoreError> {
        let Some(preclaimed) = preclaimed else { return self.store().commit(commit).await };
        let engine = self.clone();
        let task = self.background_tasks().spawn(async move {
            let (room_id, own_events) = (commit.room_id, commit.events.len());
            let prefetch =
                Prefetch::read(&engine, &preclaimed.owner, room_id, &preclaimed.agent, &preclaimed.message.0.text);
            let (committed, prefetch) = tokio::join!(engine.store().commit(commit), prefetch);
            let committed = committed?;
            if let Some(fence) = committed.claimed_fence {
                let worker = Arc::clone(&preclaimed.worker);
                let claimed = preclaimed.into_claimed(committed, fence, own_events, prefetch);
                if let Err(unsent) = worker.dispatches.try_send(claimed) {
                    // The worker has stopped in the meantime.
                    let (run, _slot) = unsent.into_inner();
                    engine.end_for_shutdown(&run.claim).await;
                }
            }
            Ok(committed)
        });
        task.await.unwrap_or_else(|error| Err(StoreError::unavailable("the commit was interrupted").caused_by(error)))
    }

    /// Ends a started run when the server stops before its provider was called.
    pub(super) async fn end_for_shutdown(&self, claim: &Claim) {
        if let Err(error) = self.end_without_driver(claim, Interruption::Shutdown).await {
            tracing::warn!(run = %claim.run_id, %error, "a run could not be ended; the next server start ends it");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Plain data that no panic can leave half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
