//! Trust in the `.mcp.json` of the folder that a room's agents work in.

use crate::{
    Engine, Error,
    equipment::{Project, ProjectState, ServerProblem, Source, folder_key, masked},
};
use domain::{
    ids::RoomId,
    mcp::{ConfigError, Entry},
    owner::Owner,
    time::Timestamp,
};
use serde::Serialize;

/// What stands in a project's file, and whether it may be used.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTrust)]
pub struct McpTrustView {
    pub state: TrustState,
    /// SHA-256 of the file, in hex; what is trusted is exactly this content.
    pub digest: Option<String>,
    pub trusted_at: Option<Timestamp>,
    /// Why the file cannot be read.
    pub problem: Option<String>,
    pub servers: Vec<ProjectServerView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTrustState)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// There is no file.
    None,
    Untrusted,
    Trusted,
    Unreadable,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpProjectServer)]
pub struct ProjectServerView {
    pub name: String,
    /// As in the file, with `***` for every value of `env` and `headers`.
    #[serde(flatten)]
    pub entry: Entry,
    /// Why it could not be used even if it were trusted.
    pub problem: Option<ServerProblem>,
}

impl Engine {
    pub async fn mcp_trust(&self, owner: &Owner, room: RoomId) -> Result<McpTrustView, Error> {
        self.store().room(owner, room).await?;
        let project = self.project(owner, room).await?;
        Ok(self.trust_view(owner, &project))
    }

    /// `digest` is that of the file that was looked at: nobody trusts what they have not seen.
    pub async fn trust_project(&self, owner: &Owner, room: RoomId, digest: &str) -> Result<McpTrustView, Error> {
        self.store().room(owner, room).await?;
        let project = self.project(owner, room).await?;
        let seen = match (&project.state, project.digest) {
            (ProjectState::Untrusted | ProjectState::Trusted(_), Some(seen)) => seen,
            (ProjectState::Unreadable(why), _) => {
                let detail = format!("the .mcp.json in the room's folder cannot be trusted: {why}");
                return Err(Error::Refused { pointer: "", detail });
            }
            _ => {
                let detail = "there is no .mcp.json in the room's folder".to_owned();
                return Err(Error::Refused { pointer: "", detail });
            }
        };
        if !hex(&seen).eq_ignore_ascii_case(digest) {
            return Err(Error::Conflict(
                "the .mcp.json in the room's folder is another by now; look at it again and send its digest".to_owned(),
            ));
        }
        let folder = self.config().folders.workplace(room);
        let file = self.store().trust_file(owner, folder_key(&folder), &seen).await?;
        let trusted = Project { state: ProjectState::Trusted(file.trusted_at), ..project };
        Ok(self.trust_view(owner, &trusted))
    }

    pub async fn distrust_project(&self, owner: &Owner, room: RoomId) -> Result<(), Error> {
        self.store().room(owner, room).await?;
        let folder = self.config().folders.workplace(room);
        Ok(self.store().distrust_file(owner, folder_key(&folder)).await?)
    }

    pub(super) fn trust_view(&self, owner: &Owner, project: &Project) -> McpTrustView {
        let (state, trusted_at, problem) = match &project.state {
            ProjectState::None => (TrustState::None, None, None),
            ProjectState::Untrusted => (TrustState::Untrusted, None, None),
            ProjectState::Trusted(at) => (TrustState::Trusted, Some(*at), None),
            ProjectState::Unreadable(why) => (TrustState::Unreadable, None, Some(why.clone())),
        };
        let servers = project.servers.iter().map(|(name, config)| {
            let config = config.clone().map_err(ConfigError::from);
            ProjectServerView {
                name: name.chars().take(64).collect(),
                problem: self.ready(owner, Source::Project, name, &config, None).err(),
                entry: masked(config.map(Entry::from).unwrap_or_default()),
            }
        });
        let digest = project.digest.as_ref().map(hex);
        McpTrustView { state, digest, trusted_at, problem, servers: servers.collect() }
    }
}

fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
