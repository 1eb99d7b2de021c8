//! Trust in the `.mcp.json` of a room's workspace.

use crate::{
    Engine, EngineError,
    mcp_servers::{McpServerSource, ServerProblem, WorkspaceMcpFile, mask_entry},
    workspace_trust::{TrustState, TrustSubject},
};
use domain::{
    actor::Actor,
    hex,
    ids::RoomId,
    mcp::{McpConfigError, McpServerEntry},
    owner::Owner,
    permission::Permission,
    time::Timestamp,
};
use serde::Serialize;

/// The `.mcp.json` of a workspace, and whether it may be used.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTrust)]
pub struct McpTrustView {
    pub state: TrustState,
    /// SHA-256 of the file, in hex; only exactly this content is trusted.
    pub digest: Option<String>,
    pub trusted_at: Option<Timestamp>,
    /// Why the file cannot be read.
    pub problem: Option<String>,
    pub servers: Vec<McpFileServerView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpProjectServer)]
pub struct McpFileServerView {
    pub name: String,
    /// As in the file, with `***` for every value of `env` and `headers`.
    #[serde(flatten)]
    pub entry: McpServerEntry,
    /// Why the server could not be used even if the file were trusted.
    pub problem: Option<ServerProblem>,
}

impl Engine {
    pub async fn mcp_trust(&self, actor: &Actor, room: RoomId) -> Result<McpTrustView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        self.store().room(owner, room).await?;
        let file = self.workspace_mcp_file(owner, room).await?;
        Ok(self.trust_view(owner, &file))
    }

    /// Trusts the file. `digest` is that of the file that the person has seen: a file changed since is not trusted.
    pub async fn trust_mcp_file(&self, actor: &Actor, room: RoomId, digest: &str) -> Result<McpTrustView, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        self.store().room(owner, room).await?;
        let file = self.workspace_mcp_file(owner, room).await?;
        let content = (&file.state, file.digest);
        let state = self.trust_content(actor, room, TrustSubject::McpFile, content, digest).await?;
        Ok(self.trust_view(owner, &WorkspaceMcpFile { state, ..file }))
    }

    pub async fn distrust_mcp_file(&self, actor: &Actor, room: RoomId) -> Result<(), EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        self.store().room(owner, room).await?;
        self.distrust_content(actor, room, TrustSubject::McpFile).await
    }

    pub(super) fn trust_view(&self, owner: &Owner, file: &WorkspaceMcpFile) -> McpTrustView {
        let (state, trusted_at, problem) = file.state.shown();
        let servers = file.servers.iter().map(|(name, config)| {
            let config = config.clone().map_err(McpConfigError::from);
            McpFileServerView {
                name: name.chars().take(64).collect(),
                problem: self.resolve_server(owner, McpServerSource::Project, name, &config, None).err(),
                entry: mask_entry(config.map(McpServerEntry::from).unwrap_or_default()),
            }
        });
        let digest = file.digest.map(|digest| hex::encode(&digest));
        McpTrustView { state, digest, trusted_at, problem, servers: servers.collect() }
    }
}
