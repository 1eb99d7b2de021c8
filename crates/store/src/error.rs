//! What can go wrong while remembering.

use domain::ids::AgentId;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown, deleted, or someone else's: they look the same.
    #[error("not found")]
    NotFound,
    #[error("an agent named {0:?} exists already")]
    NameTaken(String),
    #[error("a skill named {0:?} exists already")]
    SkillTaken(String),
    /// It was made from a version that is not the newest any more.
    #[error("the skill has changed meanwhile; look at its newest version and try again")]
    SkillChanged,
    #[error("an MCP server named {0:?} exists already")]
    McpServerExists(String),
    #[error("there is no agent {0}")]
    NoSuchAgent(AgentId),
    /// The lease that this write relied on is not held any more, or the run has ended.
    #[error("the run's lease is gone: it ended, or someone else has taken it over")]
    Fenced,
    #[error("the room is busy")]
    RoomBusy,
    /// The same Idempotency-Key was used before.
    #[error("this Idempotency-Key has been used")]
    KeyUsed,
    /// A limit on how much one owner may have; the text says which and what to do.
    #[error("{0}")]
    Full(String),
    /// The database cannot be written or read now: full disk, lost connection, shutting down.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    #[error("the database holds something this version cannot read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Start(String),
}

impl Error {
    /// The same failure for another of those it hit.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::NotFound => Self::NotFound,
            Self::Fenced => Self::Fenced,
            Self::RoomBusy => Self::RoomBusy,
            Self::KeyUsed => Self::KeyUsed,
            Self::Full(why) => Self::Full(why.clone()),
            Self::Unavailable(why) => Self::Unavailable(why.clone()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::RowNotFound => Self::NotFound,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Unreadable(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// A count or seq from the database. Both engines store signed numbers; ours are never negative.
pub(crate) fn unsigned(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| Error::Unreadable(format!("a negative count: {number}")))
}

/// The other way; `Position` and the seq counter keep below this bound.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
