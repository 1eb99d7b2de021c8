//! Transports to MCP servers. Streamable HTTP is rmcp's with our HTTP client; the others are ours.

mod boxed;
mod http;
mod in_process;
mod sse;
mod stdio;

pub use boxed::BoxedTransport;
pub use http::{http_client, streamable_http_transport};
pub use in_process::{InProcessServer, InProcessTransport};
pub use sse::{SseConnectError, SseTransport};
pub use stdio::{StdioTransport, stderr_excerpt};

use crate::outside::ErrorText;
use std::sync::{Arc, OnceLock};

/// Why a connection ended, once that is known.
#[derive(Clone, Debug, Default)]
pub struct EndReason(Arc<OnceLock<ErrorText>>);

impl EndReason {
    /// The first reason wins.
    pub fn set(&self, reason: impl Into<ErrorText>) {
        self.0.get_or_init(|| reason.into());
    }

    pub fn get(&self) -> Option<&str> {
        self.0.get().map(|reason| &**reason)
    }
}
