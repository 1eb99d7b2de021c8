//! What can go wrong between a client and a server, told apart by what the caller should do about it.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered, and said no.
    #[error("{status} {code}: {detail}")]
    Problem { status: u16, code: String, detail: String },
    /// No answer, or half of one: the connection is gone and what it carried may or may not have happened.
    #[error("connection lost: {0}")]
    Connection(String),
    #[error("nothing arrived within {0:?}")]
    Silence(Duration),
    /// The server answered something that the API does not allow. Always a defect.
    #[error("not what the API promises: {0}")]
    Shape(String),
}

impl Error {
    pub fn shape(what: impl std::fmt::Display) -> Self {
        Self::Shape(what.to_string())
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether trying the same again, later, can help.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Silence(_))
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        // The outermost text of reqwest hides the cause ("error sending request"), which is what one wants to read.
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

impl From<tokio_tungstenite::tungstenite::Error> for Error {
    fn from(error: tokio_tungstenite::tungstenite::Error) -> Self {
        Self::Connection(error.to_string())
    }
}
