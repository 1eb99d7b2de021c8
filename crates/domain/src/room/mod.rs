//! A room: a conversation with its participants and one journal. `policy` says who speaks when.

mod policy;

pub use policy::{MAX_PRIORITY, MemberSettings, MentionRule, PolicyError, RoomPolicy, TurnOrder, WhenBusy};

use crate::{
    ids::{AgentId, ProjectId, RoomId, RunId},
    message::Author,
    name::Name,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

pub const MAX_AGENTS: usize = 32;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Room {
    pub id: RoomId,
    pub name: Name,
    /// In the order they joined.
    pub agents: Vec<AgentId>,
    pub project_id: Option<ProjectId>,
    /// The run whose agent opened this room for another agent; such a room is in no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// Where the room was branched off; its first messages are copies from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    pub policy: RoomPolicy,
    /// The seq of the room's newest event.
    pub head: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The message at which a room was branched off another one. That room may be deleted meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ForkedFrom {
    pub room_id: RoomId,
    /// The seq of the last message that was copied, in that room.
    pub seq: u64,
}

/// Where people have put a room in their lists. It is the same for everybody in the workspace, as the room is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RoomPlacement {
    /// Whether the room stays at the top of lists.
    #[serde(default)]
    pub pinned: bool,
    /// Whether the room is out of sight. It works as before.
    #[serde(default)]
    pub archived: bool,
    /// The folder of the room; `null` if it is in none. A folder exists while a room is in it.
    #[serde(default)]
    pub folder: Option<Name>,
}

/// A change of it; `None` keeps what there is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoomPlacementPatch {
    pub pinned: Option<bool>,
    pub archived: Option<bool>,
    pub folder: Option<Option<Name>>,
}

impl RoomPlacementPatch {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A room in a list of rooms: with its activity and its last message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RoomSummary {
    #[serde(flatten)]
    pub room: Room,
    #[serde(flatten)]
    pub placement: RoomPlacement,
    /// Whether a run is queued or running.
    pub busy: bool,
    /// Whether a tool call waits for approval.
    pub waiting: bool,
    /// Whether the newest run failed.
    pub failed: bool,
    /// The last message: a user's post or a finished answer.
    pub last_message: Option<LastMessage>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LastMessage {
    pub seq: u64,
    pub author: Author,
    /// The first 200 characters.
    pub text: String,
    pub created_at: Timestamp,
}

/// Enough to recognize a conversation.
pub const LAST_MESSAGE_CHARS: usize = 200;
