//! A new file that appears under its name only when it is complete.

use super::RootError;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
};

/// No name that we give to a file otherwise begins like this.
pub(super) const PARTIAL_PREFIX: &str = ".greenroom-partial-";

/// Whether it is the name of something that is being written, or was when its server was killed.
pub fn is_partial_name(name: &str) -> bool {
    name.starts_with(PARTIAL_PREFIX)
}

/// A new name for something that is being written.
pub fn partial_name() -> String {
    format!("{PARTIAL_PREFIX}{}", uuid::Uuid::new_v4().simple())
}

/// A file that is being written, under a temporary name in the folder of its final name. Dropping it removes it.
#[derive(Debug)]
pub struct PartialFile {
    folder: OwnedFd,
    name: OsString,
    /// Empty once the file has its final name.
    temporary: String,
    file: File,
}

impl PartialFile {
    pub(super) fn create(folder: OwnedFd, name: &OsStr, mode: Mode) -> Result<Self, RootError> {
        // A new name each time: two writers of one file must not write into each other's.
        let temporary = partial_name();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&folder, temporary.as_str(), flags, mode)?);
        Ok(Self { folder, name: name.to_owned(), temporary, file })
    }

    /// Gives the file its final name. A file or a link of this name is replaced; a link is not followed.
    pub fn persist(mut self) -> Result<(), RootError> {
        renameat(&self.folder, self.temporary.as_str(), &self.folder, &self.name)?;
        self.temporary.clear();
        Ok(())
    }

    /// For its permissions and times.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.temporary.is_empty()
            && let Err(error) = unlinkat(&self.folder, self.temporary.as_str(), AtFlags::empty())
        {
            tracing::debug!(%error, "could not remove a partly written file");
        }
    }
}
