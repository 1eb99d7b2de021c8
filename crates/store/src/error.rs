//! Errors of the store.

use domain::ids::AgentId;

pub type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Unknown, deleted, or owned by someone else: they look the same.
    #[error("not found")]
    NotFound,
    #[error("an agent named {0:?} already exists")]
    AgentNameTaken(String),
    #[error("a skill named {0:?} already exists")]
    SkillNameTaken(String),
    /// The change was based on a version that is no longer the newest.
    #[error("the skill has changed in the meantime; reload its newest version and try again")]
    SkillChanged,
    #[error("an MCP server named {0:?} already exists")]
    McpServerExists(String),
    #[error("agent {0} does not exist")]
    NoSuchAgent(AgentId),
    /// The lease that this write relied on is no longer held, or the run has ended.
    #[error("the run's lease was lost: the run ended, or another worker has taken it over")]
    Fenced,
    /// The run's status may not become the new one (`RunStatus::may_become`).
    #[error("the run cannot change to this status: it has ended, or has not started")]
    RunStatusRefused,
    /// A signal that outlives its run was stored since the writer read them last.
    #[error("the run has a signal that is not settled")]
    UnsettledSignals,
    /// What is planned in the room has changed since it was read.
    #[error("the plan of the room has changed in the meantime")]
    TapeChanged,
    #[error("the room is busy")]
    RoomBusy,
    /// The same Idempotency-Key was used before.
    #[error("this Idempotency-Key has already been used")]
    KeyUsed,
    /// A limit of an owner or an object; the text says which limit and what to do.
    #[error("{0}")]
    LimitReached(String),
    /// The database cannot be read or written now: full disk, lost connection, shutdown.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    #[error("the database contains data that this version cannot read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Start(String),
}

impl StoreError {
    /// Returns the same error for another commit of the same group.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::NotFound => Self::NotFound,
            Self::Fenced => Self::Fenced,
            Self::RunStatusRefused => Self::RunStatusRefused,
            Self::UnsettledSignals => Self::UnsettledSignals,
            Self::TapeChanged => Self::TapeChanged,
            Self::RoomBusy => Self::RoomBusy,
            Self::KeyUsed => Self::KeyUsed,
            Self::LimitReached(why) => Self::LimitReached(why.clone()),
            Self::Unavailable(why) => Self::Unavailable(why.clone()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::RowNotFound => Self::NotFound,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Unreadable(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Converts a count or seq from the database. Both databases store signed numbers; ours are never negative.
pub(crate) fn unsigned(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| StoreError::Unreadable(format!("a negative count: {number}")))
}

/// Converts a count or seq for the database; `Position` and the seq counter stay below this bound.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
