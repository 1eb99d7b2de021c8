//! What can go wrong between us and a server, told apart by what to do about it.

use reqwest::StatusCode;
use serde::Deserialize;
use std::{io, time::Duration};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("nothing answers at {server}; start it with: greenroom serve")]
    Unreachable { server: String },
    /// Whether the request arrived is not known.
    #[error("the connection to {server} was lost: {detail}")]
    Lost { server: String, detail: String },
    /// Asked to come back later.
    #[error("{detail}")]
    Busy { detail: String, retry_after: Option<Duration> },
    #[error("{detail} ({code})")]
    Refused { status: StatusCode, code: String, detail: String },
    #[error("what answers at {server} is not a Greenroom that this version can talk to: {detail}")]
    Foreign { server: String, detail: String },
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: Option<String>,
    title: Option<String>,
}

impl Error {
    pub fn lost(server: &str, detail: &str) -> Self {
        Self::Lost { server: server.to_owned(), detail: detail.to_owned() }
    }

    pub fn foreign(server: &str, detail: &str) -> Self {
        Self::Foreign { server: server.to_owned(), detail: detail.to_owned() }
    }

    pub fn from_transport(server: &str, error: reqwest::Error) -> Self {
        let error = anyhow::Error::new(error.without_url());
        let refused = |cause: &io::Error| cause.kind() == io::ErrorKind::ConnectionRefused;
        if error.chain().any(|cause| cause.downcast_ref().is_some_and(refused)) {
            return Self::Unreachable { server: server.to_owned() };
        }
        if error.downcast_ref().is_some_and(reqwest::Error::is_timeout) {
            return Self::lost(server, "no answer in time");
        }
        Self::lost(server, &error.root_cause().to_string())
    }

    pub fn from_problem(server: &str, status: StatusCode, body: &[u8]) -> Self {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => {
                let detail = problem.detail.or(problem.title).unwrap_or_else(|| status.to_string());
                Self::Refused { status, code: problem.code, detail }
            }
            Err(_) => Self::foreign(server, &format!("it answered {status}")),
        }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Trying again later can help.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::Busy { .. })
    }
}
