//! Agents as files: writes the agents of a workspace as folders, and reads them back. Each folder is imported on its own: one
//! with a mistake does not hold up the others.

use crate::{Engine, EngineError, host_tools::MAX_NOTE_BYTES};
use domain::{
    actor::Actor,
    agent::AgentSpec,
    agent_files::{AgentFolder, folder_name},
    ids::AgentId,
    permission::Permission,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many folders one import may have.
const MAX_FOLDERS: usize = 200;

/// What became of one folder.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ImportedAgent {
    /// The folder of the files.
    pub folder: String,
    /// What happened to the agent.
    pub outcome: AgentImportOutcome,
    /// `null` if the folder was refused.
    pub agent_id: Option<AgentId>,
    /// How many notes of `memory.md` are new. Notes that the file does not have stay.
    pub new_notes: usize,
    /// Why the folder was refused, or not all of its notes were saved.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentImportOutcome {
    Created,
    Updated,
    /// An agent with these settings exists.
    Unchanged,
    Refused,
}

impl Engine {
    /// The agents of the workspace as files: `FOLDER/FILE` and its text.
    pub async fn export_agents(&self, actor: &Actor) -> Result<BTreeMap<String, String>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let mut files = BTreeMap::new();
        for agent in self.store().agents(owner).await? {
            let mut notes: Vec<String> =
                self.store().memories(owner, agent.id).await?.into_iter().map(|note| note.text).collect();
            notes.reverse();
            let is_taken = |name: &str| files.keys().any(|path: &String| path.split('/').next() == Some(name));
            let folder = folder_name(agent.spec.name.as_str(), is_taken);
            let written = AgentFolder { spec: agent.spec, notes }.write();
            for (name, text) in written.map_err(|error| EngineError::Unsupported(error.to_string()))? {
                files.insert(format!("{folder}/{name}"), text);
            }
        }
        Ok(files)
    }

    /// Creates the agents of these files, or updates those that have their names. Runs that have started keep the old
    /// settings; the next turn has the new ones.
    pub async fn import_agents(
        &self,
        actor: &Actor,
        files: BTreeMap<String, String>,
    ) -> Result<Vec<ImportedAgent>, EngineError> {
        actor.require(Permission::ManageAgents)?;
        let mut folders: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (path, text) in files {
            let Some((folder, name)) = path.split_once('/').filter(|(folder, _)| !folder.is_empty()) else {
                let detail = format!("files: {path:?} is not a path like ann/agent.toml");
                return Err(EngineError::refused("/files", detail));
            };
            folders.entry(folder.to_owned()).or_default().insert(name.to_owned(), text);
        }
        if folders.len() > MAX_FOLDERS {
            let detail = format!("files: at most {MAX_FOLDERS} folders at once");
            return Err(EngineError::refused("/files", detail));
        }
        let mut all = Vec::with_capacity(folders.len());
        for (folder, files) in folders {
            let imported = self.import_agent(actor, &folder, &files).await;
            all.push(imported.unwrap_or_else(|error| ImportedAgent {
                folder,
                outcome: AgentImportOutcome::Refused,
                agent_id: None,
                new_notes: 0,
                problem: Some(error.to_string()),
            }));
        }
        Ok(all)
    }

    async fn import_agent(
        &self,
        actor: &Actor,
        folder: &str,
        files: &BTreeMap<String, String>,
    ) -> Result<ImportedAgent, EngineError> {
        let owner = &actor.workspace;
        let AgentFolder { spec, notes } =
            AgentFolder::read(files).map_err(|error| EngineError::Invalid(error.to_string()))?;
        let existing = self.store().agents(owner).await?.into_iter().find(|agent| agent.spec.name == spec.name);
        let (id, outcome) = match existing {
            None => (self.create_agent(actor, spec, None).await?.id, AgentImportOutcome::Created),
            Some(agent) if agent.spec == spec => (agent.id, AgentImportOutcome::Unchanged),
            Some(agent) => {
                let replace = |_: &AgentSpec| Ok::<_, EngineError>(spec.clone());
                (self.change_agent(actor, agent.id, replace, None).await?.id, AgentImportOutcome::Updated)
            }
        };
        let known: Vec<String> = self.store().memories(owner, id).await?.into_iter().map(|note| note.text).collect();
        let (mut new_notes, mut problem) = (0, None);
        for note in notes.iter().filter(|note| !known.contains(note)) {
            if note.len() > MAX_NOTE_BYTES {
                problem = Some(format!("memory.md: a note has at most {MAX_NOTE_BYTES} bytes"));
            } else if self.store().save_memory(actor, id, note).await? {
                new_notes += 1;
            } else {
                problem = Some("memory.md: the agent has as many notes as it may have".to_owned());
                break;
            }
        }
        Ok(ImportedAgent { folder: folder.to_owned(), outcome, agent_id: Some(id), new_notes, problem })
    }
}
