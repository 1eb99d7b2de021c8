//! Watches: they collect changes until these are taken, each room and run once, so that a busy room is cheap for the
//! journal and for the watcher.

use super::{Notifier, OwnerList, hub::RoomSubscriber, lock};
use crate::open::Store;
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

/// Runs with new signals that are remembered by id.
const MAX_SIGNALED_RUNS: usize = 1024;

/// The changes that a watcher has not taken yet.
#[derive(Debug, Default)]
pub(super) struct OwnerWatchState {
    changes: Mutex<WatchedChanges>,
    notifier: Notifier,
}

#[derive(Debug, Default)]
pub struct WatchedChanges {
    /// Rooms with new events; only watched rooms.
    pub rooms: BTreeSet<RoomId>,
    /// A room was created, changed or deleted: read the list again.
    pub room_list: bool,
    /// An agent was created, changed or deleted.
    pub agents: bool,
    /// A skill was created, changed or deleted.
    pub skills: bool,
}

impl OwnerWatchState {
    pub(super) fn room_changed(&self, room: RoomId) {
        lock(&self.changes).rooms.insert(room);
        self.notifier.notify();
    }

    pub(super) fn list_changed(&self, list: OwnerList) {
        let mut changes = lock(&self.changes);
        match list {
            OwnerList::Rooms => changes.room_list = true,
            OwnerList::Agents => changes.agents = true,
            OwnerList::Skills => changes.skills = true,
        }
        drop(changes);
        self.notifier.notify();
    }
}

/// Reports changes in an owner's rooms and lists. Start it before reading a list, so that changes in between are not
/// missed.
pub struct OwnerWatch {
    store: Store,
    owner: Owner,
    state: Arc<OwnerWatchState>,
    rooms: BTreeSet<RoomId>,
}

impl OwnerWatch {
    pub(super) fn start(store: &Store, owner: &Owner) -> Self {
        let state = Arc::new(OwnerWatchState::default());
        store.notify_hub().add_owner_watch(owner, &state);
        Self { store: store.clone(), owner: owner.clone(), state, rooms: BTreeSet::new() }
    }

    /// Watches exactly these rooms from now on. They must belong to the owner.
    pub fn set_rooms(&mut self, rooms: BTreeSet<RoomId>) {
        let (hub, subscriber) = (self.store.notify_hub(), self.subscriber());
        for removed in self.rooms.difference(&rooms) {
            hub.unsubscribe(*removed, &subscriber);
        }
        for new in rooms.difference(&self.rooms) {
            hub.subscribe(*new, subscriber.clone());
        }
        self.rooms = rooms;
    }

    pub fn rooms(&self) -> &BTreeSet<RoomId> {
        &self.rooms
    }

    /// Waits until something has changed since the last `take_changes`.
    pub async fn changed(&self) {
        self.state.notifier.notified().await;
    }

    pub fn take_changes(&self) -> WatchedChanges {
        std::mem::take(&mut lock(&self.state.changes))
    }

    fn subscriber(&self) -> RoomSubscriber {
        RoomSubscriber::Watch(Arc::clone(&self.state))
    }
}

impl Drop for OwnerWatch {
    fn drop(&mut self) {
        let (hub, subscriber) = (self.store.notify_hub(), self.subscriber());
        for room in &self.rooms {
            hub.unsubscribe(*room, &subscriber);
        }
        hub.remove_owner_watch(&self.owner, &self.state);
    }
}

#[derive(Debug, Default)]
pub(super) struct RunSignalState {
    signaled: Mutex<SignaledRuns>,
    notifier: Notifier,
}

/// Runs that may have new signals.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SignaledRuns {
    pub runs: BTreeSet<RunId>,
    /// Any other run may have new signals too: notifications may have been missed.
    pub any: bool,
}

impl RunSignalState {
    pub(super) fn run_changed(&self, run: RunId) {
        let mut signaled = lock(&self.signaled);
        signaled.runs.insert(run);
        if signaled.runs.len() > MAX_SIGNALED_RUNS {
            *signaled = SignaledRuns { runs: BTreeSet::new(), any: true };
        }
        drop(signaled);
        self.notifier.notify();
    }

    pub(super) fn any_run_changed(&self) {
        lock(&self.signaled).any = true;
        self.notifier.notify();
    }
}

/// Reports the runs of all servers that may have new signals.
pub struct RunSignalWatch {
    store: Store,
    state: Arc<RunSignalState>,
}

impl RunSignalWatch {
    pub(super) fn start(store: &Store) -> Self {
        let state = Arc::default();
        store.notify_hub().add_run_watch(&state);
        Self { store: store.clone(), state }
    }

    /// Waits until a run may have new signals since the last `take`. Cancel safe.
    pub async fn changed(&self) {
        self.state.notifier.notified().await;
    }

    pub fn take(&self) -> SignaledRuns {
        std::mem::take(&mut lock(&self.state.signaled))
    }
}

impl Drop for RunSignalWatch {
    fn drop(&mut self) {
        self.store.notify_hub().remove_run_watch(&self.state);
    }
}

/// Reports that signals of one run were settled, for those who have sent them.
pub struct SettledSignalsWatch {
    store: Store,
    run: RunId,
    notifier: Arc<Notifier>,
}

impl SettledSignalsWatch {
    pub(super) fn start(store: &Store, run: RunId) -> Self {
        let notifier = Arc::default();
        store.notify_hub().add_settled_watch(run, &notifier);
        Self { store: store.clone(), run, notifier }
    }

    /// Waits until signals of the run were settled since the last call, or may have been. Cancel safe.
    pub async fn changed(&self) {
        self.notifier.notified().await;
    }
}

impl Drop for SettledSignalsWatch {
    fn drop(&mut self) {
        self.store.notify_hub().remove_settled_watch(self.run, &self.notifier);
    }
}
