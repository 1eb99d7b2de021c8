//! One folder: what is in it, within limits, and a copy of that.

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

/// The regular files beneath a folder, by their path in it.
pub struct Contents(BTreeMap<PathBuf, Found>);

struct Found {
    /// Where it really is: elsewhere in the same folder, if it was linked to.
    source: PathBuf,
    bytes: u64,
    changed: SystemTime,
    mode: u32,
}

impl Contents {
    pub fn of(folder: &Path) -> io::Result<Self> {
        // The folder itself may be a link; what is in it may not lead out.
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
            let place = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let kind = path.symlink_metadata()?.file_type();
            if kind.is_dir() {
                self.gather(root, &path, depth + 1)?;
            } else if place != Path::new(MARKER) {
                let source = if kind.is_symlink() { path.canonicalize().unwrap_or_default() } else { path };
                match source.symlink_metadata() {
                    Ok(found) if found.is_file() && source.starts_with(root) => self.add(place, source, &found)?,
                    // A link that leads out, to a folder or to nothing; a socket, a pipe, a device.
                    _ => tracing::warn!(file = %place.display(), "not copied: it is not a file of this folder"),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, place: PathBuf, source: PathBuf, found: &fs::Metadata) -> io::Result<()> {
        let mode = found.permissions().mode() & 0o777;
        self.0.insert(place, Found { source, bytes: found.len(), changed: found.modified()?, mode });
        if self.0.len() > MAX_FILES {
            return Err(too_large(format!("it has more than {MAX_FILES} files")));
        }
        if self.bytes() > MAX_BYTES {
            return Err(too_large(format!("it is larger than {} MB", MAX_BYTES / 1024 / 1024)));
        }
        Ok(())
    }

    /// As far as names, sizes, times and permissions tell; a copy keeps those.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        let face = |found: &Found| (found.bytes, found.changed, found.mode);
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((a, this), (b, that))| a == b && face(this) == face(that))
    }

    /// Where each lies in the folder, whether it may be executed, and what is in it.
    pub fn read(&self) -> io::Result<Vec<(PathBuf, bool, Vec<u8>)>> {
        let file = |(place, found): (&PathBuf, &Found)| {
            let mut content = Vec::new();
            found.open()?.read_to_end(&mut content)?;
            Ok((place.clone(), found.mode & 0o100 != 0, content))
        };
        self.0.iter().map(file).collect()
    }

    pub fn bytes(&self) -> u64 {
        self.0.values().map(|found| found.bytes).sum()
    }

    pub fn copy_to(&self, folder: &Path) -> io::Result<()> {
        for (place, found) in &self.0 {
            let target = folder.join(place);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            found.copy_to(&target)?;
        }
        Ok(())
    }
}

impl Found {
    fn open(&self) -> io::Result<io::Take<File>> {
        // It may have become something else since it was looked at: a link is refused, a pipe does not block.
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
        let source = OpenOptions::new().read(true).custom_flags(flags).open(&self.source)?;
        if !source.metadata()?.is_file() {
            return Err(io::Error::other(format!("{} changed while it was copied", self.source.display())));
        }
        // And it may be growing.
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
