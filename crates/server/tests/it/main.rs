//! The plumbing of the server, without store or engine: what every door owes to whoever knocks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions as well")]

mod auth;
mod bodies;
mod doors;
mod origin;
mod sockets;
mod stage;
