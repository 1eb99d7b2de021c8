//! Where the agents of a room work: the folder of the room's project, or the room's own.

use crate::{Engine, Folders};
use domain::{
    ids::{AgentId, ProjectId, RoomId},
    owner::Owner,
    project::{Project, ProjectCeilings, ProjectSpace, SpaceKey},
};
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use store::StoreError;
use workbench::{
    project_commands::ProjectCommands,
    project_files::ProjectStorage,
    sandboxes::{NoSandboxes, Sandboxes},
};

/// What projects need of the server.
#[derive(Debug, Clone)]
pub struct ProjectServices {
    /// How many projects a workspace may have.
    pub per_workspace: usize,
    /// Opens the folders of projects within their limits.
    pub storage: Arc<ProjectStorage>,
    pub sandboxes: Arc<dyn Sandboxes>,
    /// The commands in them.
    pub commands: ProjectCommands,
}

impl ProjectServices {
    /// For a server that runs no commands.
    pub fn without_sandboxes() -> Self {
        let storage = Arc::new(ProjectStorage::new(ProjectCeilings::default(), 0));
        let sandboxes: Arc<dyn Sandboxes> = Arc::new(NoSandboxes);
        Self { per_workspace: 100, storage, commands: ProjectCommands::new(Arc::clone(&sandboxes), 0), sandboxes }
    }
}

/// Rooms without a project, by id: a room keeps its project, or none, so most runs need no query for it.
#[derive(Debug, Default)]
pub(crate) struct RoomsWithoutProject(Mutex<HashMap<RoomId, Owner>>);

/// A forgotten room costs one query.
const MAX_REMEMBERED: usize = 10_000;

impl RoomsWithoutProject {
    fn contains(&self, owner: &Owner, room: RoomId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&room) == Some(owner)
    }

    pub(crate) fn add(&self, owner: &Owner, room: RoomId) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rooms.len() >= MAX_REMEMBERED {
            rooms.clear();
        }
        rooms.insert(room, owner.clone());
    }
}

impl Engine {
    /// Where the agents of a room work.
    pub(crate) async fn room_space(&self, owner: &Owner, room: RoomId) -> Result<ProjectSpace, StoreError> {
        let remembered = self.rooms_without_project();
        if !remembered.contains(owner, room) {
            match self.store().project_of_room(owner, room).await? {
                Some(project) => return Ok(self.project_space(owner, &project)),
                None => remembered.add(owner, room),
            }
        }
        Ok(ProjectSpace::scratch(owner.clone(), room, self.config().folders.workspace(room)))
    }

    /// The folder in which the agents of a room work.
    pub(crate) async fn room_folder(&self, owner: &Owner, room: RoomId) -> Result<PathBuf, StoreError> {
        Ok(self.room_space(owner, room).await?.folder)
    }

    pub(crate) fn project_space(&self, owner: &Owner, project: &Project) -> ProjectSpace {
        ProjectSpace {
            owner: owner.clone(),
            key: SpaceKey::Project(project.id),
            folder: self.config().folders.project_folder(project),
            settings: project.settings.clone(),
        }
    }
}

impl Folders {
    /// The folder of a project: an existing one, or its own in the data folder.
    pub fn project_folder(&self, project: &Project) -> PathBuf {
        match &project.folder {
            Some(folder) => PathBuf::from(folder),
            None => self.managed_project_folder(project.id),
        }
    }

    fn managed_project_folder(&self, project: ProjectId) -> PathBuf {
        self.projects_folder().join(project.to_string()).join("workspace")
    }

    fn projects_folder(&self) -> PathBuf {
        self.data.join("projects")
    }

    /// Creates the folder of a space if it does not exist. An existing folder of the machine is never created: if it is
    /// missing, its disk may not be mounted.
    pub(crate) fn create_space(&self, space: &ProjectSpace) -> io::Result<()> {
        match space.key {
            SpaceKey::Project(_) if !space.folder.starts_with(self.projects_folder()) => match space.folder.is_dir() {
                true => Ok(()),
                false => Err(io::Error::new(io::ErrorKind::NotFound, "the folder of the project does not exist")),
            },
            SpaceKey::Project(_) | SpaceKey::Room(_) => Self::create_private(&space.folder),
        }
    }

    /// Creates the folders of an agent in a space.
    pub(crate) fn create(&self, space: &ProjectSpace, agent: AgentId) -> io::Result<()> {
        self.create_space(space)?;
        Self::create_private(&self.agent_home(agent))
    }

    /// Checks that a folder of this machine can be a project, and returns its real path. The data folder must be neither
    /// in it nor around it: commands of the project would read what the server keeps.
    pub(crate) fn check_existing(&self, folder: &Path) -> Result<PathBuf, String> {
        if !folder.is_absolute() {
            return Err("use the absolute path of a folder of this machine".to_owned());
        }
        let real = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        if !real.is_dir() {
            return Err(format!("{} is not a folder", folder.display()));
        }
        let data = self.data.canonicalize().unwrap_or_else(|_| self.data.clone());
        match real.starts_with(&data) || data.starts_with(&real) {
            true => Err("the data folder of the server must be neither in the folder nor around it".to_owned()),
            false => Ok(real),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Folders, RoomsWithoutProject};
    use domain::{
        ids::{AgentId, ProjectId, RoomId},
        name::Name,
        owner::Owner,
        project::{Project, ProjectSettings, ProjectSpace, SpaceKey},
        time::Timestamp,
    };
    use std::{fs, os::unix::fs::symlink};

    fn project(folder: Option<String>) -> Project {
        let now = Timestamp::from_millis(0);
        let (id, name) = (ProjectId::generate(), Name::parse("p").unwrap());
        Project { id, name, folder, settings: ProjectSettings::default(), created_at: now, updated_at: now }
    }

    #[test]
    fn an_existing_folder_is_used_and_never_created() {
        let place = tempfile::tempdir().unwrap();
        let folders = Folders { data: place.path().join("data"), shared_workspace: None };
        let space = |project: &Project| ProjectSpace {
            owner: Owner::local(),
            key: SpaceKey::Project(project.id),
            folder: folders.project_folder(project),
            settings: ProjectSettings::default(),
        };
        let managed = project(None);
        folders.create(&space(&managed), AgentId::generate()).unwrap();
        assert!(folders.project_folder(&managed).is_dir());
        let missing = project(Some(place.path().join("gone").to_str().unwrap().to_owned()));
        assert!(folders.create_space(&space(&missing)).is_err());
        assert!(!place.path().join("gone").exists());
    }

    #[test]
    fn the_data_folder_is_in_no_project() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let folders = Folders { data: real.join("data"), shared_workspace: None };
        for folder in ["data/rooms", "checkout"] {
            fs::create_dir_all(real.join(folder)).unwrap();
        }
        symlink(real.join("data"), real.join("link")).unwrap();
        symlink(real.join("checkout"), real.join("fine")).unwrap();
        assert_eq!(folders.check_existing(&real.join("checkout")), Ok(real.join("checkout")));
        assert_eq!(folders.check_existing(&real.join("fine")), Ok(real.join("checkout")));
        for bad in ["data", "data/rooms", "link", "link/rooms", "", "missing", "checkout/../data", "/"] {
            assert!(folders.check_existing(&real.join(bad)).is_err(), "{bad}");
        }
        assert!(folders.check_existing("checkout".as_ref()).is_err());
    }

    #[test]
    fn a_room_is_remembered_for_its_own_workspace() {
        let (rooms, room) = (RoomsWithoutProject::default(), RoomId::generate());
        rooms.add(&Owner::local(), room);
        assert!(rooms.contains(&Owner::local(), room));
        assert!(!rooms.contains(&Owner::new(Name::parse("other").unwrap()), room));
    }
}
