//! Where and with what an agent works: its folders, its skills, its MCP servers. Names are looked up when the agent is
//! made, so that a mistake is heard of then, and again when it runs, because what they name may be gone.

use crate::{
    Engine, Error,
    skills::{Occasion, Skilled},
};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId},
    mcp,
    owner::Owner,
    run::RunError,
};
use providers::Place;

/// An MCP server that an agent's settings name and this server does not have.
#[derive(Debug)]
pub(crate) struct Missing(String);

impl Engine {
    /// What an agent's settings ask of this server that it cannot give.
    pub async fn check_agent(&self, owner: &Owner, spec: &AgentSpec) -> Result<(), Error> {
        self.check_skills(owner, spec).await?;
        self.servers(spec).map_err(|missing| self.refusal(&missing))?;
        let Some(provider) = self.providers().get(&spec.provider) else { return Ok(()) };
        provider.check(spec).map_err(|detail| Error::Refused { pointer: "/provider", detail })
    }

    /// The place of an agent in a room, made ready. The error says what is wrong for the run that needs it.
    pub(crate) async fn place(&self, room_id: RoomId, skilled: Skilled) -> Result<Place, RunError> {
        let Skilled { agent, folders: skills, .. } = skilled;
        let id = agent.id;
        let mcp_servers = self.servers(&agent.spec).map_err(|missing| self.failure(&missing))?;
        let made = self.on_disk(move |engine| {
            let folders = &engine.config().folders;
            folders.make(room_id, agent.id).map_err(|error| no_folder(room_id, agent.id, &error))?;
            let (workplace, home) = (folders.workplace(room_id), folders.home(agent.id));
            Ok(Place { room_id, agent, workplace, home, skills, mcp_servers })
        });
        made.await.unwrap_or_else(|why| Err(no_folder(room_id, id, &why)))
    }

    /// Somebody may soon ask these agents something. A hint: what stands in its way is told when they are asked.
    pub(crate) async fn prepare(&self, owner: &Owner, room: RoomId, agents: &[&Agent]) {
        for agent in agents {
            let Some(provider) = self.providers().get(&agent.spec.provider) else { continue };
            let place = async {
                let skilled = self.skilled(owner, room, agent, Occasion::Preparation).await?;
                self.place(room, skilled).await
            };
            match place.await {
                Ok(place) => provider.prepare(place),
                Err(error) => tracing::debug!(%room, agent = %agent.id, code = error.code, "cannot prepare an agent"),
            }
        }
    }

    fn servers(&self, spec: &AgentSpec) -> Result<Vec<mcp::Server>, Missing> {
        let server = |name: &String| match self.config().mcp_servers.get(name) {
            Some(config) => Ok(mcp::Server { name: name.clone(), config: config.clone() }),
            None => Err(Missing(name.clone())),
        };
        spec.mcp_servers.iter().map(server).collect()
    }

    fn refusal(&self, missing: &Missing) -> Error {
        Error::Refused { pointer: "/mcp_servers", detail: self.explain(missing) }
    }

    fn failure(&self, missing: &Missing) -> RunError {
        RunError::new("mcp_server_missing", self.explain(missing))
    }

    fn explain(&self, Missing(name): &Missing) -> String {
        let known: Vec<String> = self.config().mcp_servers.keys().cloned().collect();
        format!("this server has no MCP server {name:?}; {}", listed(&known))
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
