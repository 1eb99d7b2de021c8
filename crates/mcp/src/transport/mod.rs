//! How MCP clients reach the handler: `streamable` is `/mcp`, with `direct` for what is answered at once; `sse` is the older
//! `/sse` and `/message`. Both keep their sessions in `sessions`, where each belongs to who began it, and what is to be said in
//! them in an `outbox`.
//!
//! Host, Origin, credentials and rates are looked at before anything comes here.

pub mod direct;
pub mod line;
pub mod message;
mod outbox;
pub mod patience;
pub mod reply;
pub mod sessions;
pub mod sse;
pub mod streamable;

pub use reply::{Body, Reply};
