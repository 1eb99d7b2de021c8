//! The data of every event type. Names are stored and streamed: fields may be added, never renamed.

use crate::{
    approval::{DecisionAuthor, RememberScope},
    ids::{AgentId, ApprovalId, MessageId, UserId},
    limits::Limit,
    message::{Attachment, Author, MessageStatus, Part},
    name::Name,
    room::WhenBusy,
    run::{Receipt, RunError},
    run_tree::ChildRun,
    tape::{TapeCell, TapeChange},
    time::Timestamp,
    usage::{Cost, Usage},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, str::FromStr};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

macro_rules! event_types {
    ($($variant:ident = $name:tt),* $(,)?) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
        pub enum EventType {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl EventType {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The first part of the names of its schemas.
            pub(super) fn schema_name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// The schema of its data. Adds the schemas that it refers to.
            pub(super) fn data_schema(self, referenced: &mut Vec<(String, RefOr<Schema>)>) -> RefOr<Schema> {
                match self {
                    $(Self::$variant => {
                        <$variant as ToSchema>::schemas(referenced);
                        <$variant as PartialSchema>::schema()
                    })*
                }
            }
        }

        /// An event type with its data.
        #[derive(Clone, PartialEq, Debug)]
        pub enum EventBody {
            $($variant($variant),)*
        }

        $(impl From<$variant> for EventBody {
            fn from(data: $variant) -> Self { Self::$variant(data) }
        })*

        impl EventBody {
            pub fn kind(&self) -> EventType {
                match self { $(Self::$variant(_) => EventType::$variant,)* }
            }

            /// The JSON text of `data`.
            pub fn data(&self) -> String {
                let json = match self { $(Self::$variant(data) => serde_json::to_string(data),)* };
                // Plain structs with string keys always serialize; this only makes sure that no event is dropped.
                json.unwrap_or_else(|error| serde_json::json!({"unserializable": error.to_string()}).to_string())
            }

            pub fn parse(kind: EventType, data: &str) -> Result<Self, serde_json::Error> {
                Ok(match kind { $(EventType::$variant => Self::$variant(serde_json::from_str(data)?),)* })
            }
        }
    };
}

event_types! {
    MessagePosted = "message_posted",
    MessageCopied = "message_copied",
    TapePlanned = "tape_planned",
    RunQueued = "run_queued",
    RunStarted = "run_started",
    Status = "status",
    StreamStart = "stream_start",
    ContentDelta = "content_delta",
    ThinkingDelta = "thinking_delta",
    Retract = "retract",
    ToolUse = "tool_use",
    ToolOutputDelta = "tool_output_delta",
    ToolResult = "tool_result",
    RunDelegated = "run_delegated",
    ApprovalRequested = "approval_requested",
    ApprovalResolved = "approval_resolved",
    UsageReported = "usage",
    StreamEnd = "stream_end",
    RunCompleted = "run_completed",
    RunFailed = "run_failed",
    RunCancelled = "run_cancelled",
    RunInterrupted = "run_interrupted",
    ParticipantJoined = "participant_joined",
    ParticipantLeft = "participant_left",
    FileChanged = "file_changed",
    ErrorReported = "error",
}

impl EventType {
    /// Returns whether this is one of the four terminal events. Each run has exactly one, as its last event.
    pub fn ends_a_run(self) -> bool {
        matches!(self, Self::RunCompleted | Self::RunFailed | Self::RunCancelled | Self::RunInterrupted)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("unknown event type {0:?}; a newer version may have written it")]
pub struct UnknownEventType(String);

impl FromStr for EventType {
    type Err = UnknownEventType;
    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        Self::ALL.iter().copied().find(|t| t.as_str() == text).ok_or_else(|| UnknownEventType(text.to_owned()))
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessagePosted {
    pub message_id: MessageId,
    pub author: Author,
    pub text: String,
    pub when_busy: WhenBusy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// A message of the room that this one was branched off, whole. No run of this room wrote it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageCopied {
    pub message_id: MessageId,
    pub author: Author,
    pub status: MessageStatus,
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// When the original was written.
    pub written_at: Timestamp,
    /// The original.
    pub copy_of: MessageId,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TapePlanned {
    /// The agents that answer, in this order.
    pub cells: Vec<AgentId>,
    /// The person's message that they answer; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The same agents in their cells, with the reason of each cell; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<TapeCell>,
    /// 0 for the answers to the message, then the number of the follow-up round.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Decided the order of agents with equal priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// What a person did to the plan; `plan` is what is planned after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TapeChange>,
    /// The waiting messages in the order that a person gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageId>,
}

impl TapePlanned {
    pub fn new(message_id: MessageId, round: u32, seed: u32, plan: Vec<TapeCell>) -> Self {
        let cells = plan.iter().flat_map(|cell| cell.agents.iter().copied()).collect();
        Self { cells, message_id: Some(message_id), plan, round, seed: Some(seed), change: None, messages: Vec::new() }
    }

    /// A person changed what is planned.
    pub fn changed(change: TapeChange, plan: Vec<TapeCell>) -> Self {
        let cells = plan.iter().flat_map(|cell| cell.agents.iter().copied()).collect();
        Self { cells, message_id: None, plan, round: 0, seed: None, change: Some(change), messages: Vec::new() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunQueued {
    pub message_id: MessageId,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunStarted {
    pub provider: String,
    pub model: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Status {
    /// A stable code, for programs.
    pub status: String,
    /// A text for people.
    pub message: String,
    /// The message that this status is about, such as one that was steered into the current answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

impl Status {
    /// A longer message is cut: it may quote somebody else, and everybody in the room reads it.
    pub const MAX_CHARS: usize = 2000;

    pub fn new(status: impl Into<String>, message: impl Into<String>) -> Self {
        let (status, message) = (cut(status.into(), 100), cut(message.into(), Self::MAX_CHARS));
        Self { status, message, message_id: None }
    }
}

/// Shortens a text to a number of characters.
fn cut(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StreamStart {
    /// Also the id of the message that the deltas form.
    pub stream_id: MessageId,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContentDelta {
    pub stream_id: MessageId,
    pub delta: String,
    /// The provider's id of this block, if the block may be retracted later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ThinkingDelta {
    pub stream_id: MessageId,
    pub delta: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

/// Removes every delta of one item: the provider discarded the item and will send it again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Retract {
    pub stream_id: MessageId,
    pub item: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolUse {
    pub stream_id: MessageId,
    pub tool_use_id: String,
    pub name: String,
    pub input: Value,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolOutputDelta {
    pub stream_id: MessageId,
    pub tool_use_id: String,
    pub delta: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolResult {
    pub stream_id: MessageId,
    pub tool_use_id: String,
    pub content: Value,
    pub is_error: bool,
}

/// The agent has started a run of another agent, in a room of its own. The events of that run are in that room.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunDelegated {
    pub stream_id: MessageId,
    /// The tool call that waits for the run; absent if the agent's program does not say which one it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The run that was started.
    pub child: ChildRun,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalRequested {
    pub approval_id: ApprovalId,
    pub tool_use_id: Option<String>,
    pub name: String,
    /// The exact input that the tool runs with if the call is allowed.
    pub input: Value,
    /// The call is denied automatically after this time.
    pub expires_at: Timestamp,
    /// The agent asks the user a question; the answer is in the `input` of the decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_question: bool,
    /// What `remember: "pattern"` would allow from now on, such as `Bash(git status:*)`. Absent if the call has no
    /// pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
    /// Nobody answered in time, or the run ended first. Counts as `deny`.
    Expired,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalResolved {
    pub approval_id: ApprovalId,
    pub decision: Decision,
    /// The input as edited by the user, if they edited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Whether such calls are now always allowed for this agent in this room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
    /// How much is remembered; absent with `remember` in events from before the scopes, which means the whole tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RememberScope>,
    /// Who decided; absent if no person did, and in events from before users had ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Who decided, by which credential and from where; absent if no person did, and in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<DecisionAuthor>,
}

impl ApprovalResolved {
    /// An approval that nobody decided.
    pub fn expired(approval_id: ApprovalId) -> Self {
        let decision = Decision::Expired;
        Self { approval_id, decision, input: None, remember: false, scope: None, user_id: None, author: None }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsageReported {
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// The cost as a whole number of nano-dollars; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    pub model: Option<String>,
    /// The API reported nothing, because its answer was stopped or broke off. The tokens are estimated, rather too high than
    /// too low.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

impl UsageReported {
    pub fn new(usage: Usage, cost: Option<Cost>, model: Option<String>) -> Self {
        Self { usage, cost, cost_nanos: cost.map(Cost::as_nanos), model, is_estimated: false }
    }
}

macro_rules! exact_cost {
    ($($body:ident),*) => {
        $(impl $body {
            /// The cost without the rounding of a decimal number.
            pub fn exact_cost(&self) -> Option<Cost> {
                self.cost_nanos.map(Cost::from_nanos).or(self.cost)
            }
        })*
    };
}

exact_cost!(UsageReported, RunCompleted, RunFailed, RunCancelled, RunInterrupted);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StreamEnd {
    pub stream_id: MessageId,
    pub response_text: String,
    pub thinking_text: String,
    pub session_id: Option<String>,
    /// The notes that the agent has saved for itself in this turn, at most 2000 characters of each.
    pub memory_entries: Vec<Value>,
    /// The model of each model call of the turn, in order, under the name that clients of other servers expect; absent in
    /// events of earlier versions.
    #[serde(default, rename = "anthropic_calls")]
    pub model_calls: Vec<String>,
    /// The agent chose not to answer.
    pub skipped: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunCompleted {
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// The cost as a whole number of nano-dollars; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    pub duration_ms: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunFailed {
    pub error: RunError,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// The cost as a whole number of nano-dollars; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    pub duration_ms: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunCancelled {
    pub receipt: Receipt,
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// The cost as a whole number of nano-dollars; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    pub duration_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// A newer message interrupted the run.
    NewMessage,
    /// The server was asked to stop.
    Shutdown,
    /// The server or its worker crashed; detected afterwards.
    Crash,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunInterrupted {
    pub reason: Interruption,
    pub receipt: Receipt,
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// The cost as a whole number of nano-dollars; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    pub duration_ms: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ParticipantJoined {
    pub agent_id: AgentId,
    pub name: Name,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ParticipantLeft {
    pub agent_id: AgentId,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileChanged {
    pub path: String,
    pub change: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorReported {
    pub code: String,
    pub message: String,
}
