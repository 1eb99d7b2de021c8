//! A room: a conversation with its participants and one journal.

use crate::{
    ids::{AgentId, ProjectId, RoomId},
    message::Author,
    name::Name,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

pub const MAX_AGENTS: usize = 32;

/// The policy of a room. Missing fields have defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPolicy {
    /// What happens to a message that arrives while agents are answering, unless the message sets its own policy.
    pub when_busy: WhenBusy,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Queue the message until the current answers are finished.
    #[default]
    Enqueue,
    /// Stop the current answers, keep their partial text, then answer the message.
    Interrupt,
    /// Refuse the message with 409.
    Reject,
    /// Pass the message to the current answer, if the provider supports it.
    Steer,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Room {
    pub id: RoomId,
    pub name: Name,
    /// In the order they joined. Agents answer in this order.
    pub agents: Vec<AgentId>,
    pub project_id: Option<ProjectId>,
    pub policy: RoomPolicy,
    /// The seq of the room's newest event.
    pub head: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A room in a list of rooms: with its activity and its last message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RoomSummary {
    #[serde(flatten)]
    pub room: Room,
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
