//! The runs on this server, and how to wake them. Only a cache: the queue and the signals in the store are
//! authoritative, and a run that misses a wake-up is found by the worker's next look.

use domain::{
    event::Interruption,
    ids::{RoomId, RunId},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use store::queue::Claim;
use tokio::sync::{Notify, watch};

/// Why a run on this server has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancel,
    Interrupt(Interruption),
    /// Another worker took over the run: stop working and write nothing more.
    LeaseLost,
}

/// How a run is woken.
pub(crate) struct RunWakeups {
    pub halt: watch::Receiver<Option<Halt>>,
    /// Notified when the run has signals to carry out.
    pub signals: Arc<Notify>,
}

struct RunHandle {
    room_id: RoomId,
    queued_seq: u64,
    halt: watch::Sender<Option<Halt>>,
    signals: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct ActiveRuns(Mutex<HashMap<RunId, RunHandle>>);

impl ActiveRuns {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, claim: &Claim) -> RunWakeups {
        let (halt, halted) = watch::channel(None);
        let signals = Arc::<Notify>::default();
        let wakeups = RunWakeups { halt: halted, signals: Arc::clone(&signals) };
        let handle = RunHandle { room_id: claim.room_id, queued_seq: claim.queued_seq, halt, signals };
        self.runs().insert(claim.run_id, handle);
        wakeups
    }

    pub(crate) fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    pub(crate) fn ids(&self) -> Vec<RunId> {
        self.runs().keys().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs().is_empty()
    }

    /// Returns whether the run is on this server. The first reason wins; `LeaseLost` overrides any other.
    pub(crate) fn halt(&self, run: RunId, why: Halt) -> bool {
        match self.runs().get(&run) {
            Some(handle) => {
                request_halt(handle, why);
                true
            }
            None => false,
        }
    }

    pub(crate) fn halt_room(&self, room: RoomId, before: u64, why: Halt) {
        self.runs().values().filter(|h| h.room_id == room && h.queued_seq < before).for_each(|h| request_halt(h, why));
    }

    pub(crate) fn halt_all(&self, why: Halt) {
        self.runs().values().for_each(|handle| request_halt(handle, why));
    }

    /// Wakes the run if it is on this server; it reads its signals from the store.
    pub(crate) fn wake(&self, run: RunId) {
        if let Some(handle) = self.runs().get(&run) {
            handle.signals.notify_one();
        }
    }
}

fn request_halt(handle: &RunHandle, why: Halt) {
    handle.halt.send_if_modified(|halt| {
        let first = halt.is_none() || (why == Halt::LeaseLost && *halt != Some(Halt::LeaseLost));
        if first {
            *halt = Some(why);
        }
        first
    });
}
