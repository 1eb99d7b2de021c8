//! Reads and copies one folder, within limits.

use super::{
    MARKER,
    skill_folder::{SkillDigest, SkillDigestBuilder},
};
use crate::files::{EntryKind, Root, RootError};
use std::{
    collections::BTreeMap,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

pub const MAX_FILES: usize = 1000;
pub const MAX_BYTES: u64 = 32 * 1024 * 1024;
const MAX_DEPTH: usize = 16;

/// The regular files beneath a folder, by relative path.
pub struct FolderContents {
    root: Root,
    files: BTreeMap<PathBuf, FolderFile>,
}

struct FolderFile {
    bytes: u64,
    mode: u32,
}

impl FolderContents {
    pub fn of(root: Root) -> io::Result<Self> {
        let mut contents = Self { root, files: BTreeMap::new() };
        contents.gather(Path::new(""), 0)?;
        Ok(contents)
    }

    fn gather(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_large(format!("it is more than {MAX_DEPTH} folders deep")));
        }
        let listing = self.root.list(folder, MAX_FILES + 1)?;
        if listing.is_truncated {
            return Err(too_many());
        }
        for entry in listing.entries {
            let path = folder.join(entry.name);
            match entry.kind {
                EntryKind::Folder => self.gather(&path, depth + 1)?,
                _ if path == Path::new(MARKER) => {}
                // Opened, because a link counts as the file that it leads to.
                _ => match self.root.open_file(&path) {
                    Ok(file) => self.add(path, &file.metadata()?)?,
                    Err(RootError::Io(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Err(error) => {
                        tracing::warn!(file = %path.display(), %error, "not copied: not a regular file in this folder");
                    }
                },
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, found: &Metadata) -> io::Result<()> {
        let mode = found.permissions().mode() & 0o777;
        self.files.insert(path, FolderFile { bytes: found.len(), mode });
        if self.files.len() > MAX_FILES {
            return Err(too_many());
        }
        if self.bytes() > MAX_BYTES {
            return Err(too_large(format!("it is larger than {} MB", MAX_BYTES / 1024 / 1024)));
        }
        Ok(())
    }

    /// Reads every file, because its content can change without its size and its time.
    pub fn digest(&self) -> io::Result<SkillDigest> {
        let mut digest = SkillDigestBuilder::default();
        for (path, is_executable, content) in self.contents() {
            digest.add(path, is_executable, &content?);
        }
        Ok(digest.finish())
    }

    /// Returns each file's relative path, whether it is executable, and its content.
    pub fn read(&self) -> io::Result<Vec<(PathBuf, bool, Vec<u8>)>> {
        self.contents().map(|(path, is_executable, content)| Ok((path.to_owned(), is_executable, content?))).collect()
    }

    /// Reads one file after the other.
    fn contents(&self) -> impl Iterator<Item = (&Path, bool, io::Result<Vec<u8>>)> {
        self.files.iter().map(|(path, found)| {
            let mut content = Vec::new();
            let read = self.open(path, found).and_then(|mut file| file.read_to_end(&mut content));
            (path.as_path(), found.mode & 0o100 != 0, read.map(|_| content))
        })
    }

    pub fn bytes(&self) -> u64 {
        self.files.values().map(|found| found.bytes).sum()
    }

    pub fn copy_to(&self, target: &Root) -> io::Result<()> {
        for (path, found) in &self.files {
            if let Some(parent) = path.parent() {
                target.create_dir_all(parent, 0o777)?;
            }
            let mut copy = target.create_new(path, 0o600)?;
            io::copy(&mut self.open(path, found)?, &mut copy)?;
            copy.set_permissions(fs::Permissions::from_mode(found.mode))?;
        }
        Ok(())
    }

    /// The file may be growing: no more is read than was counted.
    fn open(&self, path: &Path, found: &FolderFile) -> io::Result<io::Take<File>> {
        Ok(self.root.open_file(path)?.take(found.bytes))
    }
}

fn too_many() -> io::Error {
    too_large(format!("it has more than {MAX_FILES} files"))
}

fn too_large(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}
