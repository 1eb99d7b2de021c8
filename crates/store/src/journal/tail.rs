//! What was just committed, in memory, per room: the live readers' fast path. Losing any of it costs a read from the
//! store and nothing else.

use super::{follow::Bell, frame::Frame};
use domain::{ids::RoomId, position::Seq};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// No single room may take more than this share of the whole.
const ROOM_SHARE: usize = 16;

#[derive(Debug)]
pub(crate) struct Tails {
    rooms: Mutex<HashMap<RoomId, Arc<Tail>>>,
    bytes: AtomicUsize,
    limit: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The newest seq shown; 0 until something was written since the room came into memory.
    head: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
    readers: Vec<Arc<Bell>>,
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tails {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            rooms: Mutex::default(),
            bytes: AtomicUsize::new(0),
            limit,
        }
    }

    pub(crate) fn of(&self, room: RoomId) -> Arc<Tail> {
        lock(&self.rooms).entry(room).or_default().clone()
    }

    /// Shows committed frames of one room, in order, and rings its readers.
    pub(crate) fn publish(&self, room: RoomId, frames: Vec<Frame>) {
        let tail = self.of(room);
        let (added, removed) = tail.push(frames, self.limit / ROOM_SHARE);
        let total = self.bytes.fetch_add(added, Ordering::Relaxed) + added;
        self.bytes.fetch_sub(removed, Ordering::Relaxed);
        if total.saturating_sub(removed) > self.limit {
            self.shrink();
        }
    }

    /// Forgets the tails of rooms nobody watches; if that is not enough, all of them. Readers then read the store.
    fn shrink(&self) {
        let mut rooms = lock(&self.rooms);
        for watched in [false, true] {
            rooms.retain(|_, tail| {
                // Only this map holds it: nobody follows the room now.
                let followed = Arc::strong_count(tail) > 1;
                if followed == watched {
                    self.bytes.fetch_sub(tail.clear(), Ordering::Relaxed);
                }
                followed
            });
            if self.bytes.load(Ordering::Relaxed) <= self.limit / 2 {
                return;
            }
        }
    }

    /// Forgets idle rooms that nobody follows, so that the map does not grow with every room ever opened.
    pub(crate) fn release(&self, room: RoomId) {
        let mut rooms = lock(&self.rooms);
        if let Some(tail) = rooms.get(&room)
            // The map's and the one that is about to be dropped.
            && Arc::strong_count(tail) <= 2
            && lock(&tail.inner).frames.is_empty()
        {
            rooms.remove(&room);
        }
    }
}

impl Tail {
    /// Returns (bytes added, bytes removed).
    fn push(&self, frames: Vec<Frame>, limit: usize) -> (usize, usize) {
        let mut inner = lock(&self.inner);
        let (mut added, mut removed) = (0, 0);
        for frame in frames {
            // A hole would be served as if it were none: start anew behind it.
            if inner
                .frames
                .back()
                .is_some_and(|last| last.seq + 1 != frame.seq)
            {
                removed += std::mem::take(&mut inner.bytes);
                inner.frames.clear();
            }
            added += frame.len();
            inner.bytes += frame.len();
            self.head.store(frame.seq, Ordering::Release);
            inner.frames.push_back(Arc::new(frame));
        }
        while inner.bytes > limit {
            let Some(oldest) = inner.frames.pop_front() else {
                break;
            };
            inner.bytes -= oldest.len();
            removed += oldest.len();
        }
        for reader in &inner.readers {
            reader.ring();
        }
        (added, removed)
    }

    fn clear(&self) -> usize {
        let mut inner = lock(&self.inner);
        inner.frames.clear();
        std::mem::take(&mut inner.bytes)
    }

    pub(crate) fn head(&self) -> Seq {
        self.head.load(Ordering::Acquire)
    }

    /// The frames after `seq`, up to about `bytes` of them, or `None` when the tail does not reach back that far.
    pub(crate) fn after(&self, seq: Seq, bytes: usize) -> Option<Vec<Arc<Frame>>> {
        let inner = lock(&self.inner);
        let first = inner.frames.front()?.seq;
        let skip = usize::try_from((seq + 1).checked_sub(first)?).ok()?;
        let mut taken = 0;
        let frames = inner.frames.iter().skip(skip).take_while(|frame| {
            let more = taken < bytes;
            taken += frame.len();
            more
        });
        Some(frames.cloned().collect())
    }

    pub(crate) fn attach(&self, bell: &Arc<Bell>) {
        lock(&self.inner).readers.push(bell.clone());
    }

    pub(crate) fn detach(&self, bell: &Arc<Bell>) {
        let mut inner = lock(&self.inner);
        if let Some(at) = inner
            .readers
            .iter()
            .position(|other| Arc::ptr_eq(other, bell))
        {
            inner.readers.swap_remove(at);
        }
    }
}
