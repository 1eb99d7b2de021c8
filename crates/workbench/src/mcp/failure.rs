//! Why a server could not be used. What a tool itself refuses is no failure but a result.

use crate::process::Refusal;
use std::time::Duration;

/// The texts go on after "the MCP server "name" ".
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error("cannot be started: {0}")]
    Start(String),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("did not greet as an MCP server does: {0}")]
    Handshake(String),
    #[error("speaks the version {version:?} of the protocol; known here are {known}")]
    Version { version: String, known: String },
    #[error("wants a login or another key: {reason}")]
    Unauthorized {
        reason: String,
        /// Its `WWW-Authenticate`, for whoever can follow it.
        challenge: Option<String>,
    },
    #[error("did not {what} within {} s{detail}", seconds(*after))]
    Timeout { what: &'static str, after: Duration, detail: String },
    /// Whether the tool did its work is not known, so it is not called again by itself.
    #[error("ended in the middle of a call, whose outcome is unknown: {0}")]
    Crashed(String),
    #[error("is given a rest: {refusal}{last}")]
    Resting { refusal: Refusal, last: String },
    #[error("sent an answer that cannot be understood: {0}")]
    BadAnswer(String),
    #[error("was not waited for any longer")]
    Cancelled,
    #[error("is not started any more, because this server stops")]
    Closing,
}

impl Failure {
    /// Stable.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Start(_) => "mcp_start_failed",
            Self::Unreachable(_) => "mcp_unreachable",
            Self::Handshake(_) => "mcp_handshake_failed",
            Self::Version { .. } => "mcp_version_unsupported",
            Self::Unauthorized { .. } => "mcp_unauthorized",
            Self::Timeout { .. } => "mcp_timeout",
            Self::Crashed(_) => "mcp_crashed",
            Self::Resting { .. } => "mcp_resting",
            Self::BadAnswer(_) => "mcp_bad_answer",
            Self::Cancelled => "mcp_cancelled",
            Self::Closing => "mcp_closing",
        }
    }
}

fn seconds(duration: Duration) -> f64 {
    // Two digits are enough for people.
    (duration.as_secs_f64() * 100.0).round() / 100.0
}
