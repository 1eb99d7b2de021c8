//! Why a command was refused or failed.

use domain::{budget::BudgetStatus, permission::Forbidden, skill::SkillFinding};
use std::borrow::Cow;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("not found")]
    NotFound,
    /// The caller's mistake; the text tells what to change.
    #[error("{0}")]
    Invalid(String),
    /// The same, with the part of the body that is at fault.
    #[error("{detail}")]
    InvalidField { pointer: Cow<'static, str>, detail: String },
    /// A valid request that this server cannot carry out; `pointer` is the part of the body that is at fault.
    #[error("{detail}")]
    Refused { pointer: Cow<'static, str>, detail: String },
    /// A skill that breaks a rule: at least one of the findings is an error.
    #[error("{}", first_message(.0))]
    Findings(Vec<SkillFinding>),
    /// The actor's role lacks a permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// Only the operator of this server may do it.
    #[error("{0}")]
    OperatorOnly(String),
    /// A request to an MCP server failed; `code` names the kind of failure.
    #[error("{message}")]
    McpFailed { code: &'static str, message: String },
    /// A request to a model API failed; the text tells why and what to do.
    #[error("{0}")]
    ProviderFailed(String),
    #[error("{0}")]
    Conflict(String),
    #[error("an agent is still answering in this room; wait, cancel it, or post with when_busy=interrupt or enqueue")]
    RoomBusy,
    #[error("this workspace already has {limit} runs that wait or execute, the most it may have; wait, or cancel some")]
    QueueFull { limit: usize },
    #[error("{limit} cells or more are planned in this room; wait, cancel the room, or post with when_busy=interrupt")]
    PlanFull { limit: usize },
    #[error("this workspace has {limit} rooms, the most it may have; delete some")]
    TooManyRooms { limit: usize },
    #[error(
        "this workspace would store more than {} MB, the most it may have; delete rooms, files or skills, or ask the operator",
        .limit / 1_000_000
    )]
    StorageFull { limit: u64 },
    /// The project or the disk is full; the text tells what to do.
    #[error("{0}")]
    ProjectFull(String),
    #[error("the workspace sends or receives {limit} times already; try again when a transfer has ended")]
    TooManyTransfers { limit: usize },
    /// Too many commands of the workspace have processes; the text tells what to do.
    #[error("{0}")]
    TooManyCommands(String),
    /// There is nothing at a path of a project.
    #[error("{0}")]
    NoSuchFile(String),
    #[error("{}", budget_message(.0))]
    BudgetExceeded(Box<BudgetStatus>),
    #[error("this Idempotency-Key was used for a different request; use a new key for a new request")]
    KeyConflict,
    #[error("the run has already ended")]
    RunEnded,
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Unavailable(String),
    #[error(transparent)]
    StoreUnavailable(store::StoreFailure),
    /// A task of the engine panicked, or the server is stopping.
    #[error("the work was interrupted")]
    TaskFailed(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Store(store::StoreError),
}

impl EngineError {
    /// `pointer` is the JSON pointer (RFC 6901) of the field of the body that is wrong.
    pub fn invalid_field(pointer: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self::InvalidField { pointer: pointer.into(), detail: detail.into() }
    }

    /// The same for a field that is right, but names what this server does not have or cannot do.
    pub fn refused(pointer: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self::Refused { pointer: pointer.into(), detail: detail.into() }
    }
}

impl From<store::StoreError> for EngineError {
    fn from(error: store::StoreError) -> Self {
        match error {
            store::StoreError::NotFound => Self::NotFound,
            store::StoreError::RoomBusy => Self::RoomBusy,
            store::StoreError::KeyUsed => Self::KeyConflict,
            store::StoreError::Fenced => Self::RunEnded,
            store::StoreError::AgentNameTaken(_)
            | store::StoreError::AgentChanged
            | store::StoreError::SkillNameTaken(_)
            | store::StoreError::SkillChanged
            | store::StoreError::McpServerExists(_)
            | store::StoreError::ProviderExists(_)
            | store::StoreError::McpServerLimit => Self::Conflict(error.to_string()),
            store::StoreError::NoSuchAgent(_) => Self::Invalid(error.to_string()),
            store::StoreError::LimitReached(detail) => Self::Refused { pointer: "".into(), detail },
            store::StoreError::Unavailable(failure) => Self::StoreUnavailable(failure),
            store::StoreError::RunStatusRefused
            | store::StoreError::UnsettledSignals
            | store::StoreError::TapeChanged
            | store::StoreError::Unreadable(_)
            | store::StoreError::Start(_) => Self::Store(error),
        }
    }
}

fn first_message(findings: &[SkillFinding]) -> &str {
    findings.first().map_or("the skill breaks a rule", |finding| &finding.message)
}

/// Says which budget is used up and when it starts again. Also the message of a run that a budget has ended.
pub(crate) fn budget_message(status: &BudgetStatus) -> String {
    let BudgetStatus { budget, spent, resets_at } = status;
    let again = match resets_at {
        Some(at) => format!("it starts again at {at}"),
        None => "it does not start again".to_owned(),
    };
    let (scope, limit, spent) = (budget.scope.as_str(), budget.limit.as_dollars(), spent.as_dollars());
    format!(
        "the budget of this {scope} is used up: ${spent:.2} of ${limit:.2} are spent; {again}, or ask an admin of the \
         workspace to raise it"
    )
}
