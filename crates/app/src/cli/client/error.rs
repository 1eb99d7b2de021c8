//! Errors of the API client, grouped by how to handle them.

use reqwest::StatusCode;
use rustls::CertificateError;
use serde::Deserialize;
use std::{io, time::Duration};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("nothing answers at {server}; start it with: greenroom serve")]
    Unreachable { server: String },
    #[error(
        "the certificate of {server} is not trusted: {detail}; if it is self-signed, compare the fingerprint that the server \
         printed at its start and pass it with --fingerprint, or pass the certificate with --ca"
    )]
    Untrusted { server: String, detail: String },
    /// The connection was lost; it is unknown whether the server got the request.
    #[error("the connection to {server} was lost: {detail}")]
    ConnectionLost { server: String, detail: String },
    /// The server asks to retry later.
    #[error("{detail}")]
    Busy { detail: String, retry_after: Option<Duration> },
    #[error("{detail} ({code})")]
    Refused { status: StatusCode, code: String, detail: String },
    #[error("what answers at {server} is not a Greenroom that this version can talk to: {detail}")]
    Incompatible { server: String, detail: String },
}

#[derive(Deserialize)]
struct ApiProblem {
    code: String,
    detail: Option<String>,
    title: Option<String>,
}

impl ClientError {
    pub fn connection_lost(server: &str, detail: &str) -> Self {
        Self::ConnectionLost { server: server.to_owned(), detail: detail.to_owned() }
    }

    pub fn incompatible(server: &str, detail: &str) -> Self {
        Self::Incompatible { server: server.to_owned(), detail: detail.to_owned() }
    }

    pub fn from_transport(server: &str, error: reqwest::Error) -> Self {
        let error = anyhow::Error::new(error.without_url());
        let refused = |cause: &io::Error| cause.kind() == io::ErrorKind::ConnectionRefused;
        if error.chain().any(|cause| cause.downcast_ref().is_some_and(refused)) {
            return Self::Unreachable { server: server.to_owned() };
        }
        if let Some(rustls::Error::InvalidCertificate(reason)) = error.chain().find_map(tls_error) {
            let detail = match reason {
                CertificateError::ApplicationVerificationFailure => "it is not the expected one".to_owned(),
                CertificateError::UnknownIssuer => "its authority is unknown".to_owned(),
                other => other.to_string(),
            };
            return Self::Untrusted { server: server.to_owned(), detail };
        }
        if error.downcast_ref().is_some_and(reqwest::Error::is_timeout) {
            return Self::connection_lost(server, "no answer in time");
        }
        Self::connection_lost(server, &error.root_cause().to_string())
    }

    pub fn from_problem(server: &str, status: StatusCode, body: &[u8]) -> Self {
        match serde_json::from_slice::<ApiProblem>(body) {
            Ok(problem) => {
                let detail = problem.detail.or(problem.title).unwrap_or_else(|| status.to_string());
                Self::Refused { status, code: problem.code, detail }
            }
            Err(_) => Self::incompatible(server, &format!("it answered {status}")),
        }
    }

    /// The stable error code of the server.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::ConnectionLost { .. } | Self::Busy { .. })
    }
}

/// The error of TLS inside errors of IO, which do not name it as their source.
fn tls_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    match cause.downcast_ref::<io::Error>() {
        Some(outer) => tls_error(outer.get_ref()?),
        None => cause.downcast_ref(),
    }
}
