//! What was shown in each room, as bytes that all its readers share.

use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

#[derive(Clone, Default)]
pub struct Rooms(Arc<Mutex<BTreeMap<usize, Arc<Room>>>>);

/// The frames of each commit, oldest first.
#[derive(Default)]
pub struct Room {
    shown: Mutex<Vec<Bytes>>,
    count: watch::Sender<usize>,
}

impl Rooms {
    pub fn get(&self, room: usize) -> Arc<Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(room).or_default().clone()
    }

    pub fn publish(&self, frames: impl IntoIterator<Item = (usize, Bytes)>) {
        for (room, bytes) in frames {
            let room = self.get(room);
            let mut shown = room.shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.push(bytes);
            let count = shown.len();
            drop(shown);
            room.count.send_replace(count);
        }
    }
}

impl Room {
    pub fn follow(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    pub fn after(&self, position: usize) -> Vec<Bytes> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(position..).unwrap_or_default().to_vec()
    }
}
