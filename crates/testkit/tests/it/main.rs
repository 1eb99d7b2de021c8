//! The doubles, as those who use them meet them: the model vendors over HTTP, the CLIs over their pipes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy takes only functions marked #[test] for tests, not what they share"
)]

mod faults;
mod host;
mod mcp;
mod models;
mod replay;
