//! The words of a tape, the plan of who speaks: its cells, as they are stored, streamed and shown.

use crate::ids::AgentId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// One agent.
    #[default]
    Sequential,
    /// Several agents at the same time.
    Concurrent,
    /// The agents that react to every message; left out if nothing was said before it.
    Interrupt,
}

/// Why agents are in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellReason {
    #[default]
    JoiningOrder,
    Priority,
    Mentioned,
    InterruptsEveryTurn,
    AllAtOnce,
    RoundRobin,
    Moderator,
    NamedByModerator,
    Debate,
    Judge,
    /// Reacts to what the other agents have said.
    FollowUp,
    FinalResponse,
    /// A person inserted it.
    Inserted,
}

/// A cell of a new plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TapeCell {
    /// Names the cell in commands to the tape.
    pub id: String,
    pub kind: CellKind,
    pub agents: Vec<AgentId>,
    pub reason: CellReason,
    /// 0 for the answers to the message, then the number of the follow-up round.
    pub round: u32,
}

/// What a person did to a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TapeChange {
    Paused,
    Resumed,
    /// A paused room makes one step.
    Stepped,
    Skipped,
    Inserted,
    Reordered,
    /// Everything was cancelled.
    Cleared,
}

impl TapeChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Stepped => "stepped",
            Self::Skipped => "skipped",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Cleared => "cleared",
        }
    }
}
