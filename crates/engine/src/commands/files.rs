//! Reads files in a room's workspace. Agents may have put anything there, including links: files are opened one path
//! component at a time beneath the workspace and never through a link (invariant 18).

use crate::{Engine, EngineError};
use domain::{actor::Actor, ids::RoomId, permission::Permission};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

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
        let folders = &self.config().folders;
        if folders.shared_workspace.is_some() && !actor.may(Permission::Operate) {
            let why = "the rooms of this server share a folder of the operator; only the operator can read it here";
            return Err(EngineError::OperatorOnly(why.into()));
        }
        let (root, steps) = (folders.workspace(room), path_segments(path)?);
        let read = tokio::task::spawn_blocking(move || open_entry(&root, &steps));
        read.await.map_err(|error| EngineError::Unavailable(error.to_string()))?
    }
}

fn path_segments(path: &str) -> Result<Vec<String>, EngineError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let steps: Vec<String> = path.split('/').map(ToOwned::to_owned).collect();
    let is_plain = |step: &String| !matches!(step.as_str(), "" | "." | "..") && !step.contains('\0');
    match steps.iter().all(is_plain) && steps.len() <= 64 {
        true => Ok(steps),
        false => Err(EngineError::Invalid(
            "path: must be a plain path inside the workspace, such as `notes/today.md`".into(),
        )),
    }
}

fn open_entry(root: &Path, steps: &[String]) -> Result<WorkspaceEntry, EngineError> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = match openat(CWD, root, folder, Mode::empty()) {
        Ok(root) => root,
        // The workspace is created by the first run.
        Err(rustix::io::Errno::NOENT) if steps.is_empty() => {
            return Ok(WorkspaceEntry::Folder { names: Vec::new(), more: false });
        }
        Err(error) => return Err(entry_error(error)),
    };
    for step in steps {
        // Non-blocking: opening a pipe without a writer would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        at = openat(&at, PathBuf::from(step), flags, Mode::empty()).map_err(entry_error)?;
    }
    let found = fstat(&at).map_err(entry_error)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => list(&at).map_err(|error| EngineError::Unavailable(error.to_string())),
        FileType::RegularFile => read(at),
        _ => Err(EngineError::NotFound),
    }
}

fn read(file: OwnedFd) -> Result<WorkspaceEntry, EngineError> {
    let mut bytes = Vec::new();
    let read = File::from(file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| EngineError::Unavailable(error.to_string()))?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(EngineError::Invalid(format!(
            "the file is too large to read here; the limit is {MAX_FILE_BYTES} bytes"
        ))),
        false => Ok(WorkspaceEntry::File(bytes)),
    }
}

fn list(folder: &OwnedFd) -> io::Result<WorkspaceEntry> {
    let mut names = Vec::new();
    // Bounds the work for a huge folder.
    for entry in Dir::read_from(folder)?.take(100 * MAX_ENTRIES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let kind = match entry.file_type() {
            // Some file systems do not report the type here.
            FileType::Unknown => statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
            kind => kind,
        };
        match kind {
            _ if matches!(name, "." | "..") => {}
            FileType::Directory => names.push(format!("{name}/")),
            FileType::RegularFile => names.push(name.to_owned()),
            _ => {}
        }
    }
    names.sort_unstable();
    let more = names.len() > MAX_ENTRIES;
    names.truncate(MAX_ENTRIES);
    Ok(WorkspaceEntry::Folder { names, more })
}

/// A link, a missing folder and a file instead of a folder all look the same to the caller.
fn entry_error(error: rustix::io::Errno) -> EngineError {
    use rustix::io::Errno;
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG | Errno::NXIO => {
            EngineError::NotFound
        }
        error => EngineError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkspaceEntry, open_entry, path_segments};
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
        let at = |path: &str| path_segments(path).and_then(|steps| open_entry(&root, &steps));
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
            open_entry(&place.path().join("none"), &[]).unwrap(),
            WorkspaceEntry::Folder { names: Vec::new(), more: false }
        );
    }
}
