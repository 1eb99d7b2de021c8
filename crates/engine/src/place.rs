//! Where and with what an agent works: its folders, its skills, its MCP servers. Names are looked up when the agent is
//! made, so that a mistake is heard of then, and again when it runs, because what they name may be gone.

use crate::{
    Engine, Error,
    equipment::{self, Outfit, Remark, skill_layer},
    skills::{Occasion, SkillServers, Skilled},
};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId},
    mcp::Layer,
    owner::Owner,
    run::RunError,
};
use providers::Place;

impl Engine {
    /// What an agent's settings ask of this server that it cannot give.
    pub async fn check_agent(&self, owner: &Owner, spec: &AgentSpec) -> Result<(), Error> {
        self.check_skills(owner, spec).await?;
        let outfit = self.outfit(owner, spec, Vec::new(), None).await?;
        if let Some(name) = outfit.missing() {
            return Err(Error::Refused { pointer: "/mcp_servers", detail: self.no_such_server(owner, name).await? });
        }
        let Some(provider) = self.providers().get(&spec.provider) else { return Ok(()) };
        if spec.model_options.is_some() && !provider.takes_model_options() {
            let detail =
                format!("the provider {} has its own settings for models; leave model_options out", spec.provider);
            return Err(Error::Refused { pointer: "/model_options", detail });
        }
        provider.check(spec).map_err(|detail| Error::Refused { pointer: "/provider", detail })
    }

    /// The place of an agent in a room, made ready, and what the room should hear of it. The error says what is wrong for
    /// the run that needs it.
    pub(crate) async fn place(
        &self,
        owner: &Owner,
        room_id: RoomId,
        skilled: Skilled,
    ) -> Result<(Place, Vec<Remark>), RunError> {
        let Skilled { agent, folders: skills, servers, .. } = skilled;
        let (id, named) = (agent.id, agent.clone());
        let made = self.on_disk(move |engine| {
            let folders = &engine.config().folders;
            folders.make(room_id, named.id).map_err(|error| no_folder(room_id, named.id, &error))?;
            let (workplace, home) = (folders.workplace(room_id), folders.home(named.id));
            Ok(Place { room_id, agent: named, workplace, home, skills, mcp_servers: Vec::new() })
        });
        let (made, outfit) = tokio::join!(made, self.outfit_in(owner, room_id, &agent, &servers));
        let place = made.unwrap_or_else(|why| Err(no_folder(room_id, id, &why)))?;
        let outfit = outfit.map_err(|error| {
            tracing::error!(room = %room_id, agent = %id, %error, "cannot tell which MCP servers an agent has");
            RunError::new("unavailable", "the database cannot say which MCP servers the agent has; try again")
        })?;
        if let Some(name) = outfit.missing() {
            let message = self.no_such_server(owner, name).await.unwrap_or_else(|error| error.to_string());
            return Err(RunError::new("mcp_server_missing", message));
        }
        let remarks = match self.providers().get(&agent.spec.provider) {
            Some(provider) if provider.capabilities().mcp => outfit.remarks(),
            // Nothing is missed where no server is used.
            _ => Vec::new(),
        };
        Ok((Place { mcp_servers: outfit.in_use(), ..place }, remarks))
    }

    async fn outfit_in(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        skills: &[SkillServers],
    ) -> Result<Outfit, store::Error> {
        let layers = self.skill_layers(&agent.spec, skills).await;
        self.outfit(owner, &agent.spec, layers, Some(room)).await
    }

    /// The MCP servers that an agent's skills bring along: those of its stored skills, and a `.mcp.json` beside the
    /// `SKILL.md` of one that lies in the data folder.
    pub(crate) async fn skill_layers(&self, spec: &AgentSpec, stored: &[SkillServers]) -> Vec<Layer> {
        let mut layers: Vec<Layer> = stored.iter().map(|(skill, servers)| skill_layer(skill, servers)).collect();
        // A stored skill stands in the place of a folder of its name.
        let is_stored = |name: &&String| stored.iter().any(|(skill, _)| skill == *name);
        let named: Vec<String> = spec.skills.iter().filter(|name| !is_stored(name)).cloned().collect();
        if named.is_empty() {
            return layers;
        }
        let beside = self.on_disk(move |engine| {
            let folders = &engine.config().folders;
            named.iter().filter_map(|name| equipment::folder_layer(name, &folders.skill(name)?)).collect()
        });
        let beside: Vec<Layer> = beside.await.unwrap_or_default();
        layers.extend(beside);
        layers
    }

    /// Somebody may soon ask these agents something. A hint: what stands in its way is told when they are asked.
    pub(crate) async fn prepare(&self, owner: &Owner, room: RoomId, agents: &[&Agent]) {
        for agent in agents {
            let Some(provider) = self.providers().get(&agent.spec.provider) else { continue };
            let ready = async {
                let skilled = self.skilled(owner, room, agent, Occasion::Preparation).await?;
                self.place(owner, room, skilled).await
            };
            match ready.await {
                Ok((place, _)) => provider.prepare(place),
                Err(error) => tracing::debug!(%room, agent = %agent.id, code = error.code, "cannot prepare an agent"),
            }
        }
    }

    pub(crate) async fn no_such_server(&self, owner: &Owner, name: &str) -> Result<String, store::Error> {
        let mut known: Vec<String> = self.known_servers(owner).await?.into_iter().map(|known| known.name).collect();
        known.dedup();
        Ok(format!("this server has no MCP server {name:?}; {}", listed(&known)))
    }

    /// Runs what waits for the disk where it holds up nobody.
    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Result<T, String> {
        let engine = self.clone();
        tokio::task::spawn_blocking(move || work(&engine)).await.map_err(|error| error.to_string())
    }
}

pub(crate) fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    match names.len() {
        0 => "it has none".to_owned(),
        1..=MOST => format!("it has: {}", names.join(", ")),
        more => format!("it has {more}, among them: {}", names[..MOST].join(", ")),
    }
}

/// Where the folders are is for the log; whoever talks to the agent need not know.
fn no_folder(room: RoomId, agent: AgentId, error: &dyn std::fmt::Display) -> RunError {
    tracing::error!(%room, %agent, %error, "cannot make the folders that an agent works in");
    RunError::new("no_folder", format!("the server cannot make a folder for the agent to work in: {error}"))
}
