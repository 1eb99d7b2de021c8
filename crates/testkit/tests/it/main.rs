//! Tests of the doubles: the model vendors over HTTP, the CLIs over their pipes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy treats only #[test] functions as tests, not their helpers"
)]

mod faults;
mod host;
mod mcp;
mod models;
mod replay;
