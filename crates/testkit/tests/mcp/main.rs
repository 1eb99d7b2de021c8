//! Our MCP client against real servers, our MCP server against real clients, and both against the protocol's own
//! examination. `cargo xtask test mcp` brings what is needed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy takes only functions marked #[test] for tests, not what they share"
)]

mod agent;
mod another;
mod conformance;
mod everything;
mod house;
mod local;
mod scene;
mod server_conformance;
mod server_inspector;
mod server_sdks;
