//! One atomic write to one room: a guard, the events to append, and the row changes that go with them.
//!
//! Plain data: `catalog` and `queue` turn each row change into a `Statement`, `journal` plans commits and stores them.
//! This module must not know any of the three.

mod context;
mod row_change;
mod statement;

pub(crate) use context::{ChangeContext, FIRST_FENCE};
pub use row_change::{
    ClaimOffer, IdempotentRequest, ProviderSessionRecord, RowChange, RunEnding, StopRequest, TapeHold,
};
pub(crate) use statement::{Refusal, Statement, Value, bind_all, without_nul};

use domain::{
    event::NewEvent,
    ids::{RoomId, RunId},
    position::Seq,
    time::Timestamp,
};

#[derive(Debug)]
pub struct Commit {
    pub room_id: RoomId,
    pub guard: Guard,
    pub events: Vec<NewEvent>,
    pub changes: Vec<RowChange>,
}

/// Checked inside the transaction; if it fails, nothing of the commit is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    None,
    /// The writer holds the run's current lease (invariant 11).
    Lease {
        run_id: RunId,
        fence: u64,
    },
    /// The run is queued and not claimed.
    Unclaimed {
        run_id: RunId,
    },
    /// The room has no unfinished run.
    RoomIdle,
}

/// A seq that a row refers to: a known one, or that of the commit's n-th event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeqRef {
    Known(Seq),
    Event(usize),
}

/// The receipt of a commit: its events are on disk as `first..first + count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The seq of the first event; the room's head if the commit has no events.
    pub first_seq: Seq,
    pub at: Timestamp,
    /// The fence of the claim, if the worker's offer was granted: it now holds the run, and the run has started.
    pub claimed_fence: Option<u64>,
}
