//! The fast path from a post to the worker of the same server. If a worker slot is free and the room is idle, the run
//! is claimed and started in the commit that queues it, which saves two commits before the first output.

use super::slots::{TakenSlot, TreeSlots};
use crate::{
    Engine, EngineConfig,
    run::{ClaimedRun, Prefetch, StoredStart, start_events},
};
use domain::{
    agent::Agent,
    event::Interruption,
    ids::MessageId,
    message::Message,
    owner::Owner,
    run::{Run, RunStatus},
    run_tree::TreePlace,
    time::Timestamp,
    usage::Usage,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::{
    StoreError,
    journal::{ClaimOffer, Commit, Committed, RowChange, SeqRef},
    queue::Claim,
};
use tokio::sync::mpsc;

/// The worker of this server, if it has one.
#[derive(Default)]
pub(crate) struct Handoff(Mutex<Option<Arc<WorkerHandle>>>);

struct WorkerHandle {
    holder: String,
    lease: Duration,
    slots: TreeSlots,
    dispatches: mpsc::Sender<ClaimedRun>,
}

/// The worker's end of the handoff.
pub(super) struct WorkerInbox {
    pub slots: TreeSlots,
    pub dispatches: mpsc::Receiver<ClaimedRun>,
}

impl Handoff {
    /// Registers a worker; it replaces an earlier one.
    pub(super) fn register_worker(&self, holder: &str, config: &EngineConfig) -> WorkerInbox {
        let slots = TreeSlots::new(config.concurrency, config.concurrency_per_workspace);
        // There cannot be more dispatches than slots.
        let (sender, dispatches) = mpsc::channel(slots.total().max(1));
        let worker =
            WorkerHandle { holder: holder.to_owned(), lease: config.lease, slots: slots.clone(), dispatches: sender };
        *self.worker() = Some(Arc::new(worker));
        WorkerInbox { slots, dispatches }
    }

    /// Returns `None` if there is no worker or no slot for this workspace at this depth.
    fn take_slot(&self, workspace: &Owner, depth: u32) -> Option<(Arc<WorkerHandle>, TakenSlot)> {
        let worker = self.worker().clone().filter(|worker| !worker.dispatches.is_closed())?;
        let slot = worker.slots.at(depth)?.take(workspace)?;
        Some((worker, slot))
    }

    fn worker(&self) -> MutexGuard<'_, Option<Arc<WorkerHandle>>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Stores a post. If this server has a slot for its first run, which `agent` executes, the commit also claims and
    /// starts that run, unless the room is busy; otherwise the run waits in the queue. `message` is the posted message
    /// and the index of its event.
    pub(crate) async fn commit_and_start(
        &self,
        mut commit: Commit,
        agent: Option<&Agent>,
        message: (&Message, usize),
    ) -> Result<Committed, StoreError> {
        let first_run = commit.changes.iter_mut().find_map(|change| match change {
            RowChange::QueueRun { owner, run_id, place, seq: SeqRef::Event(event), claim, .. } => {
                Some((owner, *run_id, *place, *event, claim))
            }
            _ => None,
        });
        let reserved = agent.zip(first_run).and_then(|(agent, run)| {
            let depth = run.2.map_or(0, |place| place.depth);
            Some((agent, self.handoff().take_slot(run.0, depth)?, run))
        });
        let Some((agent, (worker, slot), (owner, run_id, place, queued_event, claim))) = reserved else {
            return self.store().commit(commit).await;
        };
        let owner = owner.clone();
        let stream_id = MessageId::generate();
        let start_events = start_events(run_id, agent, stream_id);
        *claim = Some(ClaimOffer { holder: worker.holder.clone(), lease: worker.lease, start_events });
        // Before the commit, so that the run is never held without being active: recovery would end it.
        let active = self.active_runs().add(commit.room_id, run_id, None);
        let (engine, agent, (mut message, posted_event)) =
            (self.clone(), agent.clone(), (message.0.clone(), message.1));
        // In a task of its own: a client that disconnects must not leave a claimed run without a driver.
        let task = self.background_tasks().spawn(async move {
            let (room_id, own_events) = (commit.room_id, commit.events.len());
            let prefetch = Prefetch::read(&engine, &owner, room_id, &agent, &message.text);
            let (committed, prefetch) = tokio::join!(engine.store().commit(commit), prefetch);
            let committed = committed?;
            let Committed { first_seq, at, claimed_fence: Some(fence) } = committed else { return Ok(committed) };
            message.seq = first_seq + posted_event as u64;
            let queued_seq = first_seq + queued_event as u64;
            let claim = Claim { run_id, room_id, owner, queued_seq, cell: queued_seq, fence, stop: None };
            active.set_queued_seq(claim.queued_seq);
            let run = started_run(&claim, &agent, &message, place, at);
            // The start follows the commit's own events.
            let started = Some(StoredStart::new(stream_id, first_seq + own_events as u64, at));
            let prefetch = prefetch.filter(|prefetch| prefetch.is_current_at(first_seq));
            let claimed = ClaimedRun { claim, run, agent, message, started, prefetch, slot, active };
            if let Err(unsent) = worker.dispatches.try_send(claimed) {
                // The worker has stopped in the meantime.
                engine.end_for_shutdown(&unsent.into_inner().claim).await;
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

/// The run as its commit has stored it, so that the driver does not read it back from the store.
fn started_run(claim: &Claim, agent: &Agent, message: &Message, place: Option<TreePlace>, at: Timestamp) -> Run {
    Run {
        id: claim.run_id,
        room_id: claim.room_id,
        agent_id: agent.id,
        message_id: message.id,
        parent_id: place.map(|place| place.parent_id),
        root_id: place.map(|place| place.root_id),
        depth: place.map_or(0, |place| place.depth),
        status: RunStatus::Running,
        queued_seq: claim.queued_seq,
        usage: Usage::default(),
        cost: None,
        model: None,
        duration_ms: None,
        error: None,
        receipt: None,
        created_at: at,
        started_at: Some(at),
        ended_at: None,
    }
}
