//! The [`Provider`] trait and the events, commands and outcome of a turn.

use crate::{
    TurnHistory,
    gateway::RunMeter,
    host_tools::HostTools,
    model_access::{ListModelsFuture, ModelAccess, ModelApiUse, cannot_list},
    program,
};
use domain::{
    agent::{Agent, AgentSpec, Thinking},
    event::Decision,
    ids::{ApprovalId, MessageId, RoomId, RunId},
    mcp,
    message::ToolCall,
    owner::Owner,
    prices::PriceSource,
    project::ProjectSpace,
    provider_settings::WorkspaceProviders,
    run::{Receipt, RunError},
    run_tree::ChildRun,
    usage::{Cost, Usage},
};
use serde::Serialize;
use serde_json::Value;
use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};
use tokio::sync::mpsc;
use workbench::{project_sandbox::SandboxSpec, skills::SkillFolder};

pub type TurnFuture = Pin<Box<dyn Future<Output = TurnOutcome> + Send>>;
pub type CloseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
pub type InspectFuture = Pin<Box<dyn Future<Output = Inspection> + Send>>;

/// An adapter that makes an agent answer.
pub trait Provider: Send + Sync + 'static {
    /// The name that agents refer to the provider by.
    fn name(&self) -> &str;

    /// What people call it.
    fn label(&self) -> &str {
        self.name()
    }

    fn capabilities(&self) -> Capabilities;

    /// Rejects settings that this provider does not support, when the agent is created rather than when it runs.
    fn check(&self, _spec: &AgentSpec) -> Result<(), RefusedSetting> {
        Ok(())
    }

    /// Returns whether the provider uses an agent's `model_options`.
    fn supports_model_options(&self) -> bool {
        false
    }

    /// The reasoning efforts that a room can choose for its agents.
    fn efforts(&self) -> &'static [Thinking] {
        &[]
    }

    /// Whose prices apply to the model calls that the provider reports without a cost.
    fn price_source(&self) -> PriceSource {
        PriceSource::Table
    }

    /// Returns whether a program of this provider gets a login or a key of the server, in a workspace with these settings.
    fn lends_login(&self, _settings: &WorkspaceProviders) -> bool {
        false
    }

    /// Returns whether what a workspace sets for providers concerns this one.
    fn uses_settings(&self) -> bool {
        true
    }

    /// The provider with a workspace's own address and key. `None` if it is the same for all workspaces: a provider with a
    /// program gets the settings with each turn.
    fn with_settings(&self, _settings: &WorkspaceProviders) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Returns whether it is the API of a vendor, without a program.
    fn is_vendor_api(&self) -> bool {
        false
    }

    /// The model APIs that its calls go to.
    fn model_apis(&self) -> Vec<ModelApiUse> {
        Vec::new()
    }

    /// The address and the key of its own model calls; `None` if a program makes them.
    fn model_access(&self) -> Option<ModelAccess> {
        None
    }

    /// Lists the models of its API with a real request.
    fn list_models(&self) -> ListModelsFuture {
        cannot_list(self.name())
    }

    /// Checks that this machine has what the provider needs.
    fn inspect(&self) -> InspectFuture {
        Box::pin(async { Inspection::Ready { version: None, program: None } })
    }

    /// Whether it starts a program for an agent, which then belongs into a sandbox.
    fn runs_program(&self) -> bool {
        false
    }

    /// A hint that a turn of this agent may start soon, so that slow preparations can begin. Returns immediately.
    fn prepare(&self, _coming: AgentWorkspace) {}

    /// Called at server shutdown. Returns when everything kept between turns has ended.
    fn close(&self) -> CloseFuture {
        Box::pin(async {})
    }

    /// Answers one prompt. The future returns only when everything the turn started has stopped: its return *is* the
    /// proof behind "cancelled". Dropping it must stop the work too, by force if need be. A closed event
    /// receiver means the same as [`TurnCommand::Interrupt`].
    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture;
}

/// A setting of an agent that its provider does not support.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedSetting {
    /// The JSON pointer of the setting.
    pub pointer: &'static str,
    /// The reason, and what to do.
    pub detail: String,
}

impl From<&str> for RefusedSetting {
    fn from(detail: &str) -> Self {
        Self { pointer: "/provider", detail: detail.to_owned() }
    }
}

/// What a provider can do; the API shows it and the UI adapts to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Capabilities {
    /// Continues its own session in a later run.
    pub resume: bool,
    /// Accepts a new message in the middle of an answer.
    pub steer: bool,
    pub approvals: bool,
    pub thinking: bool,
    pub mcp: bool,
    pub skills: bool,
}

/// The result of [`Provider::inspect`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Inspection {
    Ready {
        version: Option<String>,
        program: Option<PathBuf>,
    },
    /// The provider cannot run; `advice` says what to do.
    Missing {
        advice: String,
    },
    /// The key of its model API is missing; `advice` says where to set it.
    NeedsKey {
        advice: String,
    },
}

/// The agent, its folders, skills and MCP servers: everything a process needs to know before it is started.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentWorkspace {
    pub owner: Owner,
    pub room_id: RoomId,
    pub agent: Agent,
    /// The agent's working directory; exists.
    pub folder: PathBuf,
    /// Whose folder it is, and the settings of the sandbox around it.
    pub space: Arc<ProjectSpace>,
    /// The agent's own folder inside the data folder, for the state of its program; exists.
    pub home: PathBuf,
    /// The sandbox that the agent's program runs in. `None`: it has the rights of the server's user.
    pub sandbox: Option<Arc<SandboxSpec>>,
    /// The sandbox that stdio MCP servers run in which the MCP manager starts for the agent. `None`: they have the rights of the
    /// server's user. A CLI starts its servers itself, where it runs.
    pub servers_sandbox: Option<Arc<SandboxSpec>>,
    /// Their digests tell a provider that a program it kept has read older versions.
    pub skills: Vec<SkillFolder>,
    /// Fully resolved. A CLI connects to the servers itself; for other providers the MCP manager does.
    pub mcp_servers: Vec<mcp::NamedMcpServer>,
    /// What the workspace has set for providers: keys and addresses of its own.
    pub provider_settings: Arc<WorkspaceProviders>,
    /// The tools that Greenroom itself gives to agents.
    pub host_tools: HostTools,
    /// Whether other agents are in the room.
    pub has_company: bool,
    /// How far below the first run of its tree the turn is: each level has its own part of the processes.
    pub depth: u32,
}

impl AgentWorkspace {
    /// For whom skills are copied into a folder that others use too: the agent in this room.
    pub(crate) fn skill_holder(&self) -> String {
        format!("{} in {}", self.agent.id, self.room_id)
    }

    /// A path of this machine, as the agent's program sees it.
    pub fn path_inside(&self, path: &Path) -> PathBuf {
        program::path_inside(self.sandbox.as_deref(), path)
    }
}

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub run_id: RunId,
    pub workspace: AgentWorkspace,
    pub prompt: String,
    /// The files of the prompt's message. The prompt names their paths.
    pub attachments: Vec<AttachedFile>,
    /// What others have said after the prompt.
    pub later: LaterMessages,
    /// The messages in the room before the prompt.
    pub history: TurnHistory,
    /// The provider session from an earlier run of this agent in this room.
    pub session: Option<ResumableSession>,
    /// Counts the model calls that a program in a sandbox makes at the gateway.
    pub meter: RunMeter,
}

impl TurnRequest {
    pub fn agent(&self) -> &Agent {
        &self.workspace.agent
    }
}

/// What was said between the prompt and this turn, by agents that answered before. Empty for the first of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaterMessages {
    /// Who wrote the prompt.
    pub asked_by: String,
    pub messages: Vec<HistoryMessage>,
}

/// What an agent asks of its room with a host tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RoomRequest {
    /// The agent has nothing to say in this turn.
    Skip,
    /// No agent should speak any more until a person does.
    EndRound,
    /// A text for people only.
    Whisper(String),
    /// The agent has saved this note for itself.
    Memorized(String),
}

/// A conversation that the provider stores itself.
#[derive(Clone, PartialEq, Debug)]
pub struct ResumableSession {
    pub id: String,
    /// Messages in the room that the session does not contain: those of others, and those lost to an interrupt.
    pub missed: Vec<HistoryMessage>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct HistoryMessage {
    pub author: HistoryAuthor,
    pub text: String,
    /// The tools that an agent called while it wrote this message.
    pub tools: Vec<ToolCall>,
    pub attachments: Vec<AttachedFile>,
}

/// A file that is attached to a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedFile {
    pub name: String,
    /// The path in the agent's workspace, as prompts name it.
    pub path: String,
    /// The uploaded file, which no agent can change. It may have been deleted.
    pub file: PathBuf,
}

impl HistoryMessage {
    pub fn new(author: HistoryAuthor, text: impl Into<String>) -> Self {
        Self { author, text: text.into(), tools: Vec::new(), attachments: Vec::new() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HistoryAuthor {
    Person(String),
    /// The agent that runs this turn.
    ThisAgent,
    OtherAgent(String),
}

/// The provider's ends of a running turn's channels. Both are bounded: a provider that is faster than the disk waits in
/// `send`.
#[derive(Debug)]
pub struct TurnChannel {
    pub events: mpsc::Sender<ProviderEvent>,
    pub commands: mpsc::Receiver<TurnCommand>,
    /// Whether the room keeps the original data of every piece of the answer, not only of other events.
    pub keeps_raw: bool,
}

/// An event, with the provider's original message as JSON text.
#[derive(Clone, PartialEq, Debug)]
pub struct ProviderEvent {
    pub event: TurnEvent,
    pub raw: Option<String>,
}

impl From<TurnEvent> for ProviderEvent {
    fn from(event: TurnEvent) -> Self {
        Self { event, raw: None }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum TurnEvent {
    /// A model call starts; counted against the turn limit.
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
    /// A host tool has changed a file of the project.
    FileChanged {
        path: String,
        change: String,
    },
    /// A tool call waits for a decision, which always comes as [`TurnCommand::ResolveApproval`] (`Expired` after the deadline)
    /// unless the approval is withdrawn first ([`TurnEvent::ApprovalWithdrawn`]).
    Approval {
        id: ApprovalId,
        tool_use_id: Option<String>,
        name: String,
        input: Value,
        /// A question that only a person can answer; no policy may approve it automatically.
        is_question: bool,
    },
    /// The program canceled its request for approval; the tool call does not run, and a late answer is ignored.
    ApprovalWithdrawn {
        id: ApprovalId,
    },
    /// Tokens used since the last report. `cost` is set only if the vendor reported it.
    Usage {
        usage: Usage,
        model: Option<String>,
        cost: Option<Cost>,
    },
    /// Tokens of a model call whose usage the vendor did not report, because the call was stopped or broke off.
    EstimatedUsage {
        usage: Usage,
        model: Option<String>,
    },
    /// A notice that does not count as progress: it does not reset the provider's idle timeout.
    Status {
        status: String,
        message: String,
    },
    /// The turn waits in a queue of ours until the next event; meanwhile only the timeout of the whole turn runs.
    Waiting {
        status: String,
        message: String,
    },
    /// The id of the provider session, as soon as it is known.
    Session {
        id: String,
    },
    /// A host tool was called that concerns the room.
    Room(RoomRequest),
    /// A host tool has started a run of another agent.
    Delegated {
        tool_use_id: Option<String>,
        child: ChildRun,
    },
    /// The answer to [`TurnCommand::Steer`].
    Steered {
        message: MessageId,
        taken: bool,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub enum TurnCommand {
    /// Stop now. The text sent so far has been saved.
    Interrupt,
    /// The decision on a tool call that waits for approval: the tool runs, or is refused.
    ResolveApproval { approval: ApprovalId, decision: Decision, input: Option<Value> },
    /// A new message for the current answer, if the provider supports it. Answered by [`TurnEvent::Steered`].
    Steer { message: MessageId, text: String, attachments: Vec<AttachedFile> },
}

#[derive(Clone, PartialEq, Debug)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    pub receipt: Receipt,
    pub saved: SavedInSession,
}

/// How much of this turn the provider session contains; the rest is sent with the next prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SavedInSession {
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
    /// Ended by an interrupt.
    Stopped,
}

impl TurnOutcome {
    /// An outcome without processes to stop.
    pub fn from_end(end: TurnEnd) -> Self {
        Self { end, receipt: Receipt::default(), saved: SavedInSession::Nothing }
    }
}
