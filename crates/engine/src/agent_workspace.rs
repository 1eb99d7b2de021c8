//! The workspace of an agent: its folders, skills and MCP servers. Names are checked when the agent is created, so that
//! a mistake is reported then, and again when it runs, because a skill or server may have been deleted since.

use crate::{
    Engine, EngineError, Folders,
    mcp_servers::{self, ResolvedServers, RunNotice, introduce_caller, skill_tier},
    provider_access::apply_defaults,
    run::RoomView,
    skills::{AgentWithSkills, SkillPurpose, SkillServers},
};
use domain::{
    agent::{Agent, AgentSpec},
    calling_agent::CallingAgent,
    ids::{AgentId, RoomId},
    mcp::{McpTierServers, McpTransport, NamedMcpServer},
    owner::Owner,
    project::ProjectSpace,
    run::RunError,
};
use providers::AgentWorkspace;
use std::{io, sync::Arc};
use store::StoreError;
use workbench::project_sandbox::{SandboxManager, SandboxSpec};

/// Where what runs for an agent runs. `None`: there is nothing to run, or the project or the operator lets it run outside.
struct AgentPlaces {
    program: Option<SandboxManager>,
    /// The error says why no sandbox works: then no server is started.
    servers: Result<Option<SandboxManager>, String>,
}

impl Engine {
    /// Checks that the MCP servers that an agent names exist.
    pub(crate) async fn check_servers(&self, owner: &Owner, spec: &AgentSpec) -> Result<(), EngineError> {
        let resolved = self.resolve_servers(owner, spec, Vec::new(), None).await?;
        match resolved.first_missing() {
            Some(name) => Err(EngineError::Refused {
                pointer: "/mcp_servers".into(),
                detail: self.unknown_server_message(owner, name).await?,
            }),
            None => Ok(()),
        }
    }

    /// Prepares the workspace of an agent in a room. Returns it with the notices to show in the room; the error ends
    /// the run.
    pub(crate) async fn prepare_agent_workspace(
        &self,
        owner: &Owner,
        room_id: RoomId,
        skilled: AgentWithSkills,
    ) -> Result<(AgentWorkspace, Vec<RunNotice>), RunError> {
        let AgentWithSkills { agent, folders: skills, servers, mut notices, .. } = skilled;
        let (id, named, owned_by) = (agent.id, agent.clone(), owner.clone());
        let space = match self.room_space(owner, room_id).await {
            Ok(space) => Arc::new(space),
            // A prefetch may ask before the room is stored.
            Err(StoreError::NotFound) => return Err(RunError::new("no_room", "the room does not exist")),
            Err(error) => {
                tracing::error!(room = %room_id, %error, "cannot look up the project of a room");
                let message = "the room's project could not be read from the database; try again";
                return Err(RunError::new("unavailable", message));
            }
        };
        let AgentPlaces { program: sandboxes, servers: server_sandboxes } = self.sandboxes_for(&agent, &space).await?;
        let (server_sandboxes, no_servers) = match server_sandboxes {
            Ok(sandboxes) => (sandboxes, None),
            Err(why) => (None, Some(why)),
        };
        let created = self.run_blocking(move |engine| {
            let folders = &engine.config().folders;
            let failed = |error: io::Error| folder_error(room_id, named.id, &error);
            let servers_sandbox = server_sandboxes.map(|sandboxes| Arc::new(sandboxes.spec(&space)));
            let (home, sandbox) = match sandboxes {
                None => {
                    folders.create(&space, named.id).map_err(failed)?;
                    (folders.agent_home(named.id), None)
                }
                Some(sandboxes) => {
                    let sandbox = sandboxes.spec(&space);
                    let created = folders.create_space(&space).and_then(|()| Folders::create_private(&sandbox.home));
                    created.map_err(failed)?;
                    (sandbox.home.join(named.id.to_string()), Some(Arc::new(sandbox)))
                }
            };
            Ok(AgentWorkspace {
                owner: owned_by,
                room_id,
                agent: named,
                folder: space.folder.clone(),
                space,
                home,
                sandbox,
                servers_sandbox,
                skills,
                mcp_servers: Vec::new(),
                provider_settings: Arc::default(),
                host_tools: engine.config().host_tools.clone(),
                has_company: false,
                depth: 0,
            })
        });
        let (created, resolved, provider_settings) = tokio::join!(
            created,
            self.resolve_servers_in_room(owner, room_id, &agent, &servers),
            self.settings_for(owner, &agent.spec.provider)
        );
        let mut place = created.unwrap_or_else(|why| Err(folder_error(room_id, id, &why)))?;
        let resolved = resolved.map_err(|error| {
            tracing::error!(room = %room_id, agent = %id, %error, "cannot look up the MCP servers of an agent");
            RunError::new("unavailable", "the agent's MCP servers could not be read from the database; try again")
        })?;
        if let Some(name) = resolved.first_missing() {
            let message = self.unknown_server_message(owner, name).await.unwrap_or_else(|error| error.to_string());
            return Err(RunError::new("mcp_server_missing", message));
        }
        // A provider without MCP support uses no server, so nothing is missing.
        let provider_settings = provider_settings.map_err(|error| {
            tracing::error!(room = %room_id, agent = %id, %error, "cannot look up the provider settings of an agent");
            RunError::new("unavailable", "the provider settings could not be read from the database; try again")
        })?;
        let provider = self.providers().resolve(&agent.spec.provider, &provider_settings);
        if provider.as_ref().is_some_and(|provider| provider.capabilities().mcp) {
            notices.extend(resolved.notices());
        }
        if let Some(provider) = provider {
            apply_defaults(&mut place.agent.spec, &*provider, &provider_settings);
        }
        let mut mcp_servers = resolved.usable();
        introduce_caller(&mut mcp_servers, CallingAgent { room_id, agent_id: id });
        if let Some(why) = no_servers {
            notices.extend(leave_out_programs(&mut mcp_servers, &why));
        }
        Ok((AgentWorkspace { mcp_servers, provider_settings, ..place }, notices))
    }

    /// The sandboxes that the program of this agent runs in, and those for the stdio MCP servers that we start for an agent
    /// without a program. A room without a project shares the servers of its workspace, which are outside.
    async fn sandboxes_for(&self, agent: &Agent, space: &ProjectSpace) -> Result<AgentPlaces, RunError> {
        let runs_program = self.providers().get(&agent.spec.provider).is_some_and(|provider| provider.runs_program());
        if !runs_program && space.key.project_id().is_none() {
            return Ok(AgentPlaces { program: None, servers: Ok(None) });
        }
        let sandboxes = self.config().projects.sandboxes.for_programs(space).await;
        match runs_program {
            true => {
                let program = sandboxes.map_err(|why| RunError::new("no_sandbox", why.to_string()))?;
                Ok(AgentPlaces { program, servers: Ok(None) })
            }
            // An agent on a model API can answer without its servers.
            false => Ok(AgentPlaces { program: None, servers: sandboxes.map_err(|why| why.to_string()) }),
        }
    }

    /// The sandbox in which the stdio MCP servers of a room's project run when we start them. The inner error says why there
    /// is none.
    pub(crate) async fn servers_sandbox(
        &self,
        owner: &Owner,
        room: RoomId,
    ) -> Result<Result<Option<Arc<SandboxSpec>>, String>, EngineError> {
        let space = self.room_space(owner, room).await?;
        if space.key.project_id().is_none() {
            return Ok(Ok(None));
        }
        let sandboxes = match self.config().projects.sandboxes.for_programs(&space).await {
            Ok(sandboxes) => sandboxes,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let Some(sandboxes) = sandboxes else { return Ok(Ok(None)) };
        let sandbox = Arc::new(sandboxes.spec(&space));
        let created = self.run_blocking(move |engine| engine.config().folders.create_space(&space)).await;
        let created = created.and_then(|created| created.map_err(|error| error.to_string()));
        Ok(created.map(|()| Some(sandbox)))
    }

    async fn resolve_servers_in_room(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        skills: &[SkillServers],
    ) -> Result<ResolvedServers, store::StoreError> {
        let tiers = self.skill_tiers(&agent.spec, skills).await;
        self.resolve_servers(owner, &agent.spec, tiers, Some(room)).await
    }

    /// The MCP servers that an agent's skills define: those of its stored skills, and the `.mcp.json` next to the
    /// `SKILL.md` of a skill in the data folder.
    pub(crate) async fn skill_tiers(&self, spec: &AgentSpec, stored: &[SkillServers]) -> Vec<McpTierServers> {
        let mut tiers: Vec<McpTierServers> = stored.iter().map(|(skill, servers)| skill_tier(skill, servers)).collect();
        // A stored skill replaces a folder of the same name.
        let is_stored = |name: &&String| stored.iter().any(|(skill, _)| skill == *name);
        let named: Vec<String> = spec.skills.iter().filter(|name| !is_stored(name)).cloned().collect();
        if named.is_empty() {
            return tiers;
        }
        let from_folders = self.run_blocking(move |engine| {
            let folders = &engine.config().folders;
            named.iter().filter_map(|name| mcp_servers::folder_tier(name, &folders.skill_folder(name)?)).collect()
        });
        let from_folders: Vec<McpTierServers> = from_folders.await.unwrap_or_default();
        tiers.extend(from_folders);
        tiers
    }

    /// Lets providers warm up for agents that may soon be asked something. Errors are only logged: the run reports
    /// them.
    pub(crate) async fn prepare_agents(&self, owner: &Owner, room: RoomId, agents: &[&Agent]) {
        let view = match RoomView::load(self, owner, room).await {
            Ok(view) => view,
            Err(error) => return tracing::debug!(%room, %error, "cannot warm up the agents of a room"),
        };
        for agent in agents {
            let Some(provider) = self.providers().get(&agent.spec.provider) else { continue };
            let ready = async {
                let skilled = self.prepare_skills(owner, room, agent, SkillPurpose::Preparation).await?;
                self.prepare_agent_workspace(owner, room, skilled).await
            };
            match ready.await {
                Ok((place, _))
                    if self.providers().login_refusal(owner, &*provider, &place.provider_settings).is_some() => {}
                Ok((mut place, _)) => {
                    view.introduce(&mut place.agent);
                    provider.prepare(AgentWorkspace { has_company: view.has_company(), ..place });
                }
                Err(error) => tracing::debug!(%room, agent = %agent.id, code = error.code, "cannot warm up an agent"),
            }
        }
    }

    pub(crate) async fn unknown_server_message(&self, owner: &Owner, name: &str) -> Result<String, store::StoreError> {
        let mut known: Vec<String> = self.catalog_servers(owner).await?.into_iter().map(|known| known.name).collect();
        known.dedup();
        Ok(format!("this server has no MCP server {name:?}; {}", list_names(&known)))
    }

    /// Runs blocking file work on a thread of its own.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, String> {
        let engine = self.clone();
        tokio::task::spawn_blocking(move || work(&engine)).await.map_err(|error| error.to_string())
    }
}

/// Removes the servers that are programs. Returns a notice for each.
fn leave_out_programs(servers: &mut Vec<NamedMcpServer>, why: &str) -> Vec<RunNotice> {
    let is_program = |server: &mut NamedMcpServer| matches!(server.config.transport, McpTransport::Stdio { .. });
    let left_out = servers.extract_if(.., is_program);
    let notice = |server: NamedMcpServer| RunNotice {
        status: "mcp_server_failed",
        message: format!("The MCP server {} is left out: {why}", server.name),
    };
    left_out.map(notice).collect()
}

pub(crate) fn list_names(names: &[String]) -> String {
    const MOST: usize = 20;
    match names.len() {
        0 => "it has none".to_owned(),
        1..=MOST => format!("it has: {}", names.join(", ")),
        more => format!("it has {more}, among them: {}", names[..MOST].join(", ")),
    }
}

/// The path is only logged; people in the room do not need it.
fn folder_error(room: RoomId, agent: AgentId, error: &dyn std::fmt::Display) -> RunError {
    tracing::error!(%room, %agent, %error, "cannot create the folders of an agent");
    RunError::new("no_folder", format!("the server cannot create a folder for the agent to work in: {error}"))
}
