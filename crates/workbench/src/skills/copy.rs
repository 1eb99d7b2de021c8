//! Reads and copies one folder, within limits.

use super::MARKER;
use rustix::fs::OFlags;
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

pub const MAX_FILES: usize = 1000;
pub const MAX_BYTES: u64 = 32 * 1024 * 1024;
const MAX_DEPTH: usize = 16;

/// The regular files beneath a folder, by relative path.
pub struct FolderContents(BTreeMap<PathBuf, FolderFile>);

struct FolderFile {
    /// The real path: elsewhere in the same folder, if the entry is a link.
    source: PathBuf,
    bytes: u64,
    changed: SystemTime,
    mode: u32,
}

impl FolderContents {
    pub fn of(folder: &Path) -> io::Result<Self> {
        // The folder itself may be a link; links in it must not lead out of it.
        let root = folder.canonicalize()?;
        let mut contents = Self(BTreeMap::new());
        contents.gather(&root, &root, 0)?;
        Ok(contents)
    }

    fn gather(&mut self, root: &Path, folder: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_large(format!("it is more than {MAX_DEPTH} folders deep")));
        }
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let kind = path.symlink_metadata()?.file_type();
            if kind.is_dir() {
                self.gather(root, &path, depth + 1)?;
            } else if relative != Path::new(MARKER) {
                let source = if kind.is_symlink() { path.canonicalize().unwrap_or_default() } else { path };
                match source.symlink_metadata() {
                    Ok(found) if found.is_file() && source.starts_with(root) => self.add(relative, source, &found)?,
                    // A link out of the folder, to a folder or to nothing; a socket, a pipe, a device.
                    _ => tracing::warn!(file = %relative.display(), "not copied: not a regular file in this folder"),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, relative: PathBuf, source: PathBuf, found: &fs::Metadata) -> io::Result<()> {
        let mode = found.permissions().mode() & 0o777;
        self.0.insert(relative, FolderFile { source, bytes: found.len(), changed: found.modified()?, mode });
        if self.0.len() > MAX_FILES {
            return Err(too_large(format!("it has more than {MAX_FILES} files")));
        }
        if self.bytes() > MAX_BYTES {
            return Err(too_large(format!("it is larger than {} MB", MAX_BYTES / 1024 / 1024)));
        }
        Ok(())
    }

    /// Compares names, sizes, times and permissions, all of which a copy keeps.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        let metadata = |found: &FolderFile| (found.bytes, found.changed, found.mode);
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((a, this), (b, that))| a == b && metadata(this) == metadata(that))
    }

    /// Returns each file's relative path, whether it is executable, and its content.
    pub fn read(&self) -> io::Result<Vec<(PathBuf, bool, Vec<u8>)>> {
        let file = |(relative, found): (&PathBuf, &FolderFile)| {
            let mut content = Vec::new();
            found.open()?.read_to_end(&mut content)?;
            Ok((relative.clone(), found.mode & 0o100 != 0, content))
        };
        self.0.iter().map(file).collect()
    }

    pub fn bytes(&self) -> u64 {
        self.0.values().map(|found| found.bytes).sum()
    }

    pub fn copy_to(&self, folder: &Path) -> io::Result<()> {
        for (relative, found) in &self.0 {
            let target = folder.join(relative);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            found.copy_to(&target)?;
        }
        Ok(())
    }
}

impl FolderFile {
    fn open(&self) -> io::Result<io::Take<File>> {
        // The file may have been replaced since the scan: a link is rejected, a pipe does not block.
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
        let source = OpenOptions::new().read(true).custom_flags(flags).open(&self.source)?;
        if !source.metadata()?.is_file() {
            return Err(io::Error::other(format!("{} changed while it was copied", self.source.display())));
        }
        // And the file may be growing.
        Ok(source.take(self.bytes))
    }

    fn copy_to(&self, target: &Path) -> io::Result<()> {
        let mut source = self.open()?;
        let mut copy = File::create_new(target)?;
        io::copy(&mut source, &mut copy)?;
        copy.set_permissions(fs::Permissions::from_mode(self.mode))?;
        copy.set_modified(self.changed)
    }
}

fn too_large(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}
