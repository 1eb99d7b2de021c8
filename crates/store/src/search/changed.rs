//! The rooms that got messages on this server and are not indexed yet. Rooms of other servers are theirs; what a server forgets
//! when it stops is found at the next start.

use domain::ids::RoomId;
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;

/// More rooms than this are found by looking at all.
const MAX_ROOMS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct ChangedRooms {
    state: Mutex<ChangedState>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct ChangedState {
    rooms: HashSet<RoomId>,
    has_more: bool,
}

impl ChangedRooms {
    pub(crate) fn add(&self, room: RoomId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.rooms.len() < MAX_ROOMS {
            true => drop(state.rooms.insert(room)),
            false => state.has_more = true,
        }
        drop(state);
        self.notify.notify_one();
    }

    /// `None` if there were too many.
    pub(crate) fn take(&self) -> Option<Vec<RoomId>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ChangedState { rooms, has_more } = std::mem::take(&mut *state);
        (!has_more).then(|| rooms.into_iter().collect())
    }

    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangedRooms, MAX_ROOMS};
    use domain::ids::RoomId;

    #[test]
    fn rooms_are_remembered_once_and_not_without_end() {
        let (changed, room) = (ChangedRooms::default(), RoomId::generate());
        assert_eq!(changed.take(), Some(Vec::new()));
        changed.add(room);
        changed.add(room);
        assert_eq!(changed.take(), Some(vec![room]));
        for _ in 0..=MAX_ROOMS {
            changed.add(RoomId::generate());
        }
        assert_eq!(changed.take(), None, "too many: look at all");
        assert_eq!(changed.take(), Some(Vec::new()));
    }
}
