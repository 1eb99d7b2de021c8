//! The commands of the engine: every change that someone can ask for, on behalf of an actor. HTTP, WebSocket, CLI and MCP
//! call the same commands.

mod agent_files;
mod agents;
mod approve;
mod audit;
mod budgets;
mod cancel;
mod delegate;
mod disconnect;
mod effective;
mod execute;
mod files;
mod fork;
mod initiate;
mod inspect;
mod mcp_import;
mod mcp_live;
mod mcp_servers;
mod mcp_trust;
mod mcp_variables;
mod mcp_views;
mod memories;
mod parent_run;
mod post;
mod post_plan;
mod project_commands;
mod project_files;
mod project_ports;
mod projects;
mod provider_list;
mod provider_models;
mod provider_settings;
mod rooms;
mod search;
mod signal;
mod skill_training;
mod skill_transfer;
mod skill_trust;
mod skills;
mod start_run;
mod steer;
mod tape;
mod tape_messages;
mod tokens;

pub use agent_files::{AgentImportOutcome, ImportedAgent};
pub use approve::ApprovalResponse;
pub use budgets::Billing;
pub use cancel::{StoppedRoom, StoppedRun};
pub(crate) use delegate::{ChildProgress, ChildTask};
pub use disconnect::{DisconnectGuard, OnDisconnect};
pub use effective::{
    EffectiveProvider, EffectiveServer, EffectiveState, EffectiveTool, EffectiveView, TierView, VerdictView,
};
pub use execute::ExecuteRequest;
pub use files::WorkspaceEntry;
pub use fork::NewFork;
pub use initiate::{InitiateProject, InitiateRequest, Initiated, PreparedInitiation};
pub(crate) use inspect::InspectionCache;
pub use inspect::{CapabilitiesView, InspectedProvider, InspectionView};
pub use mcp_import::{ImportOutcome, ImportProblem, ImportedServer};
pub use mcp_live::McpToolCall;
pub use mcp_trust::{McpFileServerView, McpTrustView};
pub use mcp_variables::{AllowedVariableSource, AllowedVariableView};
pub use mcp_views::{
    McpAnnotations, McpCallView, McpFailureView, McpIdentity, McpListingView, McpLogLine, McpLogsView, McpQuarantined,
    McpServerView, McpStateView, McpStatusView, McpTestView, McpToolView,
};
pub use post::{NewPost, PostResult, RunRef};
pub use project_commands::{CommandSummary, CommandUpdate, CommandView, FollowedCommand, NewCommand};
pub use project_files::{
    IncomingFiles, OpenedProjectFile, ProjectEntryKind, ProjectEntryView, ProjectFolderView, ReceivedFiles, StoredFile,
};
pub use project_ports::{PortConnection, ProjectPort};
pub use projects::{IsolatedProject, NewProject, ProjectPatch};
pub use provider_list::{ProviderKind, ProviderSource, ProviderState, ProviderView};
pub(crate) use provider_models::ModelListCache;
pub use provider_models::{ModelView, ProviderTestView};
pub use provider_settings::{NewEndpoint, SettingsPatch};
pub use rooms::{NewRoom, RoomPatch};
pub use search::{SearchHit, SearchHitKind, SearchPage, SearchScope};
pub use skill_training::{NewRating, ProposalSource};
pub use skill_trust::{ProjectSkillView, SkillTrustView};
pub use skills::{CheckedSkill, ComparedVersion, SkillRevision, check_document, check_spec};
pub use tape::{CellStatus, TapeCellView, TapeCommand, TapeState, TapeView};

use crate::{Engine, EngineError};
use domain::{actor::Actor, permission::Permission};
use store::IdempotentRequest;

impl Engine {
    /// The result of an earlier request with the same idempotency key, or `None` if the key is new.
    pub async fn earlier_result(
        &self,
        actor: &Actor,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Option<String>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let Some(attempt) = attempt else { return Ok(None) };
        match self.store().earlier_result(owner, attempt).await? {
            Some(remembered) if remembered.same_request => Ok(Some(remembered.result)),
            Some(_) => Err(EngineError::KeyConflict),
            None => Ok(None),
        }
    }
}
