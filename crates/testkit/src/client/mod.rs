//! A client from outside: it knows a running server only by its address and speaks HTTP, SSE and WebSocket to it.
//!
//! Shared by the crash harness, the benchmark and the door tests. It must never look into the store or the engine: what
//! it cannot see through a door, a user cannot see either. Every wait has a deadline. Start at [`Api`]; [`SseReader`] and
//! [`WsReader`] follow a room and remember their position, so that a caller can come back after a broken connection.

mod api;
mod error;
mod event;
mod frame;
mod process;
mod sse;
mod websocket;

pub use api::{Api, Cancelled, HistoryPage, Page, Post, Posted, PostedMessage, PostedRun};
pub use error::Error;
pub use event::{Place, Said, SeenEvent};
pub use frame::{Frame, FrameParser};
pub use process::{Launch, ServerProcess};
pub use sse::SseReader;
pub use websocket::WsReader;
