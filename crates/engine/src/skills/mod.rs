//! The skills of a run: found by name, in the database first and then in the data folder; filled in; written to a folder
//! that is the run's own; and what of them goes into the prompt, the tool policy and the MCP servers.

mod making;

use crate::{Engine, Error, place::listed};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    owner::Owner,
    run::RunError,
    skill::{Arguments, Given, Invocation, Skill, SkillName, Trouble},
};
use making::{Called, Making, body_of};
use providers::SkillFolder;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use workbench::skills::Filled;

/// No run lasts so long; another server on this data folder may have younger ones.
const LEFT_BEHIND: Duration = Duration::from_secs(7 * 24 * 3600);

/// A stored skill and the MCP servers that it brings along: entries as in `.mcp.json`, by name.
pub(crate) type SkillServers = (String, BTreeMap<String, Value>);

/// For whom skills are made ready.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Occasion<'a> {
    /// A run that answers this message.
    Run { id: RunId, message: &'a str },
    /// Somebody may soon ask.
    Preparation,
}

/// An agent with its skills at hand.
#[derive(Debug)]
pub(crate) struct Skilled {
    /// With what its skills add to its settings.
    pub agent: Agent,
    pub folders: Vec<SkillFolder>,
    /// What it is asked, if that is not the message itself.
    pub prompt: Option<String>,
    /// The MCP servers that its skills bring along, by skill: entries as in `.mcp.json`.
    pub servers: Vec<SkillServers>,
}

/// A skill by its name.
enum Found {
    Stored(Box<Skill>),
    /// It lies in the data folder.
    Folder(SkillFolder),
}

/// What keeps an agent from its skills.
enum Obstacle {
    Missing(String),
    Trouble(SkillName, Trouble),
    Store(store::Error),
    Disk(String),
}

impl From<store::Error> for Obstacle {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// A message that calls a skill that is there.
struct Call {
    name: SkillName,
    arguments: Arguments,
}

/// An agent that has no skills for this message, in a room that trains none. `None` where it may have some.
pub(crate) fn unskilled(agent: &Agent, message: &str) -> Option<Skilled> {
    let is_skilled = !agent.spec.skills.is_empty() || Invocation::of(message).is_some();
    (!is_skilled).then(|| Making::of(agent).skilled)
}

impl Engine {
    /// Whether an agent's skills are there, and take the values that it has for them.
    pub(crate) async fn check_skills(&self, owner: &Owner, spec: &AgentSpec) -> Result<(), Error> {
        for name in &spec.skills {
            if self.find_skill(owner, name).await?.is_none() {
                return Err(Error::Refused { pointer: "/skills", detail: self.no_such_skill(owner, name).await });
            }
        }
        for (name, given) in &spec.skill_parameters {
            let refused = |detail| Error::Refused { pointer: "/skill_parameters", detail };
            if !spec.skills.contains(name) {
                return Err(refused(format!("it has values for {name:?}, which is not among the agent's skills")));
            }
            match self.find_skill(owner, name).await? {
                Some(Found::Stored(skill)) => {
                    skill.spec.accepts(given).map_err(|trouble| refused(format!("{name}: {trouble}")))?;
                }
                _ if given.is_empty() => {}
                _ => return Err(refused(format!("{name}: a skill in the data folder takes no parameters"))),
            }
        }
        Ok(())
    }

    /// Whether a message that calls a skill can be answered by these agents, before it is stored. Says whether it calls one.
    pub(crate) async fn check_call(&self, owner: &Owner, message: &str, agents: &[&Agent]) -> Result<bool, Error> {
        let refused = |name: &SkillName, trouble: &Trouble| Error::Refused {
            pointer: "/text",
            detail: format!("the skill {name} cannot be used so: {trouble}"),
        };
        let Some(called) = Invocation::of(message) else { return Ok(false) };
        let spec = match self.find_skill(owner, called.name.as_str()).await? {
            Some(Found::Stored(skill)) => skill.spec,
            Some(Found::Folder(_)) => return Ok(true),
            None => return Ok(false),
        };
        let arguments = called.arguments(&spec.parameters).map_err(|trouble| refused(&called.name, &trouble))?;
        let nothing = Given::new();
        for agent in agents {
            let own = agent.spec.skill_parameters.get(called.name.as_str()).unwrap_or(&nothing);
            spec.values(&[&arguments.given, own]).map_err(|trouble| refused(&called.name, &trouble))?;
        }
        Ok(true)
    }

    /// The MCP servers that an agent's stored skills bring along.
    pub(crate) async fn skill_servers(&self, owner: &Owner, spec: &AgentSpec) -> Result<Vec<SkillServers>, Error> {
        let mut servers = Vec::new();
        for name in &spec.skills {
            if let Some(Found::Stored(skill)) = self.find_skill(owner, name).await? {
                servers.push((name.clone(), skill.spec.mcp_servers));
            }
        }
        Ok(servers)
    }

    /// Makes an agent's skills ready. The error says what is wrong for the run that needs them.
    pub(crate) async fn skilled(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        occasion: Occasion<'_>,
    ) -> Result<Skilled, RunError> {
        match self.gather(owner, room, agent, occasion).await {
            Ok(skilled) => Ok(skilled),
            Err(Obstacle::Missing(name)) => Err(RunError::new("skill_missing", self.no_such_skill(owner, &name).await)),
            Err(Obstacle::Trouble(name, trouble)) => {
                Err(RunError::new("skill_parameters", format!("the skill {name} cannot be used so: {trouble}")))
            }
            Err(Obstacle::Store(error)) => {
                tracing::error!(%room, agent = %agent.id, %error, "cannot read an agent's skills");
                Err(RunError::new("unavailable", "the database cannot say what the agent's skills are; try again"))
            }
            Err(Obstacle::Disk(error)) => {
                tracing::error!(%room, agent = %agent.id, %error, "cannot write an agent's skills");
                Err(RunError::new("no_folder", format!("the server cannot write the agent's skills: {error}")))
            }
        }
    }

    async fn gather(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        occasion: Occasion<'_>,
    ) -> Result<Skilled, Obstacle> {
        let (message, run) = match occasion {
            Occasion::Run { id, message } => (Some(message), Some(id)),
            Occasion::Preparation => (None, None),
        };
        let call = async {
            match message {
                Some(message) => self.call(owner, message).await,
                None => Ok(None),
            }
        };
        let (trained, call) = tokio::join!(self.store().skill_trained_in(owner, room), call);
        let (trained, call) = (trained?, call?);
        let mut names = agent.spec.skills.clone();
        for extra in trained.iter().chain(call.as_ref().map(|call| &call.name)) {
            if !names.iter().any(|name| name == extra.as_str()) {
                names.push(extra.to_string());
            }
        }
        let mut making = Making::of(agent);
        for name in &names {
            let found = self.find_skill(owner, name).await?.ok_or_else(|| Obstacle::Missing(name.clone()))?;
            let call = call.as_ref().filter(|call| call.name.as_str() == name);
            match found {
                Found::Folder(folder) => {
                    if let Some(call) = call {
                        let body = body_of(&folder).await?;
                        let (name, text) = (folder.name.clone(), call.arguments.text.clone());
                        making.called = Some(Called { name, body, text, has_files: true });
                    }
                    making.skilled.folders.push(folder);
                }
                Found::Stored(skill) => {
                    let is_trained = trained.as_ref() == Some(&skill.spec.name);
                    if making.add(&skill, call, is_trained)? {
                        let files = self.store().skill_files(owner, &skill.spec.name, skill.version).await?;
                        making.filled.extend(making.document.take().map(|document| Filled {
                            name: skill.spec.name.clone(),
                            document,
                            files,
                            made_at: skill.updated_at,
                        }));
                    }
                }
            }
        }
        let Making { mut skilled, filled, uses, called, .. } = making;
        if !filled.is_empty() {
            let folder = self.config().folders.run(&owner_of_folder(room, agent.id, run)).join("skills");
            let folders = filled
                .iter()
                .map(|skill| SkillFolder { name: skill.name.to_string(), path: folder.join(skill.name.as_str()) });
            skilled.folders.extend(folders);
            let written = tokio::task::spawn_blocking(move || workbench::skills::write(&filled, &folder)).await;
            written.map_err(|error| Obstacle::Disk(error.to_string()))?.map_err(|e| Obstacle::Disk(e.to_string()))?;
        }
        if let Some(called) = called {
            let folder = skilled.folders.iter().find(|folder| folder.name == called.name);
            skilled.prompt = Some(called.prompt(folder.map(|folder| folder.path.as_path())));
        }
        if let Some(run) = run.filter(|_| !uses.is_empty()) {
            let (store, owner) = (self.store().clone(), owner.clone());
            // Figures are no reason to let anybody wait.
            self.chores().spawn(async move {
                if let Err(error) = store.used_skills(&owner, run, &uses).await {
                    tracing::warn!(%run, %error, "cannot note which skills a run had");
                }
            });
        }
        Ok(skilled)
    }

    /// Removes what was written for a run, and for the one that was expected in its place.
    pub(crate) async fn clear_skills(&self, room: RoomId, agent: AgentId, run: RunId) {
        let folders = &self.config().folders;
        let all = [Some(run), None].map(|run| folders.run(&owner_of_folder(room, agent, run)));
        let cleared = tokio::task::spawn_blocking(move || all.iter().try_for_each(|at| workbench::skills::clear(at)));
        match cleared.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%run, %error, "cannot remove the folder of a run"),
            Err(error) => tracing::error!(%run, %error, "the removal of a run's folder crashed"),
        }
    }

    /// Removes what servers that were killed have left behind.
    pub(crate) async fn clear_old_skills(&self) {
        let runs = self.config().folders.runs();
        match tokio::task::spawn_blocking(move || workbench::skills::clear_older(&runs, LEFT_BEHIND)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot remove the folders of old runs"),
            Err(error) => tracing::error!(%error, "the removal of old runs' folders crashed"),
        }
    }

    async fn call(&self, owner: &Owner, message: &str) -> Result<Option<Call>, Obstacle> {
        let Some(called) = Invocation::of(message) else { return Ok(None) };
        let arguments = match self.find_skill(owner, called.name.as_str()).await? {
            None => return Ok(None),
            Some(Found::Folder(_)) => called.arguments(&[]),
            Some(Found::Stored(skill)) => called.arguments(&skill.spec.parameters),
        };
        let arguments = arguments.map_err(|trouble| Obstacle::Trouble(called.name.clone(), trouble))?;
        Ok(Some(Call { name: called.name, arguments }))
    }

    async fn find_skill(&self, owner: &Owner, name: &str) -> Result<Option<Found>, store::Error> {
        if let Ok(name) = name.parse::<SkillName>() {
            match self.store().skill(owner, &name).await {
                Ok(skill) => return Ok(Some(Found::Stored(Box::new(skill)))),
                Err(store::Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        let (folders, name) = (self.config().folders.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || {
            folders.skill(&name).map(|path| Found::Folder(SkillFolder { name, path }))
        });
        found.await.map_err(|error| store::Error::Unavailable(error.to_string()))
    }

    async fn no_such_skill(&self, owner: &Owner, name: &str) -> String {
        let folders = self.config().folders.clone();
        let mut known = tokio::task::spawn_blocking(move || folders.skill_names()).await.unwrap_or_default();
        // Without the database there is still something to say.
        let stored = self.store().skills(owner).await.unwrap_or_default();
        known.extend(stored.into_iter().map(|skill| skill.spec.name.to_string()));
        known.sort_unstable();
        known.dedup();
        format!(
            "this server has no skill {name:?}; {}. Make one with POST /api/skills, or put a folder with a SKILL.md into \
             skills/ of the data folder",
            listed(&known)
        )
    }
}

fn owner_of_folder(room: RoomId, agent: AgentId, run: Option<RunId>) -> String {
    run.map_or_else(|| format!("ready-{room}-{agent}"), |run| run.to_string())
}
