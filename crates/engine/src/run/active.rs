//! The runs on this server, and how to wake them. Only a cache: the queue and the signals in the store are
//! authoritative, and a run that misses a wake-up is found by the worker's next look.

use domain::{
    event::Interruption,
    ids::{RoomId, RunId},
    position::Seq,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, watch};

/// Why a run on this server has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStop {
    Cancel,
    Interrupt(Interruption),
    /// Another worker took over the run: stop working and write nothing more.
    LeaseLost,
}

/// The driver's end of a run in `ActiveRuns`: how it is woken. The run is active while this lives.
pub(crate) struct ActiveRun {
    id: RunId,
    runs: ActiveRuns,
    pub(super) stop: watch::Receiver<Option<RunStop>>,
    /// Notified when the run has signals to carry out.
    pub(super) signals: Arc<Notify>,
}

struct RunHandle {
    room_id: RoomId,
    /// `None` until the commit that queues the run is stored.
    queued_seq: Option<Seq>,
    stop: watch::Sender<Option<RunStop>>,
    signals: Arc<Notify>,
}

#[derive(Clone, Default)]
pub(crate) struct ActiveRuns(Arc<Mutex<HashMap<RunId, RunHandle>>>);

impl ActiveRuns {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, room_id: RoomId, id: RunId, queued_seq: Option<Seq>) -> ActiveRun {
        let (stop, stopped) = watch::channel(None);
        let signals = Arc::<Notify>::default();
        let active = ActiveRun { id, runs: self.clone(), stop: stopped, signals: Arc::clone(&signals) };
        self.runs().insert(id, RunHandle { room_id, queued_seq, stop, signals });
        active
    }

    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.runs().contains_key(&run)
    }

    /// Stops the run if it is on this server. The first reason wins; `LeaseLost` overrides any other.
    pub(crate) fn stop(&self, run: RunId, why: RunStop) {
        if let Some(handle) = self.runs().get(&run) {
            request_stop(handle, why);
        }
    }

    /// Stops the runs of a room that were queued before this seq.
    pub(crate) fn stop_room(&self, room: RoomId, before: Seq, why: RunStop) {
        let is_earlier = |handle: &&RunHandle| handle.queued_seq.is_some_and(|seq| seq < before);
        let runs = self.runs();
        runs.values().filter(|handle| handle.room_id == room).filter(is_earlier).for_each(|h| request_stop(h, why));
    }

    pub(crate) fn stop_all(&self, why: RunStop) {
        self.runs().values().for_each(|handle| request_stop(handle, why));
    }

    /// Wakes the run if it is on this server; it reads its signals from the store.
    pub(crate) fn wake(&self, run: RunId) {
        if let Some(handle) = self.runs().get(&run) {
            handle.signals.notify_one();
        }
    }
}

impl ActiveRun {
    pub(crate) fn set_queued_seq(&self, seq: Seq) {
        if let Some(handle) = self.runs.runs().get_mut(&self.id) {
            handle.queued_seq = Some(seq);
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let mut runs = self.runs.runs();
        // A run whose claim with its message was not granted may be claimed from the queue before this is dropped.
        if runs.get(&self.id).is_some_and(|handle| Arc::ptr_eq(&handle.signals, &self.signals)) {
            runs.remove(&self.id);
        }
    }
}

fn request_stop(handle: &RunHandle, why: RunStop) {
    handle.stop.send_if_modified(|stop| {
        let first = stop.is_none() || (why == RunStop::LeaseLost && *stop != Some(RunStop::LeaseLost));
        if first {
            *stop = Some(why);
        }
        first
    });
}

#[cfg(test)]
mod tests {
    use super::{ActiveRuns, RunStop};
    use domain::{
        event::Interruption,
        ids::{RoomId, RunId},
    };

    #[test]
    fn a_run_is_active_until_its_driver_is_gone() {
        let (runs, id) = (ActiveRuns::default(), RunId::generate());
        let active = runs.add(RoomId::generate(), id, None);
        assert!(runs.contains(id));
        drop(active);
        assert!(!runs.contains(id));
    }

    #[test]
    fn a_run_that_was_claimed_again_stays_active() {
        let (runs, room, id) = (ActiveRuns::default(), RoomId::generate(), RunId::generate());
        let not_granted = runs.add(room, id, None);
        let claimed = runs.add(room, id, Some(1));
        drop(not_granted);
        assert!(runs.contains(id));
        runs.stop(id, RunStop::Cancel);
        assert_eq!(*claimed.stop.borrow(), Some(RunStop::Cancel));
    }

    #[test]
    fn a_stop_before_the_driver_starts_is_not_missed() {
        let (runs, id) = (ActiveRuns::default(), RunId::generate());
        let active = runs.add(RoomId::generate(), id, None);
        runs.stop(id, RunStop::Cancel);
        assert!(active.stop.has_changed().unwrap());
        assert_eq!(*active.stop.borrow(), Some(RunStop::Cancel));
    }

    #[test]
    fn a_message_stops_only_earlier_runs_of_its_room() {
        let (runs, room) = (ActiveRuns::default(), RoomId::generate());
        let why = RunStop::Interrupt(Interruption::NewMessage);
        let [earlier, later, not_stored] = [Some(3), Some(5), None].map(|seq| runs.add(room, RunId::generate(), seq));
        let elsewhere = runs.add(RoomId::generate(), RunId::generate(), Some(3));
        runs.stop_room(room, 5, why);
        assert_eq!(*earlier.stop.borrow(), Some(why));
        for spared in [&later, &not_stored, &elsewhere] {
            assert_eq!(*spared.stop.borrow(), None);
        }
        not_stored.set_queued_seq(4);
        runs.stop_room(room, 5, why);
        assert_eq!(*not_stored.stop.borrow(), Some(why));
    }
}
