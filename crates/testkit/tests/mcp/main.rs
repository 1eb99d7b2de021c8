//! Our MCP client against real servers, our MCP server against real clients, and both against the conformance suite.
//! `cargo xtask test mcp` installs the requirements.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy treats only #[test] functions as tests, not their helpers"
)]

mod agent;
mod another;
mod conformance;
mod everything;
mod fixture;
mod local;
mod server_conformance;
mod server_inspector;
mod server_sdks;
mod test_greenroom;
