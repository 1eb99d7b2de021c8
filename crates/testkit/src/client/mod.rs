//! An external client: it knows a running server only by its address and uses HTTP, SSE and WebSocket.
//!
//! Shared by the crash harness, the benchmark and the endpoint tests. It must never access the store or the engine:
//! users see only the public endpoints. Every wait has a deadline. Start at [`TestClient`]; [`SseReader`] and
//! [`WsReader`] follow a room and keep their position, so that a caller can resume after a lost connection.

mod api;
mod error;
mod event;
mod frame;
mod process;
mod sse;
mod websocket;

pub use api::{AcceptedMessage, AcceptedRun, CancelReply, PostReply, SeenHistory, SeenPage, TestClient, TestPost};
pub use error::TestClientError;
pub use event::{SeenEvent, SeenHead, SeenItem};
pub use frame::{ReceivedFrame, ReceivedFrameParser};
pub use process::{ServerLaunch, TestServerProcess};
pub use sse::SseReader;
pub use websocket::{WsReader, socket_request};
