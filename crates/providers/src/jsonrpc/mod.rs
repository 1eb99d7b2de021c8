//! The one line-framed JSON-RPC peer: JSON on each line, both sides may ask, both sides may tell.
//!
//! It knows nothing of any agent's methods. Start with [`Connection::start`]: the connection owns the two tasks that read
//! and write, the [`Peer`] speaks, and what the other side says by itself comes out of the receiver. Answers to our own
//! requests do not: they are given to whoever asked, by id.
//!
//! Whoever waits for an answer must go on emptying the receiver meanwhile: the answer may lie behind what is waiting
//! there. What is sent never waits for the other side to read; a program that reads nothing makes the queue full, and
//! then the call fails.

mod connection;
#[cfg(test)]
pub mod far_end;
mod message;
mod peer;
#[cfg(test)]
mod tests;

pub use connection::{CloseReason, Connection, Incoming};
pub use message::{Dialect, RpcError};
pub use peer::{CallError, Peer};
