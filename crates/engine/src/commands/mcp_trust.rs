//! Trust in the `.mcp.json` of a room's workspace.

use crate::{
    Engine, EngineError,
    mcp_servers::{McpServerSource, ServerProblem, WorkspaceMcpFile, WorkspaceMcpFileState, folder_key, mask_entry},
};
use domain::{
    actor::Actor,
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
    pub state: McpTrustState,
    /// SHA-256 of the file, in hex; only exactly this content is trusted.
    pub digest: Option<String>,
    pub trusted_at: Option<Timestamp>,
    /// Why the file cannot be read.
    pub problem: Option<String>,
    pub servers: Vec<McpFileServerView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTrustState)]
#[serde(rename_all = "snake_case")]
pub enum McpTrustState {
    /// The workspace has no `.mcp.json`.
    None,
    Untrusted,
    Trusted,
    Unreadable,
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
        let seen = match (&file.state, file.digest) {
            (WorkspaceMcpFileState::Untrusted | WorkspaceMcpFileState::Trusted(_), Some(seen)) => seen,
            (WorkspaceMcpFileState::Unreadable(why), _) => {
                let detail = format!("the .mcp.json in the room's folder cannot be trusted: {why}");
                return Err(EngineError::Refused { pointer: "".into(), detail });
            }
            _ => {
                let detail = "the room's folder has no .mcp.json".to_owned();
                return Err(EngineError::Refused { pointer: "".into(), detail });
            }
        };
        if !hex(&seen).eq_ignore_ascii_case(digest) {
            return Err(EngineError::Conflict(
                "the .mcp.json in the room's folder has changed; review it again and send its new digest".to_owned(),
            ));
        }
        let folder = self.room_folder(owner, room).await?;
        let record = self.store().trust_file(actor, room, folder_key(&folder), &seen).await?;
        let trusted = WorkspaceMcpFile { state: WorkspaceMcpFileState::Trusted(record.trusted_at), ..file };
        Ok(self.trust_view(owner, &trusted))
    }

    pub async fn distrust_mcp_file(&self, actor: &Actor, room: RoomId) -> Result<(), EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        self.store().room(owner, room).await?;
        let folder = self.room_folder(owner, room).await?;
        Ok(self.store().distrust_file(actor, room, folder_key(&folder)).await?)
    }

    pub(super) fn trust_view(&self, owner: &Owner, file: &WorkspaceMcpFile) -> McpTrustView {
        let (state, trusted_at, problem) = match &file.state {
            WorkspaceMcpFileState::None => (McpTrustState::None, None, None),
            WorkspaceMcpFileState::Untrusted => (McpTrustState::Untrusted, None, None),
            WorkspaceMcpFileState::Trusted(at) => (McpTrustState::Trusted, Some(*at), None),
            WorkspaceMcpFileState::Unreadable(why) => (McpTrustState::Unreadable, None, Some(why.clone())),
        };
        let servers = file.servers.iter().map(|(name, config)| {
            let config = config.clone().map_err(McpConfigError::from);
            McpFileServerView {
                name: name.chars().take(64).collect(),
                problem: self.resolve_server(owner, McpServerSource::Project, name, &config, None).err(),
                entry: mask_entry(config.map(McpServerEntry::from).unwrap_or_default()),
            }
        });
        let digest = file.digest.as_ref().map(hex);
        McpTrustView { state, digest, trusted_at, problem, servers: servers.collect() }
    }
}

fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
