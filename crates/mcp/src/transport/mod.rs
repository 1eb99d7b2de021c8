//! How MCP clients reach the handler: `streamable` is `/mcp`, `sse` is the older `/sse` and `/message`. Both keep their sessions
//! in `sessions`, where each belongs to who began it.
//!
//! Host, Origin, credentials and rates are looked at before anything comes here.

pub mod message;
pub mod patience;
pub mod reply;
pub mod sessions;
pub mod sse;
pub mod streamable;

pub use reply::{Body, Reply};
