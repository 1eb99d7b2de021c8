//! The live feed: one reader (the store's follower, a cursor over tail and store) with three transports: `sse`,
//! `websocket` and `page`. All of them send the same JSON for the same seq, because they share its bytes.
//!
//! `room_reader` waits for the next update of a single room; `dialect` translates the events of a run;
//! `command_stream` sends the output of a command;
//! `client_socket` is a WebSocket connection; `room_list_feed` tells a WebSocket about changes of all rooms, `agent_feed` about what agents say; `socket_protocol` has
//! the WebSocket's messages.

mod agent_feed;
pub mod client_socket;
pub mod command_stream;
pub mod dialect;
pub mod page;
mod room_list_feed;
mod room_reader;
mod socket_protocol;
pub mod sse;
pub mod websocket;

pub use room_reader::RoomReader;
pub use socket_protocol::{SocketMessage, SocketRequest};

/// The size of what a function returns, such as a future, which is otherwise known only to the compiler. Ten thousand
/// idle connections hold ten thousand of them.
#[cfg(test)]
pub(crate) fn size_of_result<A, R>(_: impl FnOnce(A) -> R) -> usize {
    size_of::<R>()
}
