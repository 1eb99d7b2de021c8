//! The journal: append, read after a position, follow the tail.
//!
//! `writer` gathers what arrived while the last transaction was committing, gives out seqs inside the transaction,
//! commits with the data synced, and only then acknowledges and shows (invariants 1 and 2). `tail` keeps what was just
//! written as shared bytes; `follow` is the one reader of a room, `watch` tells of many; `sqlite` and `postgres` are the statements that differ.

mod checkpoint;
mod commit;
mod follow;
mod frame;
mod memory;
mod plan;
mod postgres;
mod read;
mod sqlite;
mod statement;
mod tail;
mod watch;
mod writer;

pub(crate) use checkpoint::Checkpointer;
pub use commit::{Change, ClaimFor, Commit, Committed, Ending, Guard, SeqOf, Stop};
pub use follow::{Batch, Bell, Follower};
pub use frame::Frame;
pub(crate) use plan::{Context, FIRST_FENCE};
pub(crate) use read::EventRow;
pub use read::Page;
pub(crate) use statement::Statement;
pub(crate) use tail::Tails;
pub(crate) use watch::{List, Watches};
pub use watch::{Moved, Watch};
pub(crate) use writer::{Request, Writer};
