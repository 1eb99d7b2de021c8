//! The client side of MCP: reaches servers, lists their tools, calls them, and brings back those that end.
//!
//! ```text
//!  Manager ── one Slot per config ──▶ Connection ──▶ rmcp's client core ──▶ stdio · sse · in-process (ours) · http (rmcp's)
//!     tools, call, status, test        handshake, pages, deadlines            bounded lines, kill domains
//! ```
//!
//! What a server says is never trusted: everything that is waited for has a deadline, everything that grows has a limit,
//! and what cannot be understood is left out with its reason instead of failing the rest (`docs/mcp.md` has the list).
//! Knows nothing of rooms, tiers, trust or variables: a config that comes here is to be used as it is.
//!
//! Start at `manager`.

mod connection;
mod content;
mod failure;
mod handler;
mod health;
mod lines;
mod listing;
mod manager;
mod open;
mod schema;
mod settings;
mod slot;
pub mod transport;
mod wire;

pub use connection::{CallOptions, Progress};
pub use content::{CallResult, Content, Notice};
pub use failure::Failure;
pub use health::{LogLine, Logs, State, Status};
pub use listing::{Annotations, Identity, Listing, Quarantined, Tool};
pub use manager::{Manager, TestReport, Trouble};
pub use settings::{Era, Settings};
pub use transport::Inside;
