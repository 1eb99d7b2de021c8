//! A folder that is held open, and what can be done beneath it.

use super::{
    FolderListing, PartialFile, RootError,
    measure::{self, TreeSize},
    partial_file::PARTIAL_PREFIX,
    plain_names, remove,
    resolve::{Links, Resolver},
};
use rustix::{
    fs::{Mode, OFlags, RenameFlags, fstatvfs, mkdirat, openat, renameat, renameat_with},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::Read as _,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::{MetadataExt as _, fchown},
    },
    path::Path,
    time::Duration,
};

/// A folder, held open: it stays the same folder if its path later leads elsewhere. What is created beneath it belongs to the
/// owner of the folder: a server that is root writes for programs that are not.
#[derive(Debug)]
pub struct Root {
    folder: File,
    links: Links,
    resolver: Resolver,
}

/// A file or a folder, opened for reading.
#[derive(Debug)]
pub enum OpenedEntry {
    File(File),
    Folder(FolderListing),
}

/// Non-blocking: opening a pipe without a writer would block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Root {
    /// Opens a folder that the operator named or the server created; its own path may contain links. Links beneath it
    /// are refused.
    pub fn open(folder: &Path) -> Result<Self, RootError> {
        Self::with(folder, Links::Refused)
    }

    /// As [`Root::open`], but follows links that stay beneath the folder.
    pub fn open_following_links(folder: &Path) -> Result<Self, RootError> {
        Self::with(folder, Links::FollowedBeneath)
    }

    fn with(folder: &Path, links: Links) -> Result<Self, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Self { folder: folder.into(), links, resolver: Resolver::Kernel })
    }

    /// Behaves as on a kernel without `openat2`.
    #[cfg(test)]
    pub(super) fn by_walk(self) -> Self {
        Self { resolver: Resolver::Walk, ..self }
    }

    /// Opens a folder beneath this one as a root of its own.
    pub fn open_folder(&self, path: impl AsRef<Path>) -> Result<Self, RootError> {
        let folder = self.resolve(&plain_names(path.as_ref())?, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self { folder: folder.into(), links: self.links, resolver: self.resolver })
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, RootError> {
        let file = File::from(self.resolve(&plain_names(path.as_ref())?, READ)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(RootError::NotAFile) }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, RootError> {
        read_to_limit(self.open_file(path)?, limit)
    }

    /// Opens a regular file, or lists at most `limit` entries of a folder.
    pub fn open_entry(&self, path: impl AsRef<Path>, limit: usize) -> Result<OpenedEntry, RootError> {
        let opened = File::from(self.resolve(&plain_names(path.as_ref())?, READ)?);
        let kind = opened.metadata()?.file_type();
        if kind.is_dir() {
            return Ok(OpenedEntry::Folder(FolderListing::read(&opened, limit)?));
        }
        if kind.is_file() { Ok(OpenedEntry::File(opened)) } else { Err(RootError::NotAFile) }
    }

    /// Lists at most `limit` entries of a folder.
    pub fn list(&self, path: impl AsRef<Path>, limit: usize) -> Result<FolderListing, RootError> {
        Ok(FolderListing::read(&self.open_folder(path)?.folder, limit)?)
    }

    /// Returns the metadata of an entry; of a link at the end of the path, its own.
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, RootError> {
        let found = self.resolve(&plain_names(path.as_ref())?, OFlags::PATH | OFlags::NOFOLLOW)?;
        Ok(File::from(found).metadata()?)
    }

    /// Creates a folder and its parents, as far as they are missing, with these permissions.
    pub fn create_dir_all(&self, path: impl AsRef<Path>, mode: u32) -> Result<(), RootError> {
        let names = plain_names(path.as_ref())?;
        for end in 1..=names.len() {
            let (parent, name) = self.parent(&names[..end])?;
            match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
                Ok(()) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    self.give(&openat(&parent, name, flags, Mode::empty())?.into())?;
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.resolve(&names, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(())
    }

    /// Creates a file for writing; fails if there is anything at the path.
    pub fn create_new(&self, path: impl AsRef<Path>, mode: u32) -> Result<File, RootError> {
        let names = plain_names(path.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode);
        let file = self.resolver.open(self.folder.as_fd(), &names, flags, mode, self.links)?.into();
        self.give(&file)?;
        Ok(file)
    }

    /// Starts a new file with these permissions. It replaces what is at the path when it is persisted.
    pub fn create(&self, path: impl AsRef<Path>, mode: u32) -> Result<PartialFile, RootError> {
        let names = plain_names(path.as_ref())?;
        let (parent, name) = self.parent(&names)?;
        let file = PartialFile::create(parent, name, Mode::from_raw_mode(mode))?;
        self.give(file.file())?;
        Ok(file)
    }

    /// Gives a new file or folder to the owner of the folder. The owner is looked up now, after the creation: if somebody
    /// hands the folder over meanwhile, from the top down, they find the new file or this finds the new owner.
    fn give(&self, new: &File) -> Result<(), RootError> {
        let (folder, found) = (self.folder.metadata()?, new.metadata()?);
        if (found.uid(), found.gid()) == (folder.uid(), folder.gid()) {
            return Ok(());
        }
        match fchown(new, Some(folder.uid()), Some(folder.gid())) {
            // Only root can, and only for root is it needed.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            done => Ok(done?),
        }
    }

    /// Writes a whole file at once.
    pub fn write(&self, path: impl AsRef<Path>, mode: u32, content: &[u8]) -> Result<(), RootError> {
        let mut file = self.create(path, mode)?;
        std::io::Write::write_all(&mut file, content)?;
        file.persist()
    }

    /// Removes files in a folder that a killed server had begun to write at least this long ago.
    pub fn remove_old_partials(&self, path: impl AsRef<Path>, age: Duration, limit: usize) -> Result<(), RootError> {
        let folder = self.open_folder(path)?;
        for entry in folder.list("", limit)?.entries {
            let is_partial = entry.name.as_encoded_bytes().starts_with(PARTIAL_PREFIX.as_bytes());
            if is_partial && folder.metadata(&entry.name)?.modified()?.elapsed().is_ok_and(|elapsed| elapsed >= age) {
                folder.remove(&entry.name)?;
            }
        }
        Ok(())
    }

    /// Removes an entry with everything in it; a link itself, not what it leads to.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<(), RootError> {
        let names = plain_names(path.as_ref())?;
        let (parent, name) = self.parent(&names)?;
        Ok(remove::remove(parent.as_fd(), name)?)
    }

    /// Renames an entry, and replaces a file or an empty folder at the new path.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), RootError> {
        let (from, to) = (plain_names(from.as_ref())?, plain_names(to.as_ref())?);
        let ((from, old), (to, new)) = (self.parent(&from)?, self.parent(&to)?);
        Ok(renameat(from, old, to, new)?)
    }

    /// Renames an entry to a path where nothing is.
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), RootError> {
        let (from, to) = (plain_names(from.as_ref())?, plain_names(to.as_ref())?);
        let ((from, old), (to, new)) = (self.parent(&from)?, self.parent(&to)?);
        Ok(renameat_with(from, old, to, new, RenameFlags::NOREPLACE)?)
    }

    /// How much is beneath the folder. Stops counting at `limit` entries.
    pub fn measure(&self, limit: u64) -> Result<TreeSize, RootError> {
        measure::measure(&self.folder, limit)
    }

    /// The free space of the folder's disk.
    pub fn free_bytes(&self) -> Result<u64, RootError> {
        let disk = fstatvfs(&self.folder)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Exchanges two entries atomically. Some file systems cannot: [`std::io::ErrorKind::Unsupported`].
    pub fn exchange(&self, one: impl AsRef<Path>, other: impl AsRef<Path>) -> Result<(), RootError> {
        let (one, other) = (plain_names(one.as_ref())?, plain_names(other.as_ref())?);
        let ((one, first), (other, second)) = (self.parent(&one)?, self.parent(&other)?);
        match renameat_with(one, first, other, second, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                Err(RootError::Io(std::io::ErrorKind::Unsupported.into()))
            }
            done => Ok(done?),
        }
    }

    /// Takes the lock of the folder, among all processes that ask for it, until the root is dropped.
    pub fn try_lock(&self) -> Result<(), fs::TryLockError> {
        self.folder.try_lock()
    }

    fn resolve(&self, names: &[&OsStr], flags: OFlags) -> Result<OwnedFd, RootError> {
        Ok(self.resolver.open(self.folder.as_fd(), names, flags, Mode::empty(), self.links)?)
    }

    /// Opens the folder of an entry. The root itself has none.
    fn parent<'a>(&self, names: &[&'a OsStr]) -> Result<(OwnedFd, &'a OsStr), RootError> {
        let (name, parents) = names.split_last().ok_or(RootError::InvalidPath)?;
        Ok((self.resolve(parents, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }
}

/// Reads an opened file of at most `limit` bytes, even if it grows meanwhile.
pub fn read_to_limit(file: File, limit: u64) -> Result<Vec<u8>, RootError> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(RootError::TooLong { limit }) } else { Ok(bytes) }
}
