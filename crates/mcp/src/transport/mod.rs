//! The transports: `streamable` is `/mcp`, with `direct` for quick requests; `sse` is the older `/sse` and `/message`.
//! Both keep their sessions in `sessions`, where each belongs to the actor that created it, and outgoing messages
//! in an `outbox`.
//!
//! The caller has already checked Host, Origin, credentials and rates.

pub mod channel;
pub mod direct;
pub mod message;
mod outbox;
mod rejected;
pub mod response;
pub mod sessions;
pub mod slow_response;
pub mod sse;
pub mod streamable;

pub use response::{McpResponse, McpResponseBody};
