//! The live feed: one reader (`store`'s follower, a cursor over tail and store), three doors on it: `sse`, `websocket`
//! and `page`. All of them give the same JSON for the same seq, because they share its bytes.
//!
//! `live` waits for the next thing to tell a single-room reader; `dialect` retells a run in the simple words of
//! `/api/execute`; `roster` tells a WebSocket of all rooms at once.

mod dialect;
mod live;
pub mod page;
mod roster;
pub mod sse;
pub mod websocket;

pub use dialect::Dialect;
pub use live::Live;
