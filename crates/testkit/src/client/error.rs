//! Errors between a client and a server, grouped by what the caller should do.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum TestClientError {
    /// The server returned an error response.
    #[error("{status} {code}: {detail}")]
    Problem { status: u16, code: String, detail: String },
    /// No response, or a partial one: the connection was lost and the request may or may not have been executed.
    #[error("connection lost: {0}")]
    Connection(String),
    #[error("nothing arrived within {0:?}")]
    Timeout(Duration),
    /// The response violates the API. Always a defect.
    #[error("the response violates the API: {0}")]
    Unexpected(String),
}

impl TestClientError {
    pub fn unexpected(what: impl std::fmt::Display) -> Self {
        Self::Unexpected(what.to_string())
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Returns whether a retry can help.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Timeout(_))
    }
}

impl From<reqwest::Error> for TestClientError {
    fn from(error: reqwest::Error) -> Self {
        // The outermost message of reqwest ("error sending request") hides the cause, so append all causes.
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self::Connection(text)
    }
}

impl From<tokio_tungstenite::tungstenite::Error> for TestClientError {
    fn from(error: tokio_tungstenite::tungstenite::Error) -> Self {
        Self::Connection(error.to_string())
    }
}
