//! Why a command was refused or failed.

use domain::skill::Finding;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not found")]
    NotFound,
    /// The caller's mistake; the text says what to change.
    #[error("{0}")]
    Invalid(String),
    /// Understood, but this server cannot do it as asked; `pointer` says which part of the body it is about.
    #[error("{detail}")]
    Refused { pointer: &'static str, detail: String },
    /// A skill that breaks a rule: at least one of these is an error.
    #[error("{}", first(.0))]
    Findings(Vec<Finding>),
    /// Only the operator of this server may do it.
    #[error("{0}")]
    OperatorOnly(String),
    /// An MCP server did not do what was asked of it; `code` is one of its failures.
    #[error("{message}")]
    McpFailed { code: &'static str, message: String },
    #[error("{0}")]
    Conflict(String),
    #[error("an agent is still answering in this room; wait, cancel it, or post with when_busy=interrupt or enqueue")]
    RoomBusy,
    #[error("this Idempotency-Key was used for a different request; use a new key for a new request")]
    KeyConflict,
    #[error("the run has ended already")]
    RunEnded,
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Unavailable(String),
    #[error(transparent)]
    Store(store::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound => Self::NotFound,
            store::Error::RoomBusy => Self::RoomBusy,
            store::Error::KeyUsed => Self::KeyConflict,
            store::Error::Fenced => Self::RunEnded,
            store::Error::NameTaken(_)
            | store::Error::SkillTaken(_)
            | store::Error::SkillChanged
            | store::Error::McpServerExists(_) => Self::Conflict(error.to_string()),
            store::Error::NoSuchAgent(_) => Self::Invalid(error.to_string()),
            store::Error::Full(detail) => Self::Refused { pointer: "", detail },
            store::Error::Unavailable(why) => Self::Unavailable(why),
            store::Error::Unreadable(_) | store::Error::Start(_) => Self::Store(error),
        }
    }
}

fn first(findings: &[Finding]) -> &str {
    findings.first().map_or("the skill breaks a rule", |finding| &finding.message)
}
