//! Reads files in a room's workspace. Agents may have put anything there, including links, which are refused (invariant
//! 18).

use crate::{Engine, EngineError};
use domain::{actor::Actor, ids::RoomId, permission::Permission};
use std::path::Path;
use workbench::files::{EntryKind, FolderListing, MAX_PATH_DEPTH, OpenedEntry, Root, RootError, read_to_limit};

pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
pub const MAX_ENTRIES: usize = 1000;

/// A file or a folder in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceEntry {
    File(Vec<u8>),
    /// Sorted names; those of folders end with a slash. At most [`MAX_ENTRIES`]; `more` is set if there are others.
    Folder {
        names: Vec<String>,
        more: bool,
    },
}

impl Engine {
    /// Reads the file or folder at a path; an empty path is the workspace itself.
    pub async fn workspace_entry(
        &self,
        actor: &Actor,
        room: RoomId,
        path: &str,
    ) -> Result<WorkspaceEntry, EngineError> {
        let owner = actor.require(Permission::Read)?;
        self.store().room(owner, room).await?;
        let space = self.room_space(owner, room).await?;
        let is_shared = self.config().folders.shared_workspace.is_some() && space.key.project_id().is_none();
        if is_shared && !actor.may(Permission::Operate) {
            let why = "the rooms of this server share a folder of the operator; only the operator can read it here";
            return Err(EngineError::OperatorOnly(why.into()));
        }
        let (workspace, path) = (space.folder, plain_path(path)?.to_owned());
        let read = tokio::task::spawn_blocking(move || read_entry(&workspace, &path));
        read.await?
    }
}

/// Returns the path without a slash at its end.
fn plain_path(path: &str) -> Result<&str, EngineError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(path);
    }
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    match path.split('/').all(is_plain) && path.split('/').count() <= MAX_PATH_DEPTH {
        true => Ok(path),
        false => Err(EngineError::Invalid(
            "path: must be a plain path inside the workspace, such as `notes/today.md`".into(),
        )),
    }
}

fn read_entry(workspace: &Path, path: &str) -> Result<WorkspaceEntry, EngineError> {
    let root = match Root::open(workspace) {
        Ok(root) => root,
        // The workspace is created by the first run.
        Err(error) if error.is_not_found() && path.is_empty() => {
            return Ok(WorkspaceEntry::Folder { names: Vec::new(), more: false });
        }
        Err(error) => return Err(entry_error(error)),
    };
    // The limit bounds the work for a huge folder.
    match root.open_entry(path, 100 * MAX_ENTRIES).map_err(entry_error)? {
        OpenedEntry::File(file) => read_to_limit(file, MAX_FILE_BYTES).map(WorkspaceEntry::File).map_err(entry_error),
        OpenedEntry::Folder(listing) => Ok(folder_entry(listing)),
    }
}

/// Links and special files are left out, and names that are not text.
fn folder_entry(listing: FolderListing) -> WorkspaceEntry {
    let name = |entry: workbench::files::FolderEntry| match (entry.name.into_string().ok()?, entry.kind) {
        (name, EntryKind::Folder) => Some(format!("{name}/")),
        (name, EntryKind::File) => Some(name),
        (_, EntryKind::Link | EntryKind::Special) => None,
    };
    let mut names: Vec<String> = listing.entries.into_iter().filter_map(name).collect();
    names.sort_unstable();
    let more = names.len() > MAX_ENTRIES;
    names.truncate(MAX_ENTRIES);
    WorkspaceEntry::Folder { names, more }
}

/// A link, a missing folder and a file instead of a folder all look the same to the caller.
fn entry_error(error: RootError) -> EngineError {
    use std::io::ErrorKind;
    match error {
        RootError::TooLong { limit } => {
            EngineError::Invalid(format!("the file is too large to read here; the limit is {limit} bytes"))
        }
        RootError::Io(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::InvalidFilename
            ) =>
        {
            EngineError::Unavailable(error.to_string())
        }
        _ => EngineError::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkspaceEntry, plain_path, read_entry};
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn invariant_18_beneath_no_path_or_link_leads_out_of_a_workspace() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("room");
        fs::create_dir_all(root.join("notes")).unwrap();
        fs::write(root.join("notes/today.md"), "rain").unwrap();
        fs::write(place.path().join("secret"), "no").unwrap();
        symlink(place.path().join("secret"), root.join("link")).unwrap();
        symlink(place.path(), root.join("folder")).unwrap();
        let at = |path: &str| plain_path(path).and_then(|path| read_entry(&root, path));
        assert_eq!(at("notes/today.md").unwrap(), WorkspaceEntry::File(b"rain".to_vec()));
        assert_eq!(at("").unwrap(), WorkspaceEntry::Folder { names: vec!["notes/".into()], more: false });
        for path in [
            "link",
            "folder",
            "folder/secret",
            "../secret",
            "notes/../../secret",
            "/notes",
            "notes//today.md",
            "notes/today.md/x",
            "nothing",
            ".",
            "a\0b",
        ] {
            assert!(at(path).is_err(), "{path:?}");
        }
        fs::write(root.join("large"), vec![0; super::MAX_FILE_BYTES as usize + 1]).unwrap();
        assert!(at("large").unwrap_err().to_string().contains("too large"));
        assert_eq!(
            read_entry(&place.path().join("none"), "").unwrap(),
            WorkspaceEntry::Folder { names: Vec::new(), more: false }
        );
    }
}
