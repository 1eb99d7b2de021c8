//! Resolves the MCP servers that an agent gets from the tiers that define them.

use super::{CatalogServer, McpSecrets, McpServerSource, WorkspaceMcpFile, mcp_file};
use crate::{
    Engine,
    workspace_trust::{ContentTrust, TrustSubject},
};
use domain::{
    agent::AgentSpec,
    ids::RoomId,
    mcp::{
        McpConfigError, McpEntryError, McpServerConfig, McpServerEntry, McpTier, McpTierServers, McpTransport,
        NamedMcpServer, check_name, merge_tiers,
    },
    owner::Owner,
};
use providers::host_tools;
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Why a server cannot be used. Other servers are not affected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpProblem)]
pub struct ServerProblem {
    #[schema(value_type = String, examples("mcp_config"))]
    pub code: &'static str,
    /// A text for people: what is wrong and what to do.
    pub message: String,
}

impl ServerProblem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A server that a tier defines or names, and whether it can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResolvedServer {
    pub name: String,
    pub tier: McpTier,
    pub source: McpServerSource,
    /// The tiers whose server of the same name it hides, strongest first.
    pub shadowed: Vec<McpTier>,
    pub transport: Option<&'static str>,
    /// The server with its variables filled in.
    pub server: Result<NamedMcpServer, ServerUnavailable>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServerUnavailable {
    Disabled,
    /// Its `.mcp.json` in the workspace is not trusted.
    Untrusted,
    /// The agent refers to a server that does not exist.
    Missing,
    Problem(ServerProblem),
}

/// All servers of an agent in a room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResolvedServers {
    /// Sorted by name.
    pub servers: Vec<ResolvedServer>,
    /// `None` without a room.
    pub mcp_file: Option<WorkspaceMcpFile>,
}

/// A notice to show in the room before the agent starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RunNotice {
    pub status: &'static str,
    pub message: String,
}

impl ResolvedServers {
    pub(crate) fn usable(&self) -> Vec<NamedMcpServer> {
        self.servers.iter().filter_map(|resolved| resolved.server.clone().ok()).collect()
    }

    /// The first name that refers to no server.
    pub(crate) fn first_missing(&self) -> Option<&str> {
        let missing = self.servers.iter().find(|resolved| resolved.server == Err(ServerUnavailable::Missing));
        missing.map(|resolved| resolved.name.as_str())
    }

    pub(crate) fn notices(&self) -> Vec<RunNotice> {
        let mut notices = Vec::new();
        let mut untrusted = Vec::new();
        for resolved in &self.servers {
            match &resolved.server {
                Err(ServerUnavailable::Problem(problem)) => {
                    let message = format!("{}; the agent continues without it", problem.message);
                    notices.push(RunNotice { status: "mcp_server_problem", message });
                }
                Err(ServerUnavailable::Untrusted) => untrusted.push(resolved.name.as_str()),
                Ok(_) | Err(ServerUnavailable::Disabled | ServerUnavailable::Missing) => {}
            }
        }
        if !untrusted.is_empty() {
            let message = format!(
                "the .mcp.json in this folder is not trusted, so these MCP servers are not used: {}. Review it and trust it \
                 with /api/rooms/ROOM/mcp-trust",
                untrusted.join(", ")
            );
            notices.push(RunNotice { status: "mcp_untrusted", message });
        }
        if let Some(WorkspaceMcpFile { state: ContentTrust::Unreadable(why), .. }) = &self.mcp_file {
            let message = format!("the .mcp.json in this folder is not used: {why}");
            notices.push(RunNotice { status: "mcp_server_problem", message });
        }
        notices
    }
}

/// The tier of the servers that a skill defines, as entries of a `.mcp.json`.
pub fn skill_tier(skill: &str, servers: &BTreeMap<String, Value>) -> McpTierServers {
    let servers = servers.iter().map(|(name, entry)| (name.clone(), parse_entry(name, entry.clone())));
    McpTierServers { tier: McpTier::Skill(skill.to_owned()), servers: servers.collect() }
}

/// As [`skill_tier`], for a skill folder with a `.mcp.json`. Blocks on file IO.
pub(crate) fn folder_tier(skill: &str, folder: &Path) -> Option<McpTierServers> {
    let servers = match mcp_file::read(folder) {
        Ok(Some(file)) => file.servers,
        Ok(None) => return None,
        Err(why) => Err(why),
    };
    match servers {
        Ok(servers) => {
            let servers = servers.into_iter().map(|(name, config)| (name, config.map_err(McpConfigError::from)));
            Some(McpTierServers { tier: McpTier::Skill(skill.to_owned()), servers: servers.collect() })
        }
        Err(why) => {
            tracing::warn!(skill, why, "the .mcp.json of a skill is not used");
            None
        }
    }
}

fn parse_entry(name: &str, entry: Value) -> Result<McpServerConfig, McpConfigError> {
    check_name(name)?;
    let entry: McpServerEntry =
        serde_json::from_value(entry).map_err(|error| McpEntryError::Shape(error.to_string()))?;
    Ok(entry.try_into()?)
}

impl Engine {
    /// Resolves the servers of an agent. `skills` are the tiers of its skills, see [`skill_tier`].
    pub(crate) async fn resolve_servers(
        &self,
        owner: &Owner,
        spec: &AgentSpec,
        skills: Vec<McpTierServers>,
        room: Option<RoomId>,
    ) -> Result<ResolvedServers, store::StoreError> {
        let project = match room {
            Some(room) => Some(self.workspace_mcp_file(owner, room).await?),
            None => None,
        };
        let named = self.named_servers(owner, spec).await?;
        let missing: BTreeSet<&String> =
            spec.mcp_servers.iter().filter(|name| !named.iter().any(|known| known.name == **name)).collect();
        let sources: BTreeMap<String, McpServerSource> =
            named.iter().map(|known| (known.name.clone(), known.source)).collect();

        let of_agent = named.into_iter().map(|known| (known.name, known.config)).collect();
        let mut tiers = skills;
        tiers.push(McpTierServers { tier: McpTier::Agent, servers: of_agent });
        if let Some(project) = &project {
            let servers = project.servers.iter();
            let servers = servers.map(|(name, config)| (name.clone(), config.clone().map_err(McpConfigError::from)));
            tiers.push(McpTierServers { tier: McpTier::Project, servers: servers.collect() });
        }
        let merged = merge_tiers(tiers);
        if !merged.in_use.is_empty() {
            self.refresh_mcp_variables().await?;
        }
        let workspace = match room {
            Some(room) => Some(self.room_folder(owner, room).await?),
            None => None,
        };
        let is_trusted = project.as_ref().is_some_and(WorkspaceMcpFile::is_trusted);
        let mut servers: Vec<ResolvedServer> = Vec::new();
        for effective in merged.in_use.into_iter().chain(merged.disabled) {
            let source = match effective.tier {
                McpTier::Skill(_) => McpServerSource::Skill,
                McpTier::Agent => sources.get(&effective.name).copied().unwrap_or(McpServerSource::Database),
                McpTier::Project => McpServerSource::Project,
            };
            let at = if source == McpServerSource::Project { workspace.as_deref() } else { None };
            let server = match &effective.config {
                Ok(config) if config.disabled => Err(ServerUnavailable::Disabled),
                _ if source == McpServerSource::Project && !is_trusted => Err(ServerUnavailable::Untrusted),
                config => {
                    self.resolve_server(owner, source, &effective.name, config, at).map_err(ServerUnavailable::Problem)
                }
            };
            let transport = effective.config.as_ref().ok().map(|config| config.transport.kind());
            let (name, tier, shadowed) = (effective.name, effective.tier, effective.shadowed);
            servers.push(ResolvedServer { name, tier, source, shadowed, transport, server });
        }
        for name in missing {
            // A skill that defines this name wins; otherwise the server is missing.
            if !servers.iter().any(|resolved| resolved.name == *name && matches!(resolved.tier, McpTier::Skill(_))) {
                servers.retain(|resolved| resolved.name != *name);
                servers.push(ResolvedServer {
                    name: name.clone(),
                    tier: McpTier::Agent,
                    source: McpServerSource::Database,
                    shadowed: Vec::new(),
                    transport: None,
                    server: Err(ServerUnavailable::Missing),
                });
            }
        }
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(ResolvedServers { servers, mcp_file: project })
    }

    /// The existing servers that an agent names, each once.
    async fn named_servers(&self, owner: &Owner, spec: &AgentSpec) -> Result<Vec<CatalogServer>, store::StoreError> {
        if spec.mcp_servers.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = self.catalog_servers(owner).await?;
        known.retain(|known| !known.shadowed && spec.mcp_servers.contains(&known.name));
        Ok(known)
    }

    /// Reads the `.mcp.json` in the workspace of a room, with its trust.
    pub(crate) async fn workspace_mcp_file(
        &self,
        owner: &Owner,
        room: RoomId,
    ) -> Result<WorkspaceMcpFile, store::StoreError> {
        let folder = self.room_folder(owner, room).await?;
        let path = folder.clone();
        let read = tokio::task::spawn_blocking(move || mcp_file::read(&path)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        let trusted = match &read {
            Ok(Some(_)) => self.trusted_content(owner, &folder, TrustSubject::McpFile).await?,
            _ => None,
        };
        Ok(WorkspaceMcpFile::of(read, trusted))
    }

    /// The values to redact for a server: those of its settings, and those of the environment variables they may
    /// contain.
    pub(crate) fn secrets_of(&self, server: &NamedMcpServer) -> McpSecrets {
        let allowed = self.config().mcp_variables.values();
        McpSecrets::from_transport(&server.config.transport).with(allowed.iter().map(String::as_str))
    }

    /// Returns a server with its variables filled in, if it may be used. `workspace` is the working directory for
    /// servers of the workspace's `.mcp.json`.
    pub(crate) fn resolve_server(
        &self,
        owner: &Owner,
        source: McpServerSource,
        name: &str,
        config: &Result<McpServerConfig, McpConfigError>,
        workspace: Option<&Path>,
    ) -> Result<NamedMcpServer, ServerProblem> {
        let of_operator = is_from_operator(owner, source);
        let wrong = |why: String| ServerProblem::new("mcp_config", format!("the MCP server {name:?} {why}"));
        if name == host_tools::SERVER_NAME {
            return Err(wrong("has the name of Greenroom's own tools; rename it".into()));
        }
        let config = config.as_ref().map_err(|error| wrong(config_error_text(error)))?;
        if matches!(config.transport, McpTransport::Stdio { .. }) && !of_operator {
            return Err(ServerProblem::new(
                "operator_only",
                format!(
                    "the MCP server {name:?} starts a program, which only the operator of this server may configure"
                ),
            ));
        }
        let variables = &self.config().mcp_variables;
        let mut config = config.resolve(&|variable| variables.value(variable, of_operator)).map_err(|error| {
            wrong(match &error {
                McpConfigError::Unset(unset) if !variables.allows(&unset.variable, of_operator) => format!(
                    "needs the variable {0} (in its {1}), which the operator has not allowed here (PUT /api/mcp-variables/{0}, or \
                     mcp.variables in the configuration); a default can be written as ${{{0}:-…}}",
                    unset.variable, unset.field
                ),
                other => config_error_text(other),
            })
        })?;
        if let McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } = &config.transport
            && !of_operator
            && let Err(refused) = self.mcp().egress().check_url(url)
        {
            let message = format!("the MCP server {name:?} is not used: {refused}");
            return Err(ServerProblem::new("mcp_egress_refused", message));
        }
        if let Some(workspace) = workspace {
            config.folder = Some(workspace.join(config.folder.unwrap_or_else(PathBuf::new)));
        }
        let owner = (source != McpServerSource::File).then(|| owner.clone());
        Ok(NamedMcpServer { name: name.to_owned(), config, owner })
    }
}

/// Returns whether the operator has configured or trusted the server.
pub(crate) fn is_from_operator(owner: &Owner, source: McpServerSource) -> bool {
    source == McpServerSource::File || owner.belongs_to_operator()
}

/// An error text without values: a filled-in value may be a secret.
pub(crate) fn config_error_text(error: &McpConfigError) -> String {
    match error {
        McpConfigError::Entry(McpEntryError::Url(_)) => {
            "has an address that begins with neither http:// nor https://".to_owned()
        }
        McpConfigError::Entry(McpEntryError::Shape(_)) => "cannot be understood as an entry of .mcp.json".to_owned(),
        other => other.to_string(),
    }
}
