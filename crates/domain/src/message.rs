//! A message: the folded view of events. Either a user's post or an agent's complete or partial answer.

use crate::{
    ids::{AgentId, MessageId, RoomId, RunId, UserId},
    name::Name,
    run_tree::ChildRun,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const MAX_TEXT_BYTES: usize = 512 * 1024;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    Person {
        name: Name,
        /// `null` for messages from before users had ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
    },
    Agent {
        id: AgentId,
        name: Name,
    },
}

impl Author {
    /// The person's id; `None` for an agent.
    pub fn name(&self) -> &Name {
        match self {
            Self::Person { name, .. } | Self::Agent { name, .. } => name,
        }
    }

    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Person { user_id, .. } => *user_id,
            Self::Agent { .. } => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// The answer is not finished yet.
    Streaming,
    Complete,
    /// The answer was stopped, failed, or was lost in a crash; the text so far is kept.
    Partial,
}

/// One part of an answer. Parts are in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
    },
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
    },
    Tool(ToolCall),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCall {
    pub tool_use_id: String,
    pub name: String,
    pub input: Value,
    /// Output while the tool ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// `null` while the tool runs.
    pub result: Option<ToolOutcome>,
    /// The run of another agent that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildRun>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolOutcome {
    pub content: Value,
    pub is_error: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Attachment {
    pub name: Name,
    pub media_type: String,
    /// The URL of the file's content; attachments are never inlined.
    pub url: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    pub id: MessageId,
    pub room_id: RoomId,
    /// The seq of the event that began this message. Messages are sorted by it.
    pub seq: u64,
    pub author: Author,
    pub run_id: Option<RunId>,
    pub status: MessageStatus,
    /// All text parts joined.
    pub text: String,
    /// All thinking parts joined.
    pub thinking: String,
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    pub created_at: Timestamp,
}

/// Returns the joined text and the joined thinking of an answer's parts. What was written after a tool call begins a new
/// paragraph: the parts were written at different times, and have no space between them.
pub fn join_texts(parts: &[Part]) -> (String, String) {
    let (mut said, mut thought) = (JoinedText::default(), JoinedText::default());
    for part in parts {
        match part {
            Part::Text { text, .. } => said.push(text),
            Part::Thinking { text, .. } => thought.push(text),
            Part::Tool(_) => [&mut said, &mut thought].into_iter().for_each(|joined| joined.is_interrupted = true),
        }
    }
    (said.text, thought.text)
}

#[derive(Default)]
struct JoinedText {
    text: String,
    /// A tool was called since the last text.
    is_interrupted: bool,
}

impl JoinedText {
    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_interrupted) && !self.text.is_empty() {
            let ends = |text: &mut dyn Iterator<Item = char>| text.take_while(|char| *char == '\n').count();
            let present = ends(&mut self.text.chars().rev()) + ends(&mut text.chars());
            (present..2).for_each(|_| self.text.push('\n'));
        }
        self.text.push_str(text);
    }
}
