//! Watches all rooms and lists of an owner. The writer reports rooms with new events, the catalog reports changed
//! lists. A watch collects changes until they are taken, each room once, so that a busy room is cheap for the writer
//! and for the watcher.

use super::follow::Notifier;
use crate::open::Store;
use domain::{ids::RoomId, owner::Owner};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

#[derive(Debug, Default)]
pub(crate) struct WatchRegistry {
    index: Mutex<WatchIndex>,
    /// Avoids taking the lock for every commit when there are no watches.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct WatchIndex {
    room: HashMap<RoomId, Vec<Arc<WatchState>>>,
    owner: HashMap<Owner, Vec<Arc<WatchState>>>,
}

/// The changes that a watcher has not taken yet.
#[derive(Debug, Default)]
struct WatchState {
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

/// A list of an owner's objects that changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchedList {
    Rooms,
    Agents,
    Skills,
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WatchRegistry {
    /// Reports new events in these rooms.
    pub(crate) fn rooms_changed(&self, rooms: impl Iterator<Item = RoomId>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let index = lock(&self.index);
        for room in rooms {
            for state in index.room.get(&room).into_iter().flatten() {
                lock(&state.changes).rooms.insert(room);
                state.notifier.notify();
            }
        }
    }

    /// Reports that an object of the owner's list was created, changed or deleted.
    pub(crate) fn list_changed(&self, owner: &Owner, list: WatchedList) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for state in lock(&self.index).owner.get(owner).into_iter().flatten() {
            let mut changes = lock(&state.changes);
            match list {
                WatchedList::Rooms => changes.room_list = true,
                WatchedList::Agents => changes.agents = true,
                WatchedList::Skills => changes.skills = true,
            }
            drop(changes);
            state.notifier.notify();
        }
    }
}

/// Reports changes in an owner's rooms and lists. Start it before reading a list, so that changes in between are not
/// missed.
pub struct OwnerWatch {
    store: Store,
    owner: Owner,
    state: Arc<WatchState>,
    rooms: BTreeSet<RoomId>,
}

impl OwnerWatch {
    pub(crate) fn start(store: &Store, owner: &Owner) -> Self {
        let state = Arc::new(WatchState::default());
        let watches = store.watch_registry();
        lock(&watches.index).owner.entry(owner.clone()).or_default().push(Arc::clone(&state));
        watches.count.fetch_add(1, Ordering::AcqRel);
        Self { store: store.clone(), owner: owner.clone(), state, rooms: BTreeSet::new() }
    }

    /// Watches exactly these rooms from now on. They must belong to the owner.
    pub fn set_rooms(&mut self, rooms: BTreeSet<RoomId>) {
        let mut index = lock(&self.store.watch_registry().index);
        for removed in self.rooms.difference(&rooms) {
            index.remove_room(*removed, &self.state);
        }
        for new in rooms.difference(&self.rooms) {
            index.room.entry(*new).or_default().push(Arc::clone(&self.state));
        }
        drop(index);
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
}

impl Drop for OwnerWatch {
    fn drop(&mut self) {
        let watches = self.store.watch_registry();
        let mut index = lock(&watches.index);
        for room in &self.rooms {
            index.remove_room(*room, &self.state);
        }
        let WatchIndex { owner, .. } = &mut *index;
        remove(owner, &self.owner, &self.state);
        drop(index);
        watches.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl WatchIndex {
    fn remove_room(&mut self, room: RoomId, state: &Arc<WatchState>) {
        remove(&mut self.room, &room, state);
    }
}

/// Removes keys without a watcher, so that the maps do not grow.
fn remove<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<Arc<WatchState>>>, key: &K, state: &Arc<WatchState>) {
    let Some(states) = map.get_mut(key) else { return };
    states.retain(|other| !Arc::ptr_eq(other, state));
    if states.is_empty() {
        map.remove(key);
    }
}
