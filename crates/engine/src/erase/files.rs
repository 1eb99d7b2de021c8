//! Removes what an erased room, agent or project has on disk: its folder, its uploads, and the files in which agents' programs keep
//! their conversations. Links are removed and not followed (invariant 18).

use crate::{Engine, Folders};
use domain::{
    hex,
    ids::{ProjectId, RoomId},
    owner::Owner,
    project::SpaceKey,
};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use store::{ErasedFiles, ErasedObject, StoreError};
use workbench::{
    files::{EntryKind, Root, RootError},
    project_sandbox::{HOMES, SandboxKey},
};

/// Programs name their conversations by an id; a shorter one might be part of another name.
const MIN_SESSION_ID: usize = 16;
/// How deep, and among how many entries of a folder, a program's conversations are searched.
const MAX_DEPTH: usize = 12;
const MAX_ENTRIES: usize = 100_000;

impl Engine {
    /// Removes the trust in the room's `.mcp.json` and skills, which is stored by the path of the room's own folder.
    pub(super) async fn forget_trust(&self, owner: &Owner, room: RoomId) -> Result<(), StoreError> {
        let folders = &self.config().folders;
        match folders.shared_workspace {
            Some(_) => Ok(()),
            None => self.forget_trust_in(owner, &folders.workspace(room)).await,
        }
    }

    /// Removes the trust in the `.mcp.json` and the skills of a project's folder.
    pub(super) async fn forget_project_trust(&self, owner: &Owner, project: ProjectId) -> Result<(), StoreError> {
        match self.store().any_project(owner, project).await? {
            Some(project) => {
                let folder = self.config().folders.project_folder(&project);
                self.forget_trust_in(owner, &folder).await
            }
            None => Ok(()),
        }
    }

    /// Returns whether everything is removed; otherwise the next round tries again.
    pub(crate) async fn remove_erased_files(&self, object: ErasedObject, files: ErasedFiles) -> bool {
        let folders = self.config().folders.clone();
        let space = match object {
            ErasedObject::Room(room) => Some(SpaceKey::Room(room)),
            ErasedObject::Project(project) => Some(SpaceKey::Project(project)),
            ErasedObject::Agent(_) => None,
        };
        if let Some(space) = space {
            self.config().projects.sandboxes.stop(space).await;
        }
        let removed = tokio::task::spawn_blocking(move || remove(&folders, object, &files)).await;
        match removed {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(?object, %error, "could not remove the files of what was erased; retrying");
                false
            }
            Err(error) => {
                tracing::error!(?object, %error, "the removal of erased files panicked");
                false
            }
        }
    }
}

fn remove(folders: &Folders, object: ErasedObject, files: &ErasedFiles) -> Result<(), RootError> {
    let data = Root::open(&folders.data)?;
    match object {
        ErasedObject::Agent(agent) => {
            remove_if_there(&data, &Path::new("agents").join(agent.to_string()))?;
            match data.list(HOMES, MAX_ENTRIES) {
                Ok(homes) => homes.entries.into_iter().try_for_each(|home| {
                    remove_if_there(&data, &Path::new(HOMES).join(home.name).join(agent.to_string()))
                }),
                Err(error) if error.is_not_found() => Ok(()),
                Err(error) => Err(error),
            }
        }
        // An existing folder of the machine is not the server's: it stays.
        ErasedObject::Project(project) => {
            remove_if_there(&data, &home_of(SpaceKey::Project(project)))?;
            remove_if_there(&data, &Path::new("projects").join(project.to_string()))
        }
        ErasedObject::Room(room) => {
            remove_if_there(&data, &Path::new("rooms").join(room.to_string()))?;
            remove_if_there(&data, &home_of(SpaceKey::Room(room)))?;
            for upload in &files.uploads {
                remove_if_there(&data, &Path::new("uploads").join(upload.to_string()))?;
            }
            let names = conversation_names(folders, room, &files.sessions);
            for agent in &files.agents {
                match data.open_folder(Path::new("agents").join(agent.to_string())) {
                    Ok(home) => remove_named(&home, &names)?,
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}

/// Programs name the files of a conversation by the session, by the working folder, whose path has the room's id, or by the
/// hash of its path.
fn conversation_names(folders: &Folders, room: RoomId, sessions: &[String]) -> Vec<String> {
    let mut names: Vec<String> = sessions.iter().filter(|id| id.len() >= MIN_SESSION_ID).cloned().collect();
    names.push(room.to_string());
    if folders.shared_workspace.is_none() {
        let path = folders.workspace(room);
        names.push(hex::encode(&Sha256::digest(path.as_os_str().as_encoded_bytes())));
    }
    names
}

/// Removes every entry beneath a folder whose name contains one of the names.
fn remove_named(home: &Root, names: &[String]) -> Result<(), RootError> {
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let listing = match home.list(&folder, MAX_ENTRIES) {
            // A program may remove its own files meanwhile.
            Err(error) if error.is_not_found() => continue,
            listing => listing?,
        };
        for entry in listing.entries {
            let path = folder.join(&entry.name);
            let text = entry.name.to_string_lossy();
            if names.iter().any(|name| text.contains(name.as_str())) {
                remove_if_there(home, &path)?;
            } else if entry.kind == EntryKind::Folder && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            }
        }
    }
    Ok(())
}

/// The home folder of the programs in a sandbox.
fn home_of(space: SpaceKey) -> PathBuf {
    Path::new(HOMES).join(SandboxKey::from(space).as_str())
}

fn remove_if_there(root: &Root, path: &Path) -> Result<(), RootError> {
    match root.remove(path) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::remove;
    use crate::Folders;
    use domain::{
        hex,
        ids::{AgentId, RoomId, UploadId},
    };
    use sha2::{Digest as _, Sha256};
    use std::{fs, os::unix::fs::symlink, path::Path};
    use store::{ErasedFiles, ErasedObject};

    fn write(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text").unwrap();
    }

    #[test]
    fn m8_the_conversations_of_a_room_are_removed_wherever_a_program_keeps_them() {
        let data = tempfile::tempdir().unwrap();
        let folders = Folders { data: data.path().to_owned(), shared_workspace: None };
        let (room, other, agent) = (RoomId::generate(), RoomId::generate(), AgentId::generate());
        let (session, upload) = ("0198c0de-aaaa-7000-8000-000000000001", UploadId::generate());
        let home = folders.agent_home(agent);
        let hash = |room| hex::encode(&Sha256::digest(folders.workspace(room).as_os_str().as_encoded_bytes()));
        let gone = [
            folders.workspace(room).join("deep/er/file"),
            home.join(format!(".claude/projects/-data-rooms-{room}/x.jsonl")),
            home.join(format!(".codex/sessions/2026/11/17/rollout-{session}.jsonl")),
            home.join(format!(".gemini/tmp/{}/chats/c.json", hash(room))),
            data.path().join(format!("uploads/{upload}")),
        ];
        let outside = tempfile::tempdir().unwrap();
        let kept = [
            folders.workspace(other).join("file"),
            home.join(format!(".claude/projects/-data-rooms-{other}/x.jsonl")),
            home.join(format!(".gemini/tmp/{}/chats/c.json", hash(other))),
            home.join(".claude.json"),
            data.path().join(format!("uploads/{}", UploadId::generate())),
            outside.path().join("target"),
        ];
        gone.iter().chain(&kept).for_each(|file| write(file));
        symlink(outside.path(), folders.workspace(room).join("link")).unwrap();
        symlink(outside.path(), home.join("link")).unwrap();
        // The id of a session comes from a provider: a short one names nothing.
        let files =
            ErasedFiles { agents: vec![agent], sessions: vec![session.into(), "x".into()], uploads: vec![upload] };
        for _ in 0..2 {
            remove(&folders, ErasedObject::Room(room), &files).unwrap();
        }
        assert!(gone.iter().all(|file| !file.exists()), "{:?}", gone.iter().find(|file| file.exists()));
        assert!(kept.iter().all(|file| file.exists()), "{:?}", kept.iter().find(|file| !file.exists()));
        assert!(!folders.workspace(room).exists());
        remove(&folders, ErasedObject::Agent(agent), &ErasedFiles::default()).unwrap();
        assert!(!home.exists() && outside.path().join("target").exists());
    }
}
