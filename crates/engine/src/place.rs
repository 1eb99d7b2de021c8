//! Where and with what an agent works: its folders, its skills, its MCP servers. Names are looked up when the agent is
//! made, so that a mistake is heard of then, and again when it runs, because what they name may be gone.

use crate::{Engine, Error};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId},
    run::RunError,
};
use providers::{McpServer, Place, SkillFolder};

/// Something that an agent's settings name and this server does not have.
#[derive(Debug)]
pub(crate) enum Missing {
    Skill(String),
    McpServer(String),
}

impl Engine {
    /// What an agent's settings ask of this server that it cannot give.
    pub async fn check_agent(&self, spec: &AgentSpec) -> Result<(), Error> {
        let named = spec.clone();
        let found = self.on_disk(move |engine| engine.equipment(&named).map_err(|missing| engine.refusal(&missing)));
        found.await.map_err(Error::Unavailable)??;
        let Some(provider) = self.providers().get(&spec.provider) else { return Ok(()) };
        provider.check(spec).map_err(|detail| Error::Refused { pointer: "/provider", detail })
    }

    /// The place of an agent in a room, made ready. The error says what is wrong for the run that needs it.
    pub(crate) async fn place(&self, room_id: RoomId, agent: &Agent) -> Result<Place, RunError> {
        let agent = agent.clone();
        let id = agent.id;
        let made = self.on_disk(move |engine| {
            let (skills, mcp_servers) = engine.equipment(&agent.spec).map_err(|missing| engine.failure(&missing))?;
            let folders = &engine.config().folders;
            folders.make(room_id, agent.id).map_err(|error| no_folder(room_id, agent.id, &error))?;
            let (workplace, home) = (folders.workplace(room_id), folders.home(agent.id));
            Ok(Place { room_id, agent, workplace, home, skills, mcp_servers })
        });
        made.await.unwrap_or_else(|why| Err(no_folder(room_id, id, &why)))
    }

    /// Somebody may soon ask these agents something. A hint: what stands in its way is told when they are asked.
    pub(crate) async fn prepare(&self, room: RoomId, agents: &[&Agent]) {
        for agent in agents {
            let Some(provider) = self.providers().get(&agent.spec.provider) else { continue };
            match self.place(room, agent).await {
                Ok(place) => provider.prepare(place),
                Err(error) => tracing::debug!(%room, agent = %agent.id, code = error.code, "cannot prepare an agent"),
            }
        }
    }

    fn equipment(&self, spec: &AgentSpec) -> Result<(Vec<SkillFolder>, Vec<McpServer>), Missing> {
        let skill = |name: &String| match self.config().folders.skill(name) {
            Some(path) => Ok(SkillFolder { name: name.clone(), path }),
            None => Err(Missing::Skill(name.clone())),
        };
        let server = |name: &String| match self.config().mcp_servers.get(name) {
            Some(transport) => Ok(McpServer { name: name.clone(), transport: transport.clone() }),
            None => Err(Missing::McpServer(name.clone())),
        };
        let skills = spec.skills.iter().map(skill).collect::<Result<_, _>>()?;
        Ok((skills, spec.mcp_servers.iter().map(server).collect::<Result<_, _>>()?))
    }

    fn refusal(&self, missing: &Missing) -> Error {
        let pointer = match missing {
            Missing::Skill(_) => "/skills",
            Missing::McpServer(_) => "/mcp_servers",
        };
        Error::Refused { pointer, detail: self.explain(missing) }
    }

    fn failure(&self, missing: &Missing) -> RunError {
        let code = match missing {
            Missing::Skill(_) => "skill_missing",
            Missing::McpServer(_) => "mcp_server_missing",
        };
        RunError::new(code, self.explain(missing))
    }

    fn explain(&self, missing: &Missing) -> String {
        match missing {
            Missing::Skill(name) => format!(
                "this server has no skill {name:?}; {}. A skill is a folder with a SKILL.md, in skills/ of the data folder",
                listed(&self.config().folders.skill_names())
            ),
            Missing::McpServer(name) => {
                let known: Vec<String> = self.config().mcp_servers.keys().cloned().collect();
                format!("this server has no MCP server {name:?}; {}", listed(&known))
            }
        }
    }

    /// Runs what waits for the disk where it holds up nobody.
    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Result<T, String> {
        let engine = self.clone();
        tokio::task::spawn_blocking(move || work(&engine)).await.map_err(|error| error.to_string())
    }
}

fn listed(names: &[String]) -> String {
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
