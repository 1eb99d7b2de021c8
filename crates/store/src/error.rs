//! Errors of the store.

use domain::ids::AgentId;
use std::{error::Error, sync::Arc};

pub type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Unknown, deleted, or owned by someone else: they look the same.
    #[error("not found")]
    NotFound,
    #[error("an agent named {0:?} already exists")]
    AgentNameTaken(String),
    /// The change was based on settings that are no longer the newest, or the agent was deleted.
    #[error("the agent has changed in the meantime; reload it and try again")]
    AgentChanged,
    #[error("a skill named {0:?} already exists")]
    SkillNameTaken(String),
    /// The change was based on a version that is no longer the newest.
    #[error("the skill has changed in the meantime; reload its newest version and try again")]
    SkillChanged,
    #[error("an MCP server named {0:?} already exists")]
    McpServerExists(String),
    #[error("a provider named {0:?} already exists")]
    ProviderExists(String),
    #[error("you have {} MCP servers, which is the limit; delete some", crate::MAX_MCP_SERVERS)]
    McpServerLimit,
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
    #[error(transparent)]
    Unavailable(StoreFailure),
    /// The database contains data that this version cannot read.
    #[error(transparent)]
    Unreadable(StoreFailure),
    /// The store cannot be opened, copied or restored; the text says what to do.
    #[error(transparent)]
    Start(StoreFailure),
}

/// What failed, and the error that caused it. The cause is shared: all commits of a group fail for the same reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub struct StoreFailure {
    what: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreFailure {
    fn new(what: String) -> Self {
        Self { what, source: None }
    }
}

impl StoreError {
    pub fn unavailable(why: impl std::fmt::Display) -> Self {
        Self::Unavailable(StoreFailure::new(format!("the database is unavailable: {why}")))
    }

    pub fn unreadable(what: impl std::fmt::Display) -> Self {
        let what = format!("the database contains data that this version cannot read: {what}");
        Self::Unreadable(StoreFailure::new(what))
    }

    pub(crate) fn start(why: impl Into<String>) -> Self {
        Self::Start(StoreFailure::new(why.into()))
    }

    /// Adds the error that caused a failure.
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        if let Self::Unavailable(failure) | Self::Unreadable(failure) | Self::Start(failure) = &mut self {
            failure.source = Some(Arc::new(cause));
        }
        self
    }

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
            Self::Unavailable(failure) => Self::Unavailable(failure.clone()),
            Self::Unreadable(failure) => Self::Unreadable(failure.clone()),
            other => Self::unavailable(other),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let failure = match &error {
            sqlx::Error::RowNotFound => return Self::NotFound,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::unreadable("a column"),
            sqlx::Error::PoolTimedOut => Self::unavailable("no connection was free in time"),
            sqlx::Error::PoolClosed => Self::unavailable("it was closed"),
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Self::unavailable("the connection failed"),
            sqlx::Error::Database(_) => Self::unavailable("a statement failed"),
            _ => Self::unavailable("a query failed"),
        };
        failure.caused_by(error)
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::unreadable("a JSON value").caused_by(error)
    }
}

/// Converts a count or seq from the database. Both databases store signed numbers; ours are never negative.
pub(crate) fn unsigned(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| StoreError::unreadable(format!("a negative count: {number}")))
}

/// Converts a count or seq for the database; `Position` and the seq counter stay below this bound.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::StoreError;
    use std::error::Error as _;

    #[test]
    fn a_failure_keeps_its_cause_for_every_commit_of_a_group() {
        let cause = || sqlx::Error::Io(std::io::Error::other("no space left"));
        let one = StoreError::from(cause());
        for error in [one.duplicate(), one] {
            assert_eq!(error.to_string(), "the database is unavailable: the connection failed");
            assert_eq!(error.source().unwrap().to_string(), cause().to_string());
        }
        let text = StoreError::unavailable("the store is shutting down");
        assert!(text.source().is_none());
    }
}
