//! The training history of a skill.

use super::Score;
use crate::{
    ids::{AgentId, MessageId, ProposalId, RoomId, RoundId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A room in which a skill is trained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct TrainingRoom {
    pub room_id: RoomId,
    pub agent_id: AgentId,
    pub created_at: Timestamp,
}

/// An entry of the training history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Round {
    pub id: RoundId,
    pub kind: RoundKind,
    pub score: Option<Score>,
    #[serde(flatten)]
    pub remarks: Remarks,
    /// The skill's version at the time.
    pub version: u32,
    pub room_id: Option<RoomId>,
    pub message_id: Option<MessageId>,
    pub proposal_id: Option<ProposalId>,
    /// The skill's experience after this round.
    pub experience: Option<u8>,
    pub created_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Remarks {
    pub comment: Option<String>,
    pub issues: Vec<String>,
    pub improvements: Vec<String>,
}

/// A proposed new body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    pub id: ProposalId,
    pub status: ProposalStatus,
    /// The version that the proposal is based on.
    pub base_version: u32,
    pub body: String,
    pub note: Option<String>,
    /// The answer that contains the proposal.
    pub message_id: Option<MessageId>,
    pub accepted_version: Option<u32>,
    pub created_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    other => Err(format!("unknown value {other:?}")),
                }
            }
        }
    };
}

words! {
    /// The kind of a training round.
    RoundKind { Rating = "rating", Accepted = "accepted", Dropped = "dropped" }
}
words! {
    ProposalStatus { Open = "open", Accepted = "accepted", Dropped = "dropped" }
}
