//! The event vocabulary: the only types that are both stored and sent.
//!
//! `body` says what can happen, `envelope` how one entry of a journal looks as JSON. The JSON of an event is written
//! once, when it is committed or read, and the same bytes go through every door.

mod body;
mod envelope;

pub use body::*;
pub use envelope::{Event, NewEvent};
