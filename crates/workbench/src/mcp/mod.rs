//! The MCP client: connects to servers, lists and calls their tools, and restarts servers that end.
//!
//! ```text
//!  McpManager ── one McpServerSlot per config ──▶ McpConnection ──▶ rmcp's client ──▶ transport
//!     tools, call, status, test                      handshake, pages, deadlines         stdio · sse · in-process · http
//! ```
//!
//! Servers are not trusted: every wait has a deadline, everything that grows has a limit, and invalid parts are left
//! out with a reason instead of failing the rest (`docs/mcp.md` has the list). Must not know rooms, tiers, trust or
//! variables: a config is used as it is.
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
mod placed;
mod schema;
mod server_message;
mod settings;
mod slot;
pub mod transport;

pub use connection::{CallOptions, McpProgress};
pub use content::{McpCallResult, McpContent, McpNotice};
pub use failure::McpFailure;
pub use health::{McpServerLogs, McpServerState, McpServerStatus, ServerLogLine};
pub use listing::{McpServerIdentity, McpTool, McpToolAnnotations, McpToolListing, QuarantinedTool};
pub use manager::{McpManager, McpTestError, McpTestReport};
pub use placed::PlacedMcpServer;
pub use settings::{McpClientSettings, ProtocolEra};
pub use transport::InProcessServer;
