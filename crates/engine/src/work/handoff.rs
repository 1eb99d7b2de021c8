//! The short way from a post to the worker of the same server. Where that has room for a run and the room is idle, the
//! run is claimed and started in the commit that queues it: whoever waits for the first word waits for two commits less.

use crate::{
    Engine,
    run::{Ahead, Brief, Start},
};
use domain::{
    agent::Agent,
    event::Interruption,
    ids::{RoomId, RunId},
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
    Error,
    journal::{ClaimFor, Commit, Committed},
    queue::Claim,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Where the worker of this server is found, if it has one.
#[derive(Default)]
pub(crate) struct Handoff(Mutex<Option<Arc<Desk>>>);

struct Desk {
    holder: String,
    lease: Duration,
    slots: Arc<Semaphore>,
    handed: mpsc::Sender<Handed>,
    /// Held by this worker as soon as their commit is stored, and not on the board yet.
    coming: Arc<Mutex<HashSet<RunId>>>,
}

/// A place among the runs of this server, kept for one that is about to be queued.
pub(crate) struct Seat {
    desk: Arc<Desk>,
    mark: Mark,
    permit: OwnedSemaphorePermit,
}

/// A run that was claimed for the worker, on its way to it.
pub(crate) struct Handed {
    pub claim: Claim,
    pub brief: Brief,
    pub permit: OwnedSemaphorePermit,
    /// Dropped when the run is on the board.
    pub mark: Mark,
}

/// Says that a run is coming, so that nobody takes it for one that has lost its driver.
pub(crate) struct Mark {
    run: RunId,
    coming: Arc<Mutex<HashSet<RunId>>>,
}

impl Drop for Mark {
    fn drop(&mut self) {
        locked(&self.coming).remove(&self.run);
    }
}

/// The worker's end.
pub(super) struct Intake {
    pub slots: Arc<Semaphore>,
    pub handed: mpsc::Receiver<Handed>,
    coming: Arc<Mutex<HashSet<RunId>>>,
}

impl Intake {
    pub(super) fn is_coming(&self, run: RunId) -> bool {
        locked(&self.coming).contains(&run)
    }
}

impl Handoff {
    /// A worker begins; it takes the place of one before it.
    pub(super) fn open(&self, holder: &str, slots: usize, lease: Duration) -> Intake {
        let slots = Arc::new(Semaphore::new(slots));
        let coming = Arc::default();
        // No more than there are slots can be on their way.
        let (sender, handed) = mpsc::channel(slots.available_permits().max(1));
        let desk = Desk {
            holder: holder.to_owned(),
            lease,
            slots: Arc::clone(&slots),
            handed: sender,
            coming: Arc::clone(&coming),
        };
        *locked(&self.0) = Some(Arc::new(desk));
        Intake { slots, handed, coming }
    }

    /// `None`: there is no worker, or it is busy. The run waits in the queue then.
    pub(crate) fn seat(&self, run: RunId) -> Option<Seat> {
        let desk = locked(&self.0).clone().filter(|desk| !desk.handed.is_closed())?;
        let permit = Arc::clone(&desk.slots).try_acquire_owned().ok()?;
        locked(&desk.coming).insert(run);
        let mark = Mark { run, coming: Arc::clone(&desk.coming) };
        Some(Seat { desk, mark, permit })
    }
}

/// A run that has a seat: who and where, apart from what only the commit can tell.
pub(crate) struct Seated {
    pub seat: Seat,
    pub owner: Owner,
    pub run: RunId,
    pub agent: Agent,
    pub start: Start,
    /// What it answers, and which event of the commit says it.
    pub message: (Message, usize),
    /// The commit's event that queues it.
    pub event: usize,
}

impl Seated {
    pub(crate) fn claim(&self) -> ClaimFor {
        let Desk { holder, lease, .. } = &*self.seat.desk;
        ClaimFor { holder: holder.clone(), lease: *lease, start: self.start.events(self.run, &self.agent) }
    }

    /// The run as it is stored now, by a commit that had so many events of its own. Whoever drives it need not read what was
    /// just written.
    fn claimed(self, room_id: RoomId, stored: Stored, ahead: Option<Ahead>) -> (Seat, Claim, Brief) {
        let Self { seat, owner, run: run_id, agent, start, message: (mut message, said), event } = self;
        let Stored { committed, fence, events } = stored;
        let queued_seq = committed.first + event as u64;
        message.seq = committed.first + said as u64;
        let started = start.stored(committed.first + events as u64, committed.at);
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
            created_at: committed.at,
            started_at: Some(committed.at),
            ended_at: None,
        };
        let claim = Claim { run_id, room_id, owner, queued_seq, fence, stop: None };
        let ahead = ahead.filter(|ahead| ahead.holds_at(committed.first));
        (seat, claim, Brief { run, agent, message, started, ahead })
    }
}

/// What became of a commit whose run is held.
struct Stored {
    committed: Committed,
    fence: u64,
    /// How many events it had, apart from the start of the run.
    events: usize,
}

impl Engine {
    /// Commits, and begins with the run that has a seat if its claim was granted. Apart from whoever asks: a client that
    /// goes away must not leave a run that is claimed and that nobody drives.
    pub(crate) async fn commit_and_begin(&self, commit: Commit, seated: Option<Seated>) -> Result<Committed, Error> {
        let Some(seated) = seated else { return self.store().commit(commit).await };
        let engine = self.clone();
        let chore = self.chores().spawn(async move {
            let (room_id, events) = (commit.room_id, commit.events.len());
            let ahead = Ahead::read(&engine, &seated.owner, room_id, &seated.agent, &seated.message.0.text);
            let (committed, ahead) = tokio::join!(engine.store().commit(commit), ahead);
            let committed = committed?;
            if let Some(fence) = committed.claimed {
                let (seat, claim, brief) = seated.claimed(room_id, Stored { committed, fence, events }, ahead);
                engine.pass_on(seat, claim, brief).await;
            }
            Ok(committed)
        });
        chore.await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
    }

    async fn pass_on(&self, seat: Seat, claim: Claim, brief: Brief) {
        let Seat { desk, mark, permit } = seat;
        if let Err(unsent) = desk.handed.try_send(Handed { claim, brief, permit, mark }) {
            // The worker has just stopped.
            self.give_up(&unsent.into_inner().claim).await;
        }
    }

    /// The run has started, and the server stops before anybody was asked.
    pub(super) async fn give_up(&self, claim: &Claim) {
        if let Err(error) = self.end_without_driver(claim, Interruption::Shutdown).await {
            tracing::warn!(run = %claim.run_id, %error, "a run could not be ended; the next start ends it");
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Plain data that no panic can leave half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
