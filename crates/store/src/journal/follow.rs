//! The one reader: a cursor over tail and store. Live, lagging and reconnecting readers are the same code.

use super::{frame::Frame, tail::Tail};
use crate::{Error, open::Store};
use domain::{
    ids::RoomId,
    owner::Owner,
    position::{Position, Seq},
};
use std::sync::Arc;
use tokio::sync::Notify;

/// Rings when a followed room moved. One bell may serve many followers: whoever wakes looks at all of them.
#[derive(Debug, Default)]
pub struct Bell(Notify);

impl Bell {
    pub(crate) fn ring(&self) {
        // A permit is kept when nobody waits yet, so that a ring between a look and a wait is not lost.
        self.0.notify_one();
    }

    pub async fn rung(&self) {
        self.0.notified().await;
    }
}

#[derive(Debug)]
pub enum Batch {
    /// The client's position is not in this journal (another epoch, or beyond the head): it must forget what it has,
    /// the next batch begins at seq 1.
    Reset {
        head: Seq,
    },
    Frames(Vec<Arc<Frame>>),
    /// Nothing more for now; wait for the bell.
    CaughtUp,
}

pub struct Follower {
    store: Store,
    owner: Owner,
    room: RoomId,
    /// The last seq handed out.
    seq: Seq,
    pending_reset: Option<Seq>,
    tail: Arc<Tail>,
    bell: Arc<Bell>,
}

/// About what one socket write takes; a reader that wants more asks again.
const BATCH_BYTES: usize = 64 * 1024;

impl Follower {
    /// Registers interest first, then looks: an event committed in between is in what is read (never in a gap).
    pub(crate) async fn open(
        store: &Store,
        owner: &Owner,
        room: RoomId,
        after: &Position,
        bell: Arc<Bell>,
    ) -> Result<Self, Error> {
        let tail = store.tails().of(room);
        tail.attach(&bell);
        let (store, owner) = (store.clone(), owner.clone());
        let mut follower = Self { store, owner, room, seq: after.seq, pending_reset: None, tail, bell };
        let head = follower.store.head(&follower.owner, room).await?;
        follower.tail.reach(head);
        let foreign = after.epoch.as_ref().is_some_and(|epoch| epoch != follower.store.epoch());
        if foreign || after.seq > head {
            follower.seq = 0;
            follower.pending_reset = Some(head);
        }
        Ok(follower)
    }

    pub async fn next(&mut self) -> Result<Batch, Error> {
        if let Some(head) = self.pending_reset.take() {
            return Ok(Batch::Reset { head });
        }
        let frames = match self.tail.after(self.seq, BATCH_BYTES) {
            Some(frames) => frames,
            // Nothing was written since the room came into memory, or it does not hold what comes next.
            None => self.store.frames_after(self.room, self.seq, BATCH_BYTES).await?,
        };
        match frames.last() {
            Some(last) => {
                self.seq = last.seq;
                Ok(Batch::Frames(frames))
            }
            None => Ok(Batch::CaughtUp),
        }
    }

    /// True when the room has moved beyond what was handed out. Cheap: for a bell that serves many rooms.
    pub fn is_behind(&self) -> bool {
        self.pending_reset.is_some() || self.tail.head() > self.seq
    }

    /// Asks the store anew, for doors to call now and then: a room that is gone ends its readers, and one that another
    /// server writes to, whose bell does not ring here, has late readers instead of stuck ones (invariant 13).
    pub async fn look_again(&self) -> Result<(), Error> {
        let head = self.store.head(&self.owner, self.room).await?;
        self.tail.reach(head);
        Ok(())
    }

    pub fn room(&self) -> RoomId {
        self.room
    }

    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The newest seq known here without asking the store.
    pub fn head(&self) -> Seq {
        self.tail.head().max(self.seq)
    }

    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.tail.detach(&self.bell);
        self.store.tails().release(self.room, std::mem::take(&mut self.tail));
    }
}
