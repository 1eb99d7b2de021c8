//! From what the tiers name to what an agent gets.

use super::{Known, Project, ProjectState, Secrets, Source, project};
use crate::Engine;
use domain::{
    agent::AgentSpec,
    ids::RoomId,
    mcp::{ConfigError, Entry, EntryError, Layer, Server, ServerConfig, Tier, Transport, check_name, merge},
    owner::Owner,
};
use providers::host_tools;
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Why one server cannot be used. The others are none the worse for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpProblem)]
pub struct ServerProblem {
    #[schema(value_type = String, examples("mcp_config"))]
    pub code: &'static str,
    /// For people: what is wrong and what to do.
    pub message: String,
}

impl ServerProblem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A server that some tier names, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Equipped {
    pub name: String,
    pub tier: Tier,
    pub source: Source,
    /// Whose server of the same name it hides, the strongest first.
    pub shadowed: Vec<Tier>,
    pub transport: Option<&'static str>,
    /// With its variables filled in.
    pub server: Result<Server, Unused>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unused {
    Disabled,
    /// It stands in a project's file that nobody has trusted yet.
    Untrusted,
    /// The agent names it and there is none.
    Missing,
    Problem(ServerProblem),
}

/// All that is known of the servers of an agent in a room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outfit {
    /// By name.
    pub servers: Vec<Equipped>,
    /// `None` without a room.
    pub project: Option<Project>,
}

/// Something that the room should hear of before the agent begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Remark {
    pub status: &'static str,
    pub message: String,
}

impl Outfit {
    pub(crate) fn in_use(&self) -> Vec<Server> {
        self.servers.iter().filter_map(|equipped| equipped.server.clone().ok()).collect()
    }

    /// The first name that stands for nothing.
    pub(crate) fn missing(&self) -> Option<&str> {
        let missing = self.servers.iter().find(|equipped| equipped.server == Err(Unused::Missing));
        missing.map(|equipped| equipped.name.as_str())
    }

    pub(crate) fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let mut untrusted = Vec::new();
        for equipped in &self.servers {
            match &equipped.server {
                Err(Unused::Problem(problem)) => {
                    let message = format!("{}; the agent works without it", problem.message);
                    remarks.push(Remark { status: "mcp_server_problem", message });
                }
                Err(Unused::Untrusted) => untrusted.push(equipped.name.as_str()),
                Ok(_) | Err(Unused::Disabled | Unused::Missing) => {}
            }
        }
        if !untrusted.is_empty() {
            let message = format!(
                "the .mcp.json in this folder is not trusted, so these MCP servers are left out: {}. Look at it and trust it \
                 if you do (/api/rooms/ROOM/mcp-trust)",
                untrusted.join(", ")
            );
            remarks.push(Remark { status: "mcp_untrusted", message });
        }
        if let Some(Project { state: ProjectState::Unreadable(why), .. }) = &self.project {
            let message = format!("the .mcp.json in this folder is not used: {why}");
            remarks.push(Remark { status: "mcp_server_problem", message });
        }
        remarks
    }
}

/// The servers that a skill brings along, as a tier. They are entries of a `.mcp.json`.
pub fn skill_layer(skill: &str, servers: &BTreeMap<String, Value>) -> Layer {
    let servers = servers.iter().map(|(name, entry)| (name.clone(), read_entry(name, entry.clone())));
    Layer { tier: Tier::Skill(skill.to_owned()), servers: servers.collect() }
}

/// As [`skill_layer`], for a skill that lies on disk with a `.mcp.json` of its own. Waits for the disk.
pub(crate) fn folder_layer(skill: &str, folder: &Path) -> Option<Layer> {
    let servers = match project::read(folder) {
        Ok(Some(file)) => file.servers,
        Ok(None) => return None,
        Err(why) => Err(why),
    };
    match servers {
        Ok(servers) => {
            let servers = servers.into_iter().map(|(name, config)| (name, config.map_err(ConfigError::from)));
            Some(Layer { tier: Tier::Skill(skill.to_owned()), servers: servers.collect() })
        }
        Err(why) => {
            tracing::warn!(skill, why, "the .mcp.json of a skill is not used");
            None
        }
    }
}

fn read_entry(name: &str, entry: Value) -> Result<ServerConfig, ConfigError> {
    check_name(name)?;
    let entry: Entry = serde_json::from_value(entry).map_err(|error| EntryError::Shape(error.to_string()))?;
    Ok(entry.try_into()?)
}

impl Engine {
    /// What an agent of this owner works with. `skills` are the tiers of its skills, see [`skill_layer`].
    pub(crate) async fn outfit(
        &self,
        owner: &Owner,
        spec: &AgentSpec,
        skills: Vec<Layer>,
        room: Option<RoomId>,
    ) -> Result<Outfit, store::Error> {
        let project = match room {
            Some(room) => Some(self.project(owner, room).await?),
            None => None,
        };
        let named = self.named(owner, spec).await?;
        let missing: BTreeSet<&String> =
            spec.mcp_servers.iter().filter(|name| !named.iter().any(|known| known.name == **name)).collect();
        let sources: BTreeMap<String, Source> = named.iter().map(|known| (known.name.clone(), known.source)).collect();

        let of_agent = named.into_iter().map(|known| (known.name, known.config)).collect();
        let mut layers = skills;
        layers.push(Layer { tier: Tier::Agent, servers: of_agent });
        if let Some(project) = &project {
            let servers = project.servers.iter();
            let servers = servers.map(|(name, config)| (name.clone(), config.clone().map_err(ConfigError::from)));
            layers.push(Layer { tier: Tier::Project, servers: servers.collect() });
        }
        let merged = merge(layers);
        let workplace = room.map(|room| self.config().folders.workplace(room));
        let is_trusted = project.as_ref().is_some_and(Project::is_trusted);
        let mut servers: Vec<Equipped> = Vec::new();
        for effective in merged.in_use.into_iter().chain(merged.disabled) {
            let source = match effective.tier {
                Tier::Skill(_) => Source::Skill,
                Tier::Agent => sources.get(&effective.name).copied().unwrap_or(Source::Database),
                Tier::Project => Source::Project,
            };
            let at = if source == Source::Project { workplace.as_deref() } else { None };
            let server = match &effective.config {
                Ok(config) if config.disabled => Err(Unused::Disabled),
                _ if source == Source::Project && !is_trusted => Err(Unused::Untrusted),
                config => self.ready(owner, source, &effective.name, config, at).map_err(Unused::Problem),
            };
            let transport = effective.config.as_ref().ok().map(|config| config.transport.kind());
            let (name, tier, shadowed) = (effective.name, effective.tier, effective.shadowed);
            servers.push(Equipped { name, tier, source, shadowed, transport, server });
        }
        for name in missing {
            // A skill that brings one of this name has its way; otherwise the name stands for nothing.
            if !servers.iter().any(|equipped| equipped.name == *name && matches!(equipped.tier, Tier::Skill(_))) {
                servers.retain(|equipped| equipped.name != *name);
                servers.push(Equipped {
                    name: name.clone(),
                    tier: Tier::Agent,
                    source: Source::Database,
                    shadowed: Vec::new(),
                    transport: None,
                    server: Err(Unused::Missing),
                });
            }
        }
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Outfit { servers, project })
    }

    /// Those that an agent names and that are there, each once.
    async fn named(&self, owner: &Owner, spec: &AgentSpec) -> Result<Vec<Known>, store::Error> {
        if spec.mcp_servers.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = self.known_servers(owner).await?;
        known.retain(|known| !known.shadowed && spec.mcp_servers.contains(&known.name));
        Ok(known)
    }

    /// What stands in the folder of a room.
    pub(crate) async fn project(&self, owner: &Owner, room: RoomId) -> Result<Project, store::Error> {
        let folder = self.config().folders.workplace(room);
        let looked_at = folder.clone();
        let read = tokio::task::spawn_blocking(move || project::read(&looked_at)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        let trusted = match &read {
            Ok(Some(_)) => self.store().trusted_file(owner, folder_key(&folder)).await?,
            _ => None,
        };
        Ok(Project::of(read, trusted))
    }

    /// What must not be repeated of a server's settings: its values, and those of the environment that may be in them.
    pub(crate) fn secrets_of(&self, server: &Server) -> Secrets {
        Secrets::of(&server.config.transport).and(self.config().mcp_variables.values())
    }

    /// A server with its variables filled in, if it may be used at all. `workplace` is where a project's servers are
    /// started.
    pub(crate) fn ready(
        &self,
        owner: &Owner,
        source: Source,
        name: &str,
        config: &Result<ServerConfig, ConfigError>,
        workplace: Option<&Path>,
    ) -> Result<Server, ServerProblem> {
        let of_operator = is_operators(owner, source);
        let wrong = |why: String| ServerProblem::new("mcp_config", format!("the MCP server {name:?} {why}"));
        if name == host_tools::SERVER {
            return Err(wrong("has the name of Greenroom's own tools; give it another".into()));
        }
        let config = config.as_ref().map_err(|error| wrong(said(error)))?;
        if matches!(config.transport, Transport::Stdio { .. }) && !of_operator {
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
                ConfigError::Unset(unset) if !variables.allows(&unset.variable, of_operator) => format!(
                    "needs the variable {} (in its {}), which the operator has not allowed here (mcp.variables in the \
                     configuration); a default can be written as ${{{}:-…}}",
                    unset.variable, unset.field, unset.variable
                ),
                other => said(other),
            })
        })?;
        if let Some(workplace) = workplace {
            config.folder = Some(workplace.join(config.folder.unwrap_or_else(PathBuf::new)));
        }
        Ok(Server { name: name.to_owned(), config })
    }
}

/// Whether the operator has written it down, or has vouched for it.
pub(crate) fn is_operators(owner: &Owner, source: Source) -> bool {
    source == Source::File || owner.is_operator()
}

/// A folder as the store knows it.
pub(crate) fn folder_key(folder: &Path) -> &[u8] {
    folder.as_os_str().as_encoded_bytes()
}

/// Without any value: what was filled in may be a secret.
pub(crate) fn said(error: &ConfigError) -> String {
    match error {
        ConfigError::Entry(EntryError::Url(_)) => {
            "has an address that begins with neither http:// nor https://".to_owned()
        }
        ConfigError::Entry(EntryError::Shape(_)) => "cannot be understood as an entry of .mcp.json".to_owned(),
        other => other.to_string(),
    }
}
