//! How messages get to a server and back. Streamable HTTP is rmcp's; the others are ours.

mod http;
mod in_process;
mod sse;
mod stdio;

pub use http::{client, streamable};
pub use in_process::{InProcess, Inside};
pub use sse::{ConnectError, Sse};
pub use stdio::{Stdio, last_words};

use std::sync::{Arc, OnceLock};

/// Why a connection is over, from the moment on that this is known.
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<OnceLock<String>>);

impl Ending {
    /// The first reason stays.
    pub fn set(&self, reason: impl Into<String>) {
        self.0.get_or_init(|| reason.into());
    }

    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
