//! What the doors call: every way to change a room or a run, with the owner who asks. HTTP, WebSocket, CLI and MCP say
//! the same commands.

mod approve;
mod attend;
mod cancel;
mod effective;
mod execute;
mod files;
mod inspect;
mod mcp_import;
mod mcp_live;
mod mcp_servers;
mod mcp_trust;
mod mcp_views;
mod post;
mod rooms;
mod skill_training;
mod skill_transfer;
mod skills;
mod steer;

pub use approve::Approval;
pub use attend::{Attendance, OnDisconnect};
pub use cancel::Stopped;
pub use effective::{
    EffectiveProvider, EffectiveServer, EffectiveState, EffectiveTool, EffectiveView, TierView, VerdictView,
};
pub use execute::Execute;
pub use files::WorkplaceEntry;
pub(crate) use inspect::Inspections;
pub use inspect::{CapabilitiesView, InspectionView, ProviderView};
pub use mcp_import::{ImportOutcome, ImportProblem, Imported};
pub use mcp_live::McpCall;
pub use mcp_trust::{McpTrustView, ProjectServerView, TrustState};
pub use mcp_views::{
    McpAnnotations, McpCallView, McpFailureView, McpIdentity, McpListingView, McpLogLine, McpLogsView, McpQuarantined,
    McpServerView, McpStatusView, McpTestView, McpToolView,
};
pub use post::{Post, Posted, RunRef};
pub use rooms::NewRoom;
pub use skill_training::{NewRating, ProposalSource};
pub use skills::{CheckedSkill, ComparedVersion, Revision, check_document, check_spec};

use crate::{Engine, Error};
use domain::owner::Owner;
use store::Attempt;

impl Engine {
    /// What an earlier request with the same key made, or `None` if the key is new.
    pub async fn earlier(&self, owner: &Owner, attempt: Option<&Attempt>) -> Result<Option<String>, Error> {
        let Some(attempt) = attempt else { return Ok(None) };
        match self.store().remembered(owner, attempt).await? {
            Some(remembered) if remembered.same => Ok(Some(remembered.result)),
            Some(_) => Err(Error::KeyConflict),
            None => Ok(None),
        }
    }
}
