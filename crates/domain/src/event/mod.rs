//! The event vocabulary: the only types that are both stored and sent.
//!
//! `body` defines the event types, `envelope` the JSON of one journal entry, `schema` its OpenAPI schema. The JSON of an
//! event is written once, when the event is committed or read, and every transport sends the same bytes.

mod body;
mod envelope;
mod schema;

pub use body::*;
pub use envelope::{Event, NewEvent};
