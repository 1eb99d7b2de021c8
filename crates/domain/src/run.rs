//! A run: one agent's attempt to answer one message.

use crate::{
    ids::{AgentId, MessageId, RoomId, RunId},
    time::Timestamp,
    usage::{Cost, Usage},
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// queued → running (⇄ waiting) → exactly one of four terminal statuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    WaitingForApproval,
    /// Waits for its share of something limited, such as a process of its provider.
    WaitingForQuota,
    Completed,
    Failed,
    Cancelled,
    Interrupted,
}

impl RunStatus {
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::WaitingForApproval,
        Self::WaitingForQuota,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }

    /// The whole state machine. A terminal status is never left (invariant 3).
    pub fn may_become(self, next: Self) -> bool {
        use RunStatus as S;
        match self {
            S::Queued => matches!(next, S::Running | S::Failed | S::Cancelled | S::Interrupted),
            S::Running => next != S::Queued && next != S::Running,
            S::WaitingForApproval | S::WaitingForQuota => next == S::Running || next.is_terminal(),
            S::Completed | S::Failed | S::Cancelled | S::Interrupted => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::WaitingForQuota => "waiting_for_quota",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("unknown run status {0:?}")]
pub struct UnknownRunStatus(String);

impl FromStr for RunStatus {
    type Err = UnknownRunStatus;
    fn from_str(text: &str) -> Result<Self, UnknownRunStatus> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| UnknownRunStatus(text.to_owned()))
    }
}

/// What was done to stop a run. Exists only after everything has stopped.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Receipt {
    /// The number of child processes that were ended.
    pub processes: u32,
    /// The signals sent to them, in order.
    pub signals: Vec<String>,
    /// Milliseconds from the stop request until everything had stopped.
    pub millis: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunError {
    /// A stable code, for programs.
    pub code: String,
    /// A text for people, with advice if there is any.
    pub message: String,
}

impl RunError {
    /// A longer message is cut: it may quote somebody else.
    pub const MAX_CHARS: usize = 4000;

    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(Self::MAX_CHARS) {
            message.truncate(end);
            message.push('…');
        }
        Self { code: code.into(), message }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Run {
    pub id: RunId,
    pub room_id: RoomId,
    pub agent_id: AgentId,
    /// The message that this run answers.
    pub message_id: MessageId,
    /// The run whose agent started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<RunId>,
    /// The first run of the tree; absent for the first run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_id: Option<RunId>,
    /// How far below the first run of the tree it is.
    #[serde(default)]
    pub depth: u32,
    pub status: RunStatus,
    /// The seq of the `run_queued` event. The runs of a room execute in this order.
    pub queued_seq: u64,
    pub usage: Usage,
    /// US dollars; `null` if the model's price is not known.
    pub cost: Option<Cost>,
    pub model: Option<String>,
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::RunStatus;

    #[test]
    fn invariant_03_one_end_a_terminal_status_is_never_left() {
        for from in RunStatus::ALL {
            assert_eq!(from.as_str().parse::<RunStatus>().unwrap(), from);
            for to in RunStatus::ALL {
                assert!(!(from.is_terminal() && from.may_become(to)), "{from} → {to}");
                assert!(!from.may_become(RunStatus::Queued), "a run never returns to the queue: {from}");
            }
            assert_eq!(from.is_terminal(), !RunStatus::ALL.into_iter().any(|to| from.may_become(to)));
        }
    }
}
