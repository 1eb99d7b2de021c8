//! Starts everything that an agent needs with one request: a project with files, its sandbox, a room in it, and the first run.
//! It is one commit: a failure before it leaves nothing.

use super::{
    execute::title,
    post::{NewPost, PostResult, PostTarget, check_post},
    project_files::{IncomingFiles, ReceivedAs, StoredFile},
    projects::NewProject,
    rooms::{NewRoom, RoomOrigin, new_room_prelude},
};
use crate::{Engine, EngineError, tape::RoomRules};
use bytes::Bytes;
use domain::{
    actor::Actor,
    agent::Agent,
    audit::{AuditAction, AuditEntry, AuditedObject},
    budget::BudgetSubjects,
    ids::{AgentId, ProjectId, RoomId, RunId},
    name::Name,
    owner::Owner,
    permission::Permission,
    project::{Project, ProjectSettings},
    room::RoomPolicy,
    time::Timestamp,
};
use serde::Serialize;
use store::{ErasedFiles, ErasedObject, IdempotentRequest, StoreError, journal::RowChange};

#[derive(Debug, Clone)]
pub struct InitiateRequest {
    pub agent_id: AgentId,
    pub prompt: String,
    pub project: InitiateProject,
}

#[derive(Debug, Clone)]
pub enum InitiateProject {
    Existing(ProjectId),
    New(NewProject),
    /// With the usual settings, and a name from the prompt.
    Usual,
}

/// What was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Initiated {
    /// The project, new or as sent.
    pub project_id: ProjectId,
    /// The new room.
    pub room_id: RoomId,
    /// The run that answers the prompt.
    pub run_id: RunId,
}

/// A request that was checked, and whose files may be received. Dropping it leaves nothing of a new project.
pub struct PreparedInitiation {
    engine: Engine,
    actor: Actor,
    agent: Agent,
    prompt: String,
    project: Project,
    has_budgets: bool,
    files: Option<IncomingFiles>,
    /// What has to be removed if nothing is stored.
    unstored: Option<UnstoredProject>,
}

impl Engine {
    /// Checks a request, before anything is stored.
    pub async fn prepare_initiation(
        &self,
        actor: &Actor,
        request: InitiateRequest,
    ) -> Result<PreparedInitiation, EngineError> {
        let owner = actor.require(Permission::Post)?;
        let InitiateRequest { agent_id, prompt, project } = request;
        let agent = match self.store().agent(owner, agent_id).await {
            Err(StoreError::NotFound) => {
                let detail = format!("agent_id: agent {agent_id} does not exist; see GET /api/agents");
                return Err(EngineError::refused("/agent_id", detail));
            }
            found => found?,
        };
        check_post(&NewPost::new(prompt.as_str()))?;
        self.check_room_limit(owner).await?;
        let has_budgets = self.check_queue_limit(owner).await?;
        if has_budgets {
            // Before files are received. The room has no budget of its own yet.
            let subjects = BudgetSubjects { user: actor.user_id(), agents: &[agent.id], rooms: &[] };
            self.check_budget(owner, subjects).await?;
        }
        let (project, is_new) = match project {
            InitiateProject::Existing(id) => {
                self.check_project_of_room(owner, Some(id)).await?;
                (self.store().project(owner, id).await?, false)
            }
            InitiateProject::New(new) => (self.checked_project(actor, new).await?, true),
            InitiateProject::Usual => {
                let name = room_name(&prompt, &agent);
                let new = NewProject { name, folder: None, settings: ProjectSettings::default() };
                (self.checked_project(actor, new).await?, true)
            }
        };
        let unstored = match is_new {
            true => Some(UnstoredProject::mark(self, owner, project.id).await?),
            false => None,
        };
        let (engine, actor) = (self.clone(), actor.clone());
        Ok(PreparedInitiation { engine, actor, agent, prompt, project, has_budgets, files: None, unstored })
    }

    /// The result of an earlier request with the same key.
    async fn earlier_initiation(
        &self,
        actor: &Actor,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Option<Initiated>, EngineError> {
        match self.earlier_result(actor, attempt).await? {
            Some(message) => Ok(Some(self.initiated(actor, self.repeated_post(actor, &message).await?).await?)),
            None => Ok(None),
        }
    }

    async fn initiated(&self, actor: &Actor, posted: PostResult) -> Result<Initiated, EngineError> {
        let room = self.store().room(&actor.workspace, posted.message.room_id).await?;
        match (room.project_id, posted.runs.first()) {
            (Some(project_id), Some(run)) => Ok(Initiated { project_id, room_id: room.id, run_id: run.id }),
            // The key belongs to another kind of request.
            _ => Err(EngineError::KeyConflict),
        }
    }
}

fn room_name(prompt: &str, agent: &Agent) -> Name {
    title(prompt).unwrap_or_else(|| agent.spec.name.clone())
}

impl PreparedInitiation {
    /// Receives the next file of the project.
    pub async fn start_file(&mut self, path: &str) -> Result<(), EngineError> {
        if self.unstored.is_none() || self.project.folder.is_some() {
            // What is stored in a folder that exists could not be taken back.
            let detail =
                "files: send them with a new project only; for others, use POST /api/projects/{id}/files first";
            return Err(EngineError::refused("/files", detail));
        }
        let files = match &mut self.files {
            Some(files) => files,
            none => {
                let space = self.engine.project_space(&self.actor.workspace, &self.project);
                none.insert(self.engine.receive_files(&self.actor, self.project.id, &space, ReceivedAs::Files).await?)
            }
        };
        files.start("", path).await
    }

    pub async fn write(&mut self, piece: Bytes) -> Result<(), EngineError> {
        match &mut self.files {
            Some(files) => files.write(piece).await,
            None => Ok(()),
        }
    }

    /// Stores project, room, message and run in one commit.
    pub async fn commit(mut self, attempt: Option<&IdempotentRequest>) -> Result<Initiated, EngineError> {
        let (engine, actor) = (self.engine.clone(), self.actor.clone());
        if let Some(earlier) = engine.earlier_initiation(&actor, attempt).await? {
            return Ok(earlier);
        }
        // A sandbox that does not open is an error of this request, not of the run.
        engine.open_project_sandbox(&engine.project_space(&actor.workspace, &self.project)).await?;
        let stored: Vec<StoredFile> = match self.files.take() {
            Some(files) => files.store().await?.files,
            None => Vec::new(),
        };
        let new = NewRoom {
            name: room_name(&self.prompt, &self.agent),
            agents: vec![self.agent.id],
            project_id: Some(self.project.id),
            policy: RoomPolicy::for_new_room(),
        };
        let (room, mut prelude) = new_room_prelude(&actor, new, std::slice::from_ref(&self.agent), RoomOrigin::Person);
        if self.unstored.is_some() {
            let entry = AuditEntry::new(&actor, AuditAction::Create, AuditedObject::Project, self.project.id);
            let limit = engine.config().projects.per_workspace;
            let project =
                RowChange::CreateProject { owner: actor.workspace.clone(), project: self.project.clone(), limit };
            prelude.changes.splice(0..0, [project, RowChange::Audit(entry)]);
        }
        let post = NewPost { mentions: vec![self.agent.id], ..NewPost::new(self.prompt.as_str()) };
        let target = PostTarget {
            room: room.id,
            rules: RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::now() },
            agents: std::slice::from_ref(&self.agent),
            only_mentioned: true,
            has_budgets: self.has_budgets,
            child: None,
        };
        let posted = engine.post_to(&actor, target, post, prelude, attempt).await?;
        let initiated = engine.initiated(&actor, posted).await?;
        // With the same key, another request may have been faster: then this one's project does not exist.
        if initiated.room_id == room.id {
            if let Some(unstored) = &mut self.unstored {
                unstored.is_stored = true;
                engine.remove_mark(self.project.id).await;
            }
            engine.announce_stored(&actor, self.project.id, &stored).await?;
        }
        Ok(initiated)
    }
}

/// A new project that may have files and a sandbox already. Dropping it removes them, unless the project is stored.
struct UnstoredProject {
    engine: Engine,
    owner: Owner,
    id: ProjectId,
    is_stored: bool,
}

impl UnstoredProject {
    async fn mark(engine: &Engine, owner: &Owner, id: ProjectId) -> Result<Self, EngineError> {
        let unstored = Self { engine: engine.clone(), owner: owner.clone(), id, is_stored: false };
        let (folders, owner) = (engine.config().folders.clone(), owner.clone());
        let marked = tokio::task::spawn_blocking(move || folders.mark_unstored(&owner, id)).await?;
        marked.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        Ok(unstored)
    }
}

impl Drop for UnstoredProject {
    fn drop(&mut self) {
        if self.is_stored {
            return;
        }
        let (engine, owner, id) = (self.engine.clone(), self.owner.clone(), self.id);
        self.engine.background_tasks().spawn(async move {
            // A commit whose response was lost may have stored it.
            match engine.store().any_project(&owner, id).await {
                Ok(None) => {
                    engine.remove_erased_files(ErasedObject::Project(id), ErasedFiles::default()).await;
                }
                Ok(Some(_)) => engine.remove_mark(id).await,
                Err(error) => tracing::warn!(%error, project = %id, "could not look for a project; its folder is left"),
            }
        });
    }
}
