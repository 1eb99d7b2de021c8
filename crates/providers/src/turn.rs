//! The one trait, and the words a turn is spoken in.

use domain::{
    agent::Agent,
    event::Decision,
    ids::{ApprovalId, RoomId, RunId},
    run::{Receipt, RunError},
    usage::{Cost, Usage},
};
use serde::Serialize;
use serde_json::Value;
use std::{future::Future, pin::Pin};
use tokio::sync::mpsc;

pub type TurnFuture = Pin<Box<dyn Future<Output = TurnOutcome> + Send>>;

/// An adapter that makes an agent answer.
pub trait Provider: Send + Sync + 'static {
    /// The word that agents name it by.
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Answers one prompt. The future returns only when everything the turn started has stopped: its return *is* the
    /// proof behind "cancelled". Dropping it must stop the work too, by force if need be. Events that cannot be sent
    /// because the receiver is gone mean the same as [`TurnCommand::Interrupt`].
    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture;
}

/// What a provider can do; the API shows it and the UI adapts to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Capabilities {
    /// Goes on with its own session in a later run.
    pub resume: bool,
    /// Takes a new message in the middle of an answer.
    pub steer: bool,
    pub approvals: bool,
    pub thinking: bool,
    pub mcp: bool,
    pub skills: bool,
}

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub run_id: RunId,
    pub room_id: RoomId,
    pub agent: Agent,
    pub prompt: String,
    /// What was said in the room before the prompt, oldest first.
    pub history: Vec<Spoken>,
    /// The provider's own conversation id from an earlier run of this agent in this room.
    pub session_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spoken {
    pub speaker: Speaker,
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Speaker {
    Person(String),
    /// The agent that is asked now.
    Itself,
    OtherAgent(String),
}

/// The two ends of a running turn that the provider holds. Both are bounded: a provider that is faster than the disk
/// waits in `send`.
#[derive(Debug)]
pub struct TurnChannel {
    pub events: mpsc::Sender<Reported>,
    pub commands: mpsc::Receiver<TurnCommand>,
}

/// An event, with what the provider sent for it as JSON text.
#[derive(Clone, PartialEq, Debug)]
pub struct Reported {
    pub event: TurnEvent,
    pub raw: Option<String>,
}

impl From<TurnEvent> for Reported {
    fn from(event: TurnEvent) -> Self {
        Self { event, raw: None }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum TurnEvent {
    /// A model call begins; counted against the limit of turns.
    ModelCall,
    Text {
        delta: String,
        item: Option<String>,
    },
    Thinking {
        delta: String,
        item: Option<String>,
    },
    Retract {
        item: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolOutput {
        id: String,
        delta: String,
    },
    ToolResult {
        id: String,
        content: Value,
        is_error: bool,
    },
    /// A tool call waits for a person. The answer comes as [`TurnCommand::Answer`], always: on a deadline it is
    /// `Expired`.
    Approval {
        id: ApprovalId,
        tool_use_id: Option<String>,
        name: String,
        input: Value,
    },
    /// Tokens used since the last report. `cost` only where the vendor itself said it.
    Usage {
        usage: Usage,
        model: Option<String>,
        cost: Option<Cost>,
    },
    Status {
        status: String,
        message: String,
    },
    /// The provider's own conversation id, as soon as it is known.
    Session {
        id: String,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub enum TurnCommand {
    /// Stop now. What was said so far has been kept.
    Interrupt,
    Answer {
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    pub receipt: Receipt,
}

#[derive(Clone, PartialEq, Debug)]
pub enum TurnEnd {
    Completed,
    /// The agent chose not to answer.
    Skipped,
    Failed(RunError),
    /// Ended because it was told to.
    Stopped,
}

impl TurnOutcome {
    /// An end that had no processes to stop.
    pub fn of(end: TurnEnd) -> Self {
        Self { end, receipt: Receipt::default() }
    }
}
