//! The journal: append, read after a position, follow the tail.
//!
//! `writer` groups the commits that arrived during the last transaction, assigns seqs inside the transaction, commits
//! with the data synced, and only then publishes and acknowledges (invariants 1 and 2). `tail` keeps recent events as
//! shared bytes; `follow` is the one reader of a room; `sqlite` and `postgres` are the statements that differ.

mod changes;
mod checkpoint;
mod fact_cache;
mod follow;
mod frame;
mod plan;
mod postgres;
mod read;
mod sqlite;
mod tail;
mod writer;

pub use crate::commit::{ClaimOffer, Commit, Committed, Guard, RowChange, RunEnding, SeqRef, StopRequest, TapeHold};
pub(crate) use checkpoint::Checkpointer;
pub use follow::{Batch, Follower};
pub use frame::{Frame, sse_name};
pub use read::Page;
pub(crate) use sqlite::PREPARE_WRITE_CONNECTION;
pub(crate) use tail::Tails;
pub(crate) use writer::{CommitRequest, JournalWriter};
