//! Creates, updates and deletes projects.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    ids::ProjectId,
    name::Name,
    owner::Owner,
    permission::Permission,
    project::{
        MAX_ALLOWED_HOSTS, NetworkAccess, Project, ProjectIsolation, ProjectLimits, ProjectSettings, SandboxChoice,
        SpaceKey,
    },
    time::Timestamp,
};
use std::path::PathBuf;
use store::{IdempotentRequest, StoreError};

#[derive(Debug, Clone)]
pub struct NewProject {
    pub name: Name,
    /// An existing folder of this machine, for the operator; else the server creates one.
    pub folder: Option<PathBuf>,
    pub settings: ProjectSettings,
}

/// What to change in a project; `None` keeps it.
#[derive(Debug, Clone, Default)]
pub struct ProjectPatch {
    pub name: Option<Name>,
    pub sandbox: Option<SandboxChoice>,
    pub network: Option<NetworkAccess>,
    pub limits: Option<ProjectLimits>,
}

/// A project with what its sandbox enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolatedProject {
    pub project: Project,
    /// The error says why there is no sandbox at the moment: then nothing runs in the project.
    pub isolation: Result<ProjectIsolation, String>,
}

impl Engine {
    pub async fn projects(&self, actor: &Actor) -> Result<Vec<IsolatedProject>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let mut all = Vec::new();
        for project in self.store().projects(owner).await? {
            all.push(self.with_isolation(project).await);
        }
        Ok(all)
    }

    pub async fn project(&self, actor: &Actor, id: ProjectId) -> Result<IsolatedProject, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.with_isolation(self.store().project(owner, id).await?).await)
    }

    pub async fn create_project(
        &self,
        actor: &Actor,
        new: NewProject,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<ProjectId, EngineError> {
        let project = self.checked_project(actor, new).await?;
        let limit = self.config().projects.per_workspace;
        self.store().create_project(actor, &project, limit, attempt).await?;
        Ok(project.id)
    }

    /// Checks everything about a new project that can be checked before it is stored.
    pub(super) async fn checked_project(&self, actor: &Actor, new: NewProject) -> Result<Project, EngineError> {
        actor.require(Permission::Post)?;
        let NewProject { name, folder, settings } = new;
        self.check_project_settings(actor, &settings, settings.sandbox.is_weak())?;
        let folder = match folder {
            Some(folder) => Some(self.check_existing_folder(actor, folder).await?),
            None => None,
        };
        self.check_sandbox(settings.sandbox).await?;
        let now = Timestamp::now();
        Ok(Project { id: ProjectId::generate(), name, folder, settings, created_at: now, updated_at: now })
    }

    /// Changed settings of the sandbox hold from its next start, so it is stopped now, with everything that runs in it.
    pub async fn update_project(
        &self,
        actor: &Actor,
        id: ProjectId,
        patch: ProjectPatch,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Post)?;
        let current = self.store().project(owner, id).await?;
        let ProjectPatch { name, sandbox, network, limits } = patch;
        let settings = ProjectSettings {
            sandbox: sandbox.unwrap_or(current.settings.sandbox),
            network: network.unwrap_or_else(|| current.settings.network.clone()),
            limits: limits.unwrap_or(current.settings.limits),
        };
        let has_new_sandbox = settings.sandbox != current.settings.sandbox;
        self.check_project_settings(actor, &settings, has_new_sandbox && settings.sandbox.is_weak())?;
        if has_new_sandbox {
            self.check_sandbox(settings.sandbox).await?;
        }
        self.store().update_project(actor, id, &name.unwrap_or(current.name), &settings, attempt).await?;
        if settings.needs_new_sandbox(&current.settings) {
            self.config().projects.sandboxes.stop(SpaceKey::Project(id)).await;
        }
        Ok(())
    }

    /// Deletes a project and its rooms, after cancelling their runs and stopping its sandbox. With `purge`, they are
    /// erased without the grace period, and may be deleted already.
    pub async fn delete_project(
        &self,
        actor: &Actor,
        id: ProjectId,
        purge: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        let owner = actor.require(if purge { Permission::Purge } else { Permission::Post })?;
        for room in self.store().rooms_of_project(owner, id).await? {
            match self.cancel_room(actor, room).await {
                Ok(_) | Err(EngineError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        self.store().delete_project(actor, id, purge, attempt).await?;
        let services = &self.config().projects;
        services.sandboxes.stop(SpaceKey::Project(id)).await;
        services.commands.forget(SpaceKey::Project(id));
        Ok(())
    }

    /// The project that a new room names must exist in its workspace.
    pub(super) async fn check_project_of_room(
        &self,
        owner: &Owner,
        project: Option<ProjectId>,
    ) -> Result<(), EngineError> {
        let Some(id) = project else { return Ok(()) };
        match self.store().project(owner, id).await {
            Err(StoreError::NotFound) => Err(EngineError::refused(
                "/project_id",
                format!("project_id: project {id} does not exist; see GET /api/projects"),
            )),
            found => Ok(found.map(|_| ())?),
        }
    }

    async fn with_isolation(&self, project: Project) -> IsolatedProject {
        let isolation = self.config().projects.sandboxes.isolation(project.settings.sandbox).await;
        IsolatedProject { project, isolation: isolation.map_err(|error| error.to_string()) }
    }

    fn check_project_settings(
        &self,
        actor: &Actor,
        settings: &ProjectSettings,
        weakens: bool,
    ) -> Result<(), EngineError> {
        if weakens && !actor.may(Permission::Operate) {
            let detail = "sandbox: only the operator can choose landlock or none, because commands then get at more than \
                          the project; use auto";
            return Err(EngineError::OperatorOnly(detail.to_owned()));
        }
        if settings.network.allow.len() > MAX_ALLOWED_HOSTS {
            let detail = format!("network.allow: at most {MAX_ALLOWED_HOSTS} hosts");
            return Err(EngineError::InvalidField { pointer: "/network/allow".into(), detail });
        }
        match self.config().projects.storage.ceilings().first_unusable(&settings.limits) {
            Some((limit, ceiling)) => {
                let detail = format!("limits.{limit}: it must be at least 1, and at most {ceiling} on this server");
                Err(EngineError::refused("/limits", detail))
            }
            None => Ok(()),
        }
    }

    async fn check_existing_folder(&self, actor: &Actor, folder: PathBuf) -> Result<String, EngineError> {
        if !actor.may(Permission::Operate) {
            let detail = "folder: only the operator can use an existing folder of this machine; leave it out";
            return Err(EngineError::OperatorOnly(detail.to_owned()));
        }
        let folders = self.config().folders.clone();
        let checked = tokio::task::spawn_blocking(move || folders.check_existing(&folder)).await?;
        let refused =
            |why: String| EngineError::Refused { pointer: "/folder".into(), detail: format!("folder: {why}") };
        let path = checked.map_err(refused)?;
        path.into_os_string().into_string().map_err(|_| refused("its path must be text".to_owned()))
    }

    /// A project without a sandbox could run nothing, and is never given a weaker one.
    async fn check_sandbox(&self, choice: SandboxChoice) -> Result<(), EngineError> {
        match self.config().projects.sandboxes.isolation(choice).await {
            Ok(_) => Ok(()),
            Err(why) => Err(EngineError::Refused { pointer: "/sandbox".into(), detail: format!("sandbox: {why}") }),
        }
    }
}
