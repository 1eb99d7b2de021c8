//! The MCP client manager and the MCP server against real counterparts and against the protocol's own examination.
//! `cargo xtask test mcp` brings them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy takes only functions marked #[test] for tests, not what they share"
)]

mod agent;
mod another;
mod conformance;
mod everything;
mod local;
mod scene;
mod server_conformance;
