//! The one reader of a room: a cursor over the tail and the store. Live, lagging and reconnecting readers share this
//! code.

use super::{frame::Frame, read::ReadLimit, tail::Tail};
use crate::{
    StoreError,
    notify::{Notifier, RoomTopic},
    open::Store,
};
use domain::{
    ids::RoomId,
    owner::Owner,
    position::{Position, Seq},
};
use std::sync::Arc;

#[derive(Debug)]
pub enum Batch {
    /// The client's position is not in this journal (another epoch, or beyond the head). The client must discard its
    /// events; the next batch begins at seq 1.
    Reset { head: Seq },
    /// At most 64 KiB.
    Frames(Vec<Arc<Frame>>),
    /// The next event is larger than a batch, and was not read yet: [`Follower::next_large`] reads it, when there is memory
    /// for it.
    Large { bytes: usize },
    /// No more events for now; wait for the notifier.
    CaughtUp,
}

pub struct Follower {
    store: Store,
    owner: Owner,
    room: RoomId,
    /// The last seq returned.
    seq: Seq,
    pending_reset: Option<Seq>,
    tail: Arc<Tail>,
    topic: Arc<RoomTopic>,
    notifier: Arc<Notifier>,
}

/// About the size of one socket write.
const BATCH_BYTES: usize = 64 * 1024;

impl Follower {
    /// Subscribes first, then reads the head, so that an event committed in between is not missed.
    pub(crate) async fn open(
        store: &Store,
        owner: &Owner,
        room: RoomId,
        after: &Position,
        notifier: Arc<Notifier>,
    ) -> Result<Self, StoreError> {
        let (tail, topic) = (store.tails().get_or_create(room), store.notify_hub().subscribe_reader(room, &notifier));
        let (store, owner) = (store.clone(), owner.clone());
        let mut follower = Self { store, owner, room, seq: after.seq, pending_reset: None, tail, topic, notifier };
        let head = follower.store.head(&follower.owner, room).await?;
        follower.topic.raise_head(head);
        let foreign = after.epoch.as_ref().is_some_and(|epoch| epoch != follower.store.epoch());
        if foreign || after.seq > head {
            follower.seq = 0;
            follower.pending_reset = Some(head);
        }
        Ok(follower)
    }

    pub async fn next(&mut self) -> Result<Batch, StoreError> {
        if let Some(head) = self.pending_reset.take() {
            return Ok(Batch::Reset { head });
        }
        let frames = match self.tail.after(self.seq, self.topic.head(), BATCH_BYTES) {
            Some(frames) => match frames.first() {
                Some(first) if first.len() > BATCH_BYTES => return Ok(Batch::Large { bytes: first.len() }),
                _ => frames,
            },
            // The tail is empty, does not reach back to the next event, or lacks events of another server.
            None => self.store.frames_after(self.room, self.seq, ReadLimit::bytes(BATCH_BYTES)).await?,
        };
        if frames.is_empty() && self.seq < self.topic.head() {
            let bytes = self.store.event_bytes(self.room, self.seq + 1).await?;
            return Ok(bytes.map_or(Batch::CaughtUp, |bytes| Batch::Large { bytes }));
        }
        Ok(self.advance(frames))
    }

    /// Reads the event that [`Batch::Large`] was about. A reader that keeps frames until a client has received them must
    /// limit how many bytes it keeps; that is why `next` does not read it.
    pub async fn next_large(&mut self) -> Result<Batch, StoreError> {
        let frames = match self.tail.after(self.seq, self.topic.head(), 1) {
            Some(frames) => frames,
            None => self.store.frames_after(self.room, self.seq, ReadLimit::ONE_EVENT).await?,
        };
        Ok(self.advance(frames))
    }

    fn advance(&mut self, frames: Vec<Arc<Frame>>) -> Batch {
        match frames.last() {
            Some(last) => {
                self.seq = last.seq;
                Batch::Frames(frames)
            }
            None => Batch::CaughtUp,
        }
    }

    /// Leaves out the events up to the newest known one.
    pub fn skip_to_head(&mut self) {
        self.seq = self.topic.head();
        self.pending_reset = None;
    }

    /// Returns whether the room has events that were not returned yet. Cheap: for a notifier shared by many rooms.
    pub fn is_behind(&self) -> bool {
        self.pending_reset.is_some() || self.topic.head() > self.seq
    }

    /// Reads the head from the store again. Call it periodically: it fails for a deleted room, and finds events whose
    /// notification was lost (invariant 13).
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let head = self.store.head(&self.owner, self.room).await?;
        self.topic.raise_head(head);
        Ok(())
    }

    pub fn room(&self) -> RoomId {
        self.room
    }

    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The newest seq known without a read from the store.
    pub fn head(&self) -> Seq {
        self.topic.head().max(self.seq)
    }

    pub fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.store.notify_hub().unsubscribe_reader(self.room, &self.notifier);
        self.store.tails().release(self.room, std::mem::take(&mut self.tail));
    }
}
