//! Recently committed events in memory, per room: the fast path of live readers. Losing them only costs a read from the
//! store.

use super::frame::Frame;
use domain::{ids::RoomId, position::Seq};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A single room may use at most this fraction of the whole.
const ROOM_SHARE: usize = 16;

#[derive(Debug)]
pub(crate) struct Tails {
    rooms: Mutex<HashMap<RoomId, Arc<Tail>>>,
    bytes: AtomicUsize,
    limit: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<TailFrames>);

#[derive(Debug, Default)]
struct TailFrames {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tails {
    pub(crate) fn new(limit: usize) -> Self {
        Self { rooms: Mutex::default(), bytes: AtomicUsize::new(0), limit }
    }

    pub(crate) fn get_or_create(&self, room: RoomId) -> Arc<Tail> {
        lock(&self.rooms).entry(room).or_default().clone()
    }

    /// Adds committed frames of one room, in order. Its readers must be notified afterwards.
    pub(crate) fn publish(&self, room: RoomId, frames: Vec<Frame>) {
        let tail = self.get_or_create(room);
        let (added, removed) = tail.push(frames, self.limit / ROOM_SHARE);
        let total = self.bytes.fetch_add(added, Ordering::Relaxed) + added;
        self.bytes.fetch_sub(removed, Ordering::Relaxed);
        if total.saturating_sub(removed) > self.limit {
            self.shrink();
        }
        if tail.is_empty() {
            self.release(room, tail);
        }
    }

    /// Clears the tail of a room that no longer exists.
    pub(crate) fn forget(&self, room: RoomId) {
        if let Some(tail) = lock(&self.rooms).remove(&room) {
            self.bytes.fetch_sub(tail.clear(), Ordering::Relaxed);
        }
    }

    /// Clears the tails of rooms without followers; if that is not enough, all tails. Readers then read from the store.
    fn shrink(&self) {
        let mut rooms = lock(&self.rooms);
        for followed_too in [false, true] {
            rooms.retain(|_, tail| {
                // If only this map holds the tail, nobody follows the room.
                let followed = Arc::strong_count(tail) > 1;
                if followed_too || !followed {
                    self.bytes.fetch_sub(tail.clear(), Ordering::Relaxed);
                }
                followed
            });
            if self.bytes.load(Ordering::Relaxed) <= self.limit / 2 {
                return;
            }
        }
    }

    /// Releases a tail. Removes empty tails without followers, so that the map does not grow with every room ever
    /// opened. The tail is dropped under the lock, so that two concurrent releases cannot both leave it in the map.
    pub(crate) fn release(&self, room: RoomId, tail: Arc<Tail>) {
        let mut rooms = lock(&self.rooms);
        drop(tail);
        if rooms.get(&room).is_some_and(|tail| Arc::strong_count(tail) == 1 && tail.is_empty()) {
            rooms.remove(&room);
        }
    }
}

impl Tail {
    /// Returns (bytes added, bytes removed).
    fn push(&self, frames: Vec<Frame>, limit: usize) -> (usize, usize) {
        let mut inner = lock(&self.0);
        let (mut added, mut removed) = (0, 0);
        for frame in frames {
            // The tail must not have gaps: start over after one.
            if inner.frames.back().is_some_and(|last| last.seq + 1 != frame.seq) {
                removed += std::mem::take(&mut inner.bytes);
                inner.frames.clear();
            }
            added += frame.weight();
            inner.bytes += frame.weight();
            inner.frames.push_back(Arc::new(frame));
        }
        while inner.bytes > limit {
            let Some(oldest) = inner.frames.pop_front() else {
                break;
            };
            inner.bytes -= oldest.weight();
            removed += oldest.weight();
        }
        (added, removed)
    }

    fn is_empty(&self) -> bool {
        lock(&self.0).frames.is_empty()
    }

    fn clear(&self) -> usize {
        let mut inner = lock(&self.0);
        inner.frames.clear();
        std::mem::take(&mut inner.bytes)
    }

    /// Returns the frames after `seq`, at most `bytes` or a single larger one, or `None` if the store must be read: the
    /// tail does not reach back that far, or events up to `head` were stored that were never published here.
    pub(crate) fn after(&self, seq: Seq, head: Seq, bytes: usize) -> Option<Vec<Arc<Frame>>> {
        let inner = lock(&self.0);
        let first = inner.frames.front()?.seq;
        let skip = usize::try_from((seq + 1).checked_sub(first)?).ok()?;
        let mut taken = 0;
        let frames = inner.frames.iter().skip(skip).take_while(|frame| {
            let is_first = taken == 0;
            taken += frame.len();
            is_first || taken <= bytes
        });
        let frames: Vec<_> = frames.cloned().collect();
        if frames.is_empty() && seq < head { None } else { Some(frames) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOM_SHARE, Tails};
    use crate::journal::Frame;
    use domain::{
        event::{Event, NewEvent, Status},
        ids::RoomId,
        position::{Epoch, Seq},
        time::Timestamp,
    };
    use std::sync::atomic::Ordering;

    fn frames(room: RoomId, seqs: impl IntoIterator<Item = Seq>) -> Vec<Frame> {
        let epoch = Epoch::generate();
        let frame = |seq| {
            let new = NewEvent::new(Status { status: "s".into(), message: "m".repeat(100), message_id: None });
            let (id, kind, data) = (new.id, new.kind, new.data);
            let created_at = Timestamp::from_millis(0);
            let event =
                Event { id, room_id: room, seq, kind, run_id: None, agent_id: None, data, raw: None, created_at };
            Frame::new(&epoch, &event)
        };
        seqs.into_iter().map(frame).collect()
    }

    fn weight() -> usize {
        frames(RoomId::generate(), [1])[0].weight()
    }

    fn kept(tails: &Tails) -> (usize, usize) {
        let rooms = super::lock(&tails.rooms);
        let counted = rooms.values().map(|tail| super::lock(&tail.0).bytes).sum();
        assert_eq!(tails.bytes.load(Ordering::Relaxed), counted, "the total matches the tails");
        (rooms.len(), counted)
    }

    #[test]
    fn memory_stays_below_its_limit_and_is_counted_correctly() {
        let limit = 40 * weight();
        let tails = Tails::new(limit);
        let watched = RoomId::generate();
        let tail = tails.get_or_create(watched);
        for n in 0..100 {
            let room = RoomId::generate();
            tails.publish(room, frames(room, 1..=n % 5));
            tails.publish(watched, frames(watched, [n + 1]));
            assert!(kept(&tails).1 <= limit);
        }
        assert!(tail.after(99, 100, 1).is_some(), "the newest event of a followed room is in memory");
        assert!(kept(&tails).0 <= 41);
        tails.release(watched, tail);
    }

    #[test]
    fn empty_tails_are_removed() {
        let tails = Tails::new(0);
        for _ in 0..10 {
            let room = RoomId::generate();
            tails.publish(room, frames(room, 1..=3));
        }
        assert_eq!(kept(&tails), (0, 0));
        let room = RoomId::generate();
        let (one, two) = (tails.get_or_create(room), tails.get_or_create(room));
        tails.release(room, one);
        assert_eq!(kept(&tails).0, 1);
        tails.release(room, two);
        assert_eq!(kept(&tails).0, 0);
    }

    #[test]
    fn concurrent_releases_remove_the_tail() {
        let tails = Tails::new(0);
        let room = RoomId::generate();
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| tails.release(room, tails.get_or_create(room)));
                }
            });
            assert_eq!(kept(&tails).0, 0);
        }
    }

    #[test]
    fn a_gap_is_never_returned() {
        let tails = Tails::new(100 * ROOM_SHARE * weight());
        let room = RoomId::generate();
        let tail = tails.get_or_create(room);
        let seqs =
            |seq| tail.after(seq, seq, usize::MAX).map(|frames| frames.iter().map(|f| f.seq).collect::<Vec<_>>());
        assert_eq!(seqs(0), None, "the room is not in memory");
        tails.publish(room, frames(room, 1..=3));
        assert_eq!((seqs(0), seqs(3)), (Some(vec![1, 2, 3]), Some(vec![])));
        tails.publish(room, frames(room, 5..=6));
        assert_eq!((seqs(3), seqs(4), seqs(6)), (None, Some(vec![5, 6]), Some(vec![])));
        assert_eq!(kept(&tails), (1, 2 * weight()));
    }

    #[test]
    fn events_that_were_stored_but_not_published_are_read_from_the_store() {
        let tails = Tails::new(100 * ROOM_SHARE * weight());
        let room = RoomId::generate();
        let tail = tails.get_or_create(room);
        tails.publish(room, frames(room, 1..=3));
        assert!(tail.after(3, 3, 1).is_some_and(|frames| frames.is_empty()), "nothing new");
        assert!(tail.after(3, 4, 1).is_none());
        assert!(tail.after(2, 4, 1).is_some_and(|frames| frames.len() == 1));
    }
}
