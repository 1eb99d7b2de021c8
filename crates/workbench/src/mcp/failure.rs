//! Why an MCP server could not be used. An error returned by a tool is a result, not a failure.

use crate::{egress::EgressRefused, outside::ErrorText, process::BackoffRefusal};
use std::time::Duration;

/// The messages continue the sentence `the MCP server "name" …`. What they quote of the server is cut.
#[derive(Clone, Debug, thiserror::Error)]
pub enum McpFailure {
    #[error("could not be started: {0}")]
    Start(ErrorText),
    #[error("could not be reached: {0}")]
    Unreachable(ErrorText),
    #[error("is not used: {0}")]
    EgressRefused(EgressRefused),
    #[error("failed the MCP handshake: {0}")]
    Handshake(ErrorText),
    #[error("uses protocol version {version:?}; supported are {known}")]
    Version { version: String, known: String },
    #[error("requires a login or another key: {reason}")]
    Unauthorized {
        reason: ErrorText,
        /// The server's `WWW-Authenticate` header.
        challenge: Option<String>,
    },
    #[error("did not {what} within {} s{detail}", seconds(*after))]
    Timeout { what: &'static str, after: Duration, detail: String },
    /// Whether the tool did its work is not known, so the call is not retried.
    #[error("ended during a call, whose outcome is unknown: {0}")]
    Crashed(ErrorText),
    #[error("is not restarted yet: {refusal}{last}")]
    BackingOff { refusal: BackoffRefusal, last: ErrorText },
    #[error("sent an invalid answer: {0}")]
    BadAnswer(ErrorText),
    #[error("was called, but the call was canceled")]
    Cancelled,
    #[error("is not started, because Greenroom is stopping")]
    Closing,
}

impl McpFailure {
    /// Returns a stable error code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Start(_) => "mcp_start_failed",
            Self::Unreachable(_) => "mcp_unreachable",
            Self::EgressRefused(_) => "mcp_egress_refused",
            Self::Handshake(_) => "mcp_handshake_failed",
            Self::Version { .. } => "mcp_version_unsupported",
            Self::Unauthorized { .. } => "mcp_unauthorized",
            Self::Timeout { .. } => "mcp_timeout",
            Self::Crashed(_) => "mcp_crashed",
            Self::BackingOff { .. } => "mcp_resting",
            Self::BadAnswer(_) => "mcp_bad_answer",
            Self::Cancelled => "mcp_cancelled",
            Self::Closing => "mcp_closing",
        }
    }
}

fn seconds(duration: Duration) -> f64 {
    // Two decimals are enough for people.
    (duration.as_secs_f64() * 100.0).round() / 100.0
}
