//! Projects that are being started and are not stored yet: each has a mark next to its folder, by which what a killed server
//! leaves is found and removed.

use crate::{Engine, Folders};
use domain::{ids::ProjectId, name::Name, owner::Owner};
use std::{io, path::Path, time::Duration};
use store::{ErasedFiles, ErasedObject, StoreError};
use workbench::files::{Root, RootError};

/// The mark; its content is the workspace.
const MARK: &str = "unstored";
const PROJECTS: &str = "projects";
/// Another server may use the same data folder; none takes this long to start a project.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);
const MAX_ENTRIES: usize = 100_000;
const MAX_NAME_BYTES: u64 = 1024;

impl Folders {
    /// Marks a project before anything of it is created. Blocks.
    pub(crate) fn mark_unstored(&self, owner: &Owner, project: ProjectId) -> io::Result<()> {
        let folder = Path::new(PROJECTS).join(project.to_string());
        Self::create_private(&self.data.join(&folder))?;
        Ok(Root::open(&self.data)?.write(folder.join(MARK), 0o600, owner.as_str().as_bytes())?)
    }

    /// Removes the mark of a project that is stored now. Blocks.
    pub(crate) fn remove_mark(&self, project: ProjectId) -> io::Result<()> {
        let removed = Root::open(&self.data)?.remove(Path::new(PROJECTS).join(project.to_string()).join(MARK));
        match removed {
            Err(error) if error.is_not_found() => Ok(()),
            done => Ok(done?),
        }
    }

    /// The projects that a killed server left, each with its workspace. Blocks.
    fn abandoned_projects(&self) -> Result<Vec<(ProjectId, Owner)>, RootError> {
        let data = Root::open(&self.data)?;
        let projects = match data.open_folder(PROJECTS) {
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            projects => projects?,
        };
        let mut abandoned = Vec::new();
        for entry in projects.list("", MAX_ENTRIES)?.entries {
            let Some(id) = entry.name.to_str().and_then(|name| name.parse().ok()) else { continue };
            let mark = Path::new(&entry.name).join(MARK);
            let (Ok(found), Ok(owner)) = (projects.metadata(&mark), projects.read(&mark, MAX_NAME_BYTES)) else {
                continue;
            };
            let owner = String::from_utf8(owner).ok().and_then(|name| Name::parse(&name).ok());
            if found.modified()?.elapsed().is_ok_and(|age| age >= ABANDONED_AFTER) {
                abandoned.extend(owner.map(|owner| (id, Owner::new(owner))));
            }
        }
        Ok(abandoned)
    }
}

impl Engine {
    /// Removes what a killed server left of projects that it had not stored.
    pub(super) async fn sweep_unstored_projects(&self) -> Result<(), StoreError> {
        let folders = self.config().folders.clone();
        let abandoned = match tokio::task::spawn_blocking(move || folders.abandoned_projects()).await {
            Ok(Ok(abandoned)) => abandoned,
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not look for projects that a killed server left");
                return Ok(());
            }
            Err(error) => {
                tracing::error!(%error, "the search for abandoned projects panicked");
                return Ok(());
            }
        };
        for (id, owner) in abandoned {
            // The server may have been killed between the commit and the removal of the mark.
            if self.store().any_project(&owner, id).await?.is_some() {
                self.remove_mark(id).await;
            } else if self.remove_erased_files(ErasedObject::Project(id), ErasedFiles::default()).await {
                tracing::info!(project = %id, "removed what a killed server left of a project that was being started");
            }
        }
        Ok(())
    }

    /// A mark that stays is found again.
    pub(crate) async fn remove_mark(&self, project: ProjectId) {
        let folders = self.config().folders.clone();
        match tokio::task::spawn_blocking(move || folders.remove_mark(project)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%project, %error, "could not remove the mark of a new project"),
            Err(error) => tracing::error!(%project, %error, "the removal of a project's mark panicked"),
        }
    }
}
