//! The one trait, and the words a turn is spoken in.

use crate::{History, Memory};
use domain::{
    agent::{Agent, AgentSpec},
    event::Decision,
    ids::{ApprovalId, MessageId, RoomId, RunId},
    mcp,
    message::ToolCall,
    run::{Receipt, RunError},
    usage::{Cost, Usage},
};
use serde::Serialize;
use serde_json::Value;
use std::{future::Future, path::PathBuf, pin::Pin, time::SystemTime};
use tokio::sync::mpsc;

pub type TurnFuture = Pin<Box<dyn Future<Output = TurnOutcome> + Send>>;
pub type CloseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
pub type InspectFuture = Pin<Box<dyn Future<Output = Inspection> + Send>>;

/// An adapter that makes an agent answer.
pub trait Provider: Send + Sync + 'static {
    /// The word that agents name it by.
    fn name(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// What an agent's settings ask of this provider that it cannot do; said when the agent is made, not when it runs.
    fn check(&self, _spec: &AgentSpec) -> Result<(), String> {
        Ok(())
    }

    /// Whether `model_options` of an agent mean something to it.
    fn takes_model_options(&self) -> bool {
        false
    }

    /// What the provider needs from this machine, and whether it is there.
    fn inspect(&self) -> InspectFuture {
        Box::pin(async { Inspection::Ready { version: None, program: None } })
    }

    /// Somebody may soon ask this agent something: what takes long can be made ready. A hint; it returns at once.
    fn prepare(&self, _coming: Place) {}

    /// The server stops: returns when nothing is left that was kept ready between turns.
    fn close(&self) -> CloseFuture {
        Box::pin(async {})
    }

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

/// What a look at this machine found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Inspection {
    Ready {
        version: Option<String>,
        program: Option<PathBuf>,
    },
    /// With what to do about it.
    Missing {
        advice: String,
    },
}

/// Where an agent works, and with what. Everything a process needs to know before it is started.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    pub room_id: RoomId,
    pub agent: Agent,
    /// The folder the agent works in; exists.
    pub workplace: PathBuf,
    /// The agent's own folder inside the data folder, for what its program remembers; exists.
    pub home: PathBuf,
    pub skills: Vec<SkillFolder>,
    /// With nothing left to fill in. A CLI starts or reaches them by itself; for the others the manager does.
    pub mcp_servers: Vec<mcp::Server>,
}

/// A skill as it lies on disk: a folder with a `SKILL.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillFolder {
    pub name: String,
    pub path: PathBuf,
}

/// A skill folder as a process was started with it. It is equal to one with the same content: where that lies is another
/// place in every run, but the same content has the same time.
#[derive(Clone, Debug)]
pub(crate) struct SeenSkill {
    pub folder: SkillFolder,
    changed: Option<SystemTime>,
}

impl SeenSkill {
    pub fn all(skills: &[SkillFolder]) -> Vec<Self> {
        let changed = |folder: &SkillFolder| folder.path.join("SKILL.md").metadata().and_then(|file| file.modified());
        skills.iter().map(|folder| Self { folder: folder.clone(), changed: changed(folder).ok() }).collect()
    }
}

impl PartialEq for SeenSkill {
    fn eq(&self, other: &Self) -> bool {
        self.folder.name == other.folder.name && self.changed == other.changed
    }
}

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub run_id: RunId,
    pub place: Place,
    pub prompt: String,
    /// What was said in the room before the prompt.
    pub history: History,
    /// The provider's own conversation from an earlier run of this agent in this room.
    pub session: Option<Session>,
    /// What the agent remembers beyond this room; for providers without a memory of their own.
    pub memory: Memory,
}

impl TurnRequest {
    pub fn agent(&self) -> &Agent {
        &self.place.agent
    }
}

/// A conversation that the provider remembers by itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    pub id: String,
    /// What was said in the room that this session has not been told: others' messages, and what it lost when it was
    /// interrupted.
    pub unheard: Vec<Spoken>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Spoken {
    pub speaker: Speaker,
    pub text: String,
    /// The tools that an agent called while it said this.
    pub tools: Vec<ToolCall>,
}

impl Spoken {
    pub fn new(speaker: Speaker, text: impl Into<String>) -> Self {
        Self { speaker, text: text.into(), tools: Vec::new() }
    }
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
    /// A tool call waits for a person. The answer comes as [`TurnCommand::Answer`], always, unless it is
    /// [`TurnEvent::Withdrawn`] before: on a deadline it is `Expired`.
    Approval {
        id: ApprovalId,
        tool_use_id: Option<String>,
        name: String,
        input: Value,
        /// Only a person can answer it: a question, which no policy may wave through.
        is_question: bool,
    },
    /// Nobody waits for this approval's answer any more, and what it was for does not run: the program took its
    /// question back. An answer that is under way to it is ignored.
    Withdrawn {
        id: ApprovalId,
    },
    /// Tokens used since the last report. `cost` only where the vendor itself said it.
    Usage {
        usage: Usage,
        model: Option<String>,
        cost: Option<Cost>,
    },
    /// Something worth telling that is no progress: it does not wind the clock of a silent provider.
    Status {
        status: String,
        message: String,
    },
    /// The turn stands in a line of our own making, until the next event: no clock but the whole turn's runs.
    Waiting {
        status: String,
        message: String,
    },
    /// The provider's own conversation id, as soon as it is known.
    Session {
        id: String,
    },
    /// The answer to [`TurnCommand::Steer`].
    Steered {
        message: MessageId,
        taken: bool,
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
    /// A new message for the answer under way; only for providers that can. Answered by [`TurnEvent::Steered`].
    Steer {
        message: MessageId,
        text: String,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    pub receipt: Receipt,
    pub kept: Kept,
}

/// How much of this turn is in the provider's own session; the rest is told to it next time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kept {
    #[default]
    Nothing,
    Prompt,
    PromptAndAnswer,
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
        Self { end, receipt: Receipt::default(), kept: Kept::Nothing }
    }
}
