//! The skills of a run: looked up by name, in the database first and then in the data folder; filled in with parameter
//! values; written to a folder of the run by `workbench::skills` (`write_skills`); and merged into the prompt, the tool policy and the MCP servers.
//! `project` adds the trusted skills of the room's folder.

mod builder;
mod project;

pub(crate) use project::{WorkspaceSkills, filled};

use crate::{Engine, EngineError, agent_workspace::list_names, mcp_servers::RunNotice};
use builder::{CalledSkill, SkillSetBuilder, read_skill_body, read_skill_folder};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId, RunId},
    owner::Owner,
    run::RunError,
    skill::{ParameterError, ParameterValues, Skill, SkillArguments, SkillInvocation, SkillName, is_script},
};
use serde_json::Value;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use workbench::skills::{FilledSkill, SkillFolder};

/// No run lasts this long; another server on this data folder may own younger folders.
const STALE_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The name of a stored skill and the MCP servers that it defines, as entries of a `.mcp.json`.
pub(crate) type SkillServers = (String, BTreeMap<String, Value>);

/// What skills are prepared for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SkillPurpose<'a> {
    /// A run that answers this message.
    Run { id: RunId, message: &'a str },
    /// A warm-up before any message.
    Preparation,
}

/// An agent with its prepared skills.
#[derive(Debug)]
pub(crate) struct AgentWithSkills {
    /// The agent, including the settings that its skills add.
    pub agent: Agent,
    pub folders: Vec<SkillFolder>,
    /// The prompt, if it is not the message itself.
    pub prompt: Option<String>,
    /// The MCP servers that its stored skills define.
    pub servers: Vec<SkillServers>,
    /// What to tell in the room before the agent starts.
    pub notices: Vec<RunNotice>,
}

/// A skill looked up by name.
enum FoundSkill {
    Stored(Box<Skill>),
    /// A skill folder in the data folder.
    Folder(PathBuf),
}

/// Why an agent's skills cannot be prepared.
enum SkillSetupError {
    Missing(String),
    Parameters(SkillName, ParameterError),
    Store(store::StoreError),
    Unreadable(String, String),
    Disk(String),
}

impl From<store::StoreError> for SkillSetupError {
    fn from(error: store::StoreError) -> Self {
        Self::Store(error)
    }
}

/// A message that calls an existing skill.
struct SkillCall {
    name: SkillName,
    arguments: SkillArguments,
}

/// Returns the agent if this message needs no skills, in a room that trains none; `None` if it may need some.
pub(crate) fn without_skills(agent: &Agent, message: &str) -> Option<AgentWithSkills> {
    let is_skilled = !agent.spec.skills.is_empty() || SkillInvocation::parse(message).is_some();
    (!is_skilled).then(|| SkillSetBuilder::for_agent(agent).result)
}

impl Engine {
    /// Checks that an agent's skills exist and accept its parameter values.
    pub(crate) async fn check_skills(&self, owner: &Owner, spec: &AgentSpec) -> Result<(), EngineError> {
        for name in &spec.skills {
            if self.find_skill(owner, name).await?.is_none() {
                return Err(EngineError::Refused {
                    pointer: "/skills".into(),
                    detail: self.unknown_skill_message(owner, name).await,
                });
            }
        }
        for (name, given) in &spec.skill_parameters {
            let refused = |detail| EngineError::Refused { pointer: "/skill_parameters".into(), detail };
            if !spec.skills.contains(name) {
                return Err(refused(format!("it has values for {name:?}, which is not one of the agent's skills")));
            }
            match self.find_skill(owner, name).await? {
                Some(FoundSkill::Stored(skill)) => {
                    skill.spec.check_values(given).map_err(|error| refused(format!("{name}: {error}")))?;
                }
                _ if given.is_empty() => {}
                _ => return Err(refused(format!("{name}: a skill in the data folder takes no parameters"))),
            }
        }
        Ok(())
    }

    /// Checks, before a message is stored, that these agents can run the skill it calls. Returns whether it calls one.
    pub(crate) async fn check_skill_call(
        &self,
        owner: &Owner,
        message: &str,
        agents: &[&Agent],
    ) -> Result<bool, EngineError> {
        let refused = |name: &SkillName, error: &ParameterError| EngineError::Refused {
            pointer: "/text".into(),
            detail: format!("the skill {name} cannot be used: {error}"),
        };
        let Some(called) = SkillInvocation::parse(message) else { return Ok(false) };
        let spec = match self.find_skill(owner, called.name.as_str()).await? {
            Some(FoundSkill::Stored(skill)) => skill.spec,
            Some(FoundSkill::Folder(_)) => return Ok(true),
            None => return Ok(false),
        };
        let arguments = called.arguments(&spec.parameters).map_err(|error| refused(&called.name, &error))?;
        let nothing = ParameterValues::new();
        for agent in agents {
            let own = agent.spec.skill_parameters.get(called.name.as_str()).unwrap_or(&nothing);
            spec.resolve_parameters(&[&arguments.values, own]).map_err(|error| refused(&called.name, &error))?;
        }
        Ok(true)
    }

    /// The MCP servers that an agent's stored skills define.
    pub(crate) async fn skill_servers(
        &self,
        owner: &Owner,
        spec: &AgentSpec,
    ) -> Result<Vec<SkillServers>, EngineError> {
        let mut servers = Vec::new();
        for name in &spec.skills {
            if let Some(FoundSkill::Stored(skill)) = self.find_skill(owner, name).await? {
                let accepted = if skill.needs_review { BTreeMap::new() } else { skill.spec.mcp_servers };
                servers.push((name.clone(), accepted));
            }
        }
        Ok(servers)
    }

    /// Prepares an agent's skills. The error ends the run.
    pub(crate) async fn prepare_skills(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        purpose: SkillPurpose<'_>,
    ) -> Result<AgentWithSkills, RunError> {
        match self.collect_skills(owner, room, agent, purpose).await {
            Ok(skilled) => Ok(skilled),
            Err(SkillSetupError::Missing(name)) => {
                Err(RunError::new("skill_missing", self.unknown_skill_message(owner, &name).await))
            }
            Err(SkillSetupError::Parameters(name, error)) => {
                Err(RunError::new("skill_parameters", format!("the skill {name} cannot be used: {error}")))
            }
            Err(SkillSetupError::Store(error)) => {
                tracing::error!(%room, agent = %agent.id, %error, "cannot read an agent's skills");
                Err(RunError::new("unavailable", "the agent's skills could not be read from the database; try again"))
            }
            Err(SkillSetupError::Unreadable(name, error)) => {
                Err(RunError::new("skill_unreadable", format!("the skill {name} cannot be read: {error}")))
            }
            Err(SkillSetupError::Disk(error)) => {
                tracing::error!(%room, agent = %agent.id, %error, "cannot write an agent's skills");
                Err(RunError::new("no_folder", format!("the server cannot write the agent's skills: {error}")))
            }
        }
    }

    async fn collect_skills(
        &self,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        purpose: SkillPurpose<'_>,
    ) -> Result<AgentWithSkills, SkillSetupError> {
        let (message, run) = match purpose {
            SkillPurpose::Run { id, message } => (Some(message), Some(id)),
            SkillPurpose::Preparation => (None, None),
        };
        let call = async {
            match message {
                Some(message) => self.parse_skill_call(owner, message).await,
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
        let mut builder = SkillSetBuilder::for_agent(agent);
        for name in &names {
            let found = self.find_skill(owner, name).await?.ok_or_else(|| SkillSetupError::Missing(name.clone()))?;
            let call = call.as_ref().filter(|call| call.name.as_str() == name);
            match found {
                FoundSkill::Folder(path) => {
                    let folder = read_skill_folder(name, path).await?;
                    if let Some(call) = call {
                        let body = read_skill_body(&folder).await?;
                        let (name, text) = (folder.name.clone(), call.arguments.text.clone());
                        builder.called = Some(CalledSkill { name, body, text, has_files: true });
                    }
                    builder.result.folders.push(folder);
                }
                FoundSkill::Stored(skill) => {
                    let is_trained = trained.as_ref() == Some(&skill.spec.name);
                    if builder.add(&skill, call, is_trained)? {
                        let mut files = self.store().skill_files(owner, &skill.spec.name, skill.version).await?;
                        files.retain(|file| !skill.needs_review || !is_script(&file.path, file.executable));
                        let name = skill.spec.name.clone();
                        let filled = builder.document.take().map(|document| FilledSkill { name, document, files });
                        builder.filled_skills.extend(filled);
                    }
                }
            }
        }
        let (of_project, notices) = self.project_skills_for_run(owner, room, &names).await?;
        builder.filled_skills.extend(of_project);
        builder.result.notices.extend(notices);
        let SkillSetBuilder { result: mut skilled, filled_skills: filled, uses, called, .. } = builder;
        if !filled.is_empty() {
            let folder = self.config().folders.run_folder(&run_folder_name(room, agent.id, run)).join("skills");
            let written = tokio::task::spawn_blocking(move || workbench::skills::write_skills(&filled, &folder)).await;
            let written = written.map_err(|error| SkillSetupError::Disk(error.to_string()))?;
            skilled.folders.extend(written.map_err(|error| SkillSetupError::Disk(error.to_string()))?);
        }
        if let Some(called) = called {
            let folder = skilled.folders.iter().find(|folder| folder.name == called.name);
            skilled.prompt = Some(called.prompt(folder.map(|folder| folder.path.as_path())));
        }
        if let Some(run) = run.filter(|_| !uses.is_empty()) {
            let (store, owner) = (self.store().clone(), owner.clone());
            // In the background: statistics must not delay the run.
            self.background_tasks().spawn(async move {
                if let Err(error) = store.record_skill_uses(&owner, run, &uses).await {
                    tracing::warn!(%run, %error, "cannot record the skills of a run");
                }
            });
        }
        Ok(skilled)
    }

    /// Removes the skill folders of a run and of its warm-up.
    pub(crate) async fn remove_run_skills(&self, room: RoomId, agent: AgentId, run: RunId) {
        let folders = &self.config().folders;
        let all = [Some(run), None].map(|run| folders.run_folder(&run_folder_name(room, agent, run)));
        let cleared =
            tokio::task::spawn_blocking(move || all.iter().try_for_each(|at| workbench::skills::remove_folder(at)));
        match cleared.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%run, %error, "cannot remove the folder of a run"),
            Err(error) => tracing::error!(%run, %error, "the removal of a run's folder panicked"),
        }
    }

    /// Removes folders that killed servers left.
    pub(crate) async fn remove_stale_skills(&self) {
        let runs = self.config().folders.runs_folder();
        match tokio::task::spawn_blocking(move || workbench::skills::remove_older_than(&runs, STALE_AFTER)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot remove the folders of old runs"),
            Err(error) => tracing::error!(%error, "the removal of old runs' folders panicked"),
        }
    }

    async fn parse_skill_call(&self, owner: &Owner, message: &str) -> Result<Option<SkillCall>, SkillSetupError> {
        let Some(called) = SkillInvocation::parse(message) else { return Ok(None) };
        let arguments = match self.find_skill(owner, called.name.as_str()).await? {
            None => return Ok(None),
            Some(FoundSkill::Folder(_)) => called.arguments(&[]),
            Some(FoundSkill::Stored(skill)) => called.arguments(&skill.spec.parameters),
        };
        let arguments = arguments.map_err(|error| SkillSetupError::Parameters(called.name.clone(), error))?;
        Ok(Some(SkillCall { name: called.name, arguments }))
    }

    async fn find_skill(&self, owner: &Owner, name: &str) -> Result<Option<FoundSkill>, store::StoreError> {
        if let Ok(name) = name.parse::<SkillName>() {
            match self.store().skill(owner, &name).await {
                Ok(skill) => return Ok(Some(FoundSkill::Stored(Box::new(skill)))),
                Err(store::StoreError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        let (folders, name) = (self.config().folders.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || folders.skill_folder(&name).map(FoundSkill::Folder));
        found.await.map_err(|error| store::StoreError::unavailable("the search was interrupted").caused_by(error))
    }

    async fn unknown_skill_message(&self, owner: &Owner, name: &str) -> String {
        let folders = self.config().folders.clone();
        let mut known = tokio::task::spawn_blocking(move || folders.skill_names()).await.unwrap_or_default();
        // If the database fails, the list is still useful.
        let stored = self.store().skills(owner).await.unwrap_or_default();
        known.extend(stored.into_iter().map(|skill| skill.spec.name.to_string()));
        known.sort_unstable();
        known.dedup();
        format!(
            "this server has no skill {name:?}; {}. Create one with POST /api/skills, or put a folder with a SKILL.md into \
             skills/ of the data folder",
            list_names(&known)
        )
    }
}

fn run_folder_name(room: RoomId, agent: AgentId, run: Option<RunId>) -> String {
    run.map_or_else(|| format!("ready-{room}-{agent}"), |run| run.to_string())
}
