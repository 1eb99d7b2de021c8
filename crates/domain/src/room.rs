//! A room: a conversation with its participants and one journal.

use crate::{
    ids::{AgentId, ProjectId, RoomId},
    message::Author,
    name::Name,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

pub const MAX_AGENTS: usize = 32;

/// How a room behaves. What it leaves out has a default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPolicy {
    /// What happens to a message that arrives while agents still answer, when the message itself does not say.
    pub when_busy: WhenBusy,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Wait for what is being answered, then answer this.
    #[default]
    Enqueue,
    /// Stop what is being answered, keep its partial text, then answer this.
    Interrupt,
    /// Refuse the message with 409.
    Reject,
    /// Hand the message to the answer under way; only where the provider can.
    Steer,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Room {
    pub id: RoomId,
    pub name: Name,
    /// In the order they joined, which is the order they answer in.
    pub agents: Vec<AgentId>,
    pub project_id: Option<ProjectId>,
    pub policy: RoomPolicy,
    /// The seq of the room's newest event.
    pub head: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A room as a list of rooms shows it: with what goes on in it and what was said last.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RoomSummary {
    #[serde(flatten)]
    pub room: Room,
    /// A run is queued or under way.
    pub busy: bool,
    /// A tool call waits for a person.
    pub waiting: bool,
    /// What was said last: a person's message, or an answer once it has ended.
    pub last_message: Option<LastMessage>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LastMessage {
    pub seq: u64,
    pub author: Author,
    /// Its first 200 characters.
    pub text: String,
    pub created_at: Timestamp,
}

/// Enough to recognise a conversation by.
pub const LAST_MESSAGE_CHARS: usize = 200;
