//! The published frames of each room, as bytes shared by all its readers.

use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

#[derive(Clone, Default)]
pub struct BaselineRooms(Arc<Mutex<BTreeMap<usize, Arc<BaselineRoom>>>>);

/// The frames of each commit, oldest first.
#[derive(Default)]
pub struct BaselineRoom {
    frames: Mutex<Vec<Bytes>>,
    count: watch::Sender<usize>,
}

impl BaselineRooms {
    pub fn get(&self, room: usize) -> Arc<BaselineRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(room).or_default().clone()
    }

    pub fn publish(&self, frames: impl IntoIterator<Item = (usize, Bytes)>) {
        for (room, bytes) in frames {
            let room = self.get(room);
            let mut shown = room.frames.lock().unwrap_or_else(PoisonError::into_inner);
            shown.push(bytes);
            let count = shown.len();
            drop(shown);
            room.count.send_replace(count);
        }
    }
}

impl BaselineRoom {
    pub fn follow(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    pub fn after(&self, position: usize) -> Vec<Bytes> {
        let shown = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(position..).unwrap_or_default().to_vec()
    }
}
