//! Tests of the sandbox on this machine. `hostile` tries to get out of it, `session` uses it as a server does.
//!
//! If the tests run as root, every attack runs as root, as root without user namespaces, and as a temporary user.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod hostile;
mod probe;
mod process_list;
mod scene;
mod session;
#[path = "../shared/mod.rs"]
mod shared;
