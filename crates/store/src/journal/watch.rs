//! Who watches an owner's things as a whole. The writer says which rooms moved and the catalog which lists changed; a watch
//! remembers it until its holder looks, each room once, so that a flood in one room costs the writer a look into two maps and the watcher nothing.

use super::follow::Bell;
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
pub(crate) struct Watches {
    by: Mutex<By>,
    /// Without it, a server that nobody watches would take the lock for every commit.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct By {
    room: HashMap<RoomId, Vec<Arc<Board>>>,
    owner: HashMap<Owner, Vec<Arc<Board>>>,
}

/// What one watcher has not looked at yet.
#[derive(Debug, Default)]
struct Board {
    moved: Mutex<Moved>,
    bell: Bell,
}

#[derive(Debug, Default)]
pub struct Moved {
    /// At most as many as are watched.
    pub rooms: BTreeSet<RoomId>,
    /// A room was made, changed or deleted: read the list anew.
    pub list: bool,
    /// An agent was.
    pub agents: bool,
    /// A skill was.
    pub skills: bool,
}

/// Which of an owner's lists is another one now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    Rooms,
    Agents,
    Skills,
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watches {
    /// Something was committed in these rooms.
    pub(crate) fn moved(&self, rooms: impl Iterator<Item = RoomId>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let by = lock(&self.by);
        for room in rooms {
            for board in by.room.get(&room).into_iter().flatten() {
                lock(&board.moved).rooms.insert(room);
                board.bell.ring();
            }
        }
    }

    /// The owner has more or fewer of these, or one of them is another now.
    pub(crate) fn listed(&self, owner: &Owner, list: List) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for board in lock(&self.by).owner.get(owner).into_iter().flatten() {
            let mut moved = lock(&board.moved);
            match list {
                List::Rooms => moved.list = true,
                List::Agents => moved.agents = true,
                List::Skills => moved.skills = true,
            }
            drop(moved);
            board.bell.ring();
        }
    }
}

/// Tells when something happened in an owner's rooms, or to what they have. Begin it before reading the list: what happens in between is told.
pub struct Watch {
    store: Store,
    owner: Owner,
    board: Arc<Board>,
    rooms: BTreeSet<RoomId>,
}

impl Watch {
    pub(crate) fn begin(store: &Store, owner: &Owner) -> Self {
        let board = Arc::new(Board::default());
        let watches = store.watches();
        lock(&watches.by).owner.entry(owner.clone()).or_default().push(Arc::clone(&board));
        watches.count.fetch_add(1, Ordering::AcqRel);
        Self { store: store.clone(), owner: owner.clone(), board, rooms: BTreeSet::new() }
    }

    /// Watches exactly these from now on. They must have been read with the owner.
    pub fn set(&mut self, rooms: BTreeSet<RoomId>) {
        let mut by = lock(&self.store.watches().by);
        for gone in self.rooms.difference(&rooms) {
            by.leave(*gone, &self.board);
        }
        for new in rooms.difference(&self.rooms) {
            by.room.entry(*new).or_default().push(Arc::clone(&self.board));
        }
        drop(by);
        self.rooms = rooms;
    }

    pub fn rooms(&self) -> &BTreeSet<RoomId> {
        &self.rooms
    }

    /// Returns when something has moved since the last [`Watch::take`].
    pub async fn rung(&self) {
        self.board.bell.rung().await;
    }

    pub fn take(&self) -> Moved {
        std::mem::take(&mut lock(&self.board.moved))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let watches = self.store.watches();
        let mut by = lock(&watches.by);
        for room in &self.rooms {
            by.leave(*room, &self.board);
        }
        let By { owner, .. } = &mut *by;
        remove(owner, &self.owner, &self.board);
        drop(by);
        watches.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl By {
    fn leave(&mut self, room: RoomId, board: &Arc<Board>) {
        remove(&mut self.room, &room, board);
    }
}

/// Keys without a watcher go: the maps are as large as what is watched.
fn remove<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<Arc<Board>>>, key: &K, board: &Arc<Board>) {
    let Some(boards) = map.get_mut(key) else { return };
    boards.retain(|other| !Arc::ptr_eq(other, board));
    if boards.is_empty() {
        map.remove(key);
    }
}
