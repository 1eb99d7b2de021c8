//! The files that agents work on, for those who may see the room. An agent may have put anything there, links among it: files
//! are opened one step at a time beneath the workplace and never through a link (invariant 18).

use crate::{Engine, Error};
use domain::{ids::RoomId, owner::Owner};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
pub const MAX_ENTRIES: usize = 1000;

/// What lies at a path of a workplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkplaceEntry {
    File(Vec<u8>),
    /// By name; folders end with a slash. At most [`MAX_ENTRIES`]; `more` says that there are others.
    Folder {
        names: Vec<String>,
        more: bool,
    },
}

impl Engine {
    /// An empty path is the workplace itself.
    pub async fn workplace_entry(&self, owner: &Owner, room: RoomId, path: &str) -> Result<WorkplaceEntry, Error> {
        self.store().room(owner, room).await?;
        let folders = &self.config().folders;
        if folders.workspace.is_some() && !owner.is_operator() {
            let why = "the rooms of this server work in a folder of its operator's; only they can read it here";
            return Err(Error::OperatorOnly(why.into()));
        }
        let (root, steps) = (folders.workplace(room), steps(path)?);
        let look = tokio::task::spawn_blocking(move || look(&root, &steps));
        look.await.map_err(|error| Error::Unavailable(error.to_string()))?
    }
}

fn steps(path: &str) -> Result<Vec<String>, Error> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let steps: Vec<String> = path.split('/').map(ToOwned::to_owned).collect();
    let is_plain = |step: &String| !matches!(step.as_str(), "" | "." | "..") && !step.contains('\0');
    match steps.iter().all(is_plain) && steps.len() <= 64 {
        true => Ok(steps),
        false => Err(Error::Invalid("path: a plain path beneath the workplace, such as `notes/today.md`".into())),
    }
}

fn look(root: &Path, steps: &[String]) -> Result<WorkplaceEntry, Error> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = match openat(CWD, root, folder, Mode::empty()) {
        Ok(root) => root,
        // No agent has worked there yet.
        Err(rustix::io::Errno::NOENT) if steps.is_empty() => {
            return Ok(WorkplaceEntry::Folder { names: Vec::new(), more: false });
        }
        Err(error) => return Err(unreachable(error)),
    };
    for step in steps {
        // A pipe that nobody writes to would be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        at = openat(&at, PathBuf::from(step), flags, Mode::empty()).map_err(unreachable)?;
    }
    let found = fstat(&at).map_err(unreachable)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => list(&at).map_err(|error| Error::Unavailable(error.to_string())),
        FileType::RegularFile => read(at),
        _ => Err(Error::NotFound),
    }
}

fn read(file: OwnedFd) -> Result<WorkplaceEntry, Error> {
    let mut bytes = Vec::new();
    let read = File::from(file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::Unavailable(error.to_string()))?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(Error::Invalid(format!("the file has more than {MAX_FILE_BYTES} bytes, too many to read here"))),
        false => Ok(WorkplaceEntry::File(bytes)),
    }
}

fn list(folder: &OwnedFd) -> io::Result<WorkplaceEntry> {
    let mut names = Vec::new();
    // A folder with more than this is not looked through to its end.
    for entry in Dir::read_from(folder)?.take(100 * MAX_ENTRIES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let kind = match entry.file_type() {
            // Some file systems do not say it here.
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
    Ok(WorkplaceEntry::Folder { names, more })
}

/// A link, a missing step and a file in the place of a folder look the same.
fn unreachable(error: rustix::io::Errno) -> Error {
    use rustix::io::Errno;
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG | Errno::NXIO => {
            Error::NotFound
        }
        error => Error::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkplaceEntry, look, steps};
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn invariant_18_beneath_no_path_and_no_link_leads_out_of_a_workplace() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("room");
        fs::create_dir_all(root.join("notes")).unwrap();
        fs::write(root.join("notes/today.md"), "rain").unwrap();
        fs::write(place.path().join("secret"), "no").unwrap();
        symlink(place.path().join("secret"), root.join("link")).unwrap();
        symlink(place.path(), root.join("folder")).unwrap();
        let at = |path: &str| steps(path).and_then(|steps| look(&root, &steps));
        assert_eq!(at("notes/today.md").unwrap(), WorkplaceEntry::File(b"rain".to_vec()));
        assert_eq!(at("").unwrap(), WorkplaceEntry::Folder { names: vec!["notes/".into()], more: false });
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
        assert!(at("large").unwrap_err().to_string().contains("too many"));
        assert_eq!(
            look(&place.path().join("none"), &[]).unwrap(),
            WorkplaceEntry::Folder { names: Vec::new(), more: false }
        );
    }
}
