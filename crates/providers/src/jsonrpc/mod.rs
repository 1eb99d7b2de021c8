//! Line-framed JSON-RPC over pipes: one JSON message per line, with requests and notifications in both directions.
//!
//! This module knows nothing about any agent's methods. Start with [`RpcConnection::start`]: the connection owns the
//! reader and writer tasks, [`RpcPeer`] sends, and the receiver yields the requests and notifications of the other
//! side. Responses to our requests go to the caller, matched by id.
//!
//! While a caller waits for a response, the receiver must be drained, because the response may be queued behind other
//! messages. Sending never blocks: if the program does not read its input, the queue fills up and the call fails.

mod connection;
#[cfg(test)]
pub mod fake_peer;
mod message;
mod peer;
#[cfg(test)]
mod tests;

pub use connection::{CloseReason, RpcConnection, RpcIncoming};
pub use message::{RpcError, RpcFormat};
pub use peer::{CallError, RpcPeer};
