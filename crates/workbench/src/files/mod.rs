//! Files beneath a folder whose contents are not trusted: an agent may have put anything there, and may change it while
//! we read it (invariant 18).
//!
//! A [`Root`] holds the folder open. Every path is resolved by the kernel, or one component at a time, starting at that
//! folder: nothing checks a path first and opens it later. Links are either refused or followed only as long as they
//! stay beneath the folder. Only regular files and folders are opened, never a pipe, a socket or a device.
//!
//! A hard link cannot be told from the file itself: a program that writes in the folder can put any file
//! of the same file system there that the system lets it link to. With `fs.protected_hardlinks`, which most systems set,
//! these are the files that it may read and write anyway.
//!
//! All functions block. Start at `root`; `resolve` opens paths.

mod listing;
mod measure;
mod partial_file;
mod remove;
mod resolve;
mod root;

pub use listing::{EntryKind, FolderEntry, FolderListing};
pub use measure::TreeSize;
pub use partial_file::{PartialFile, is_partial_name, partial_name};
pub use root::{OpenedEntry, Root, read_to_limit};

use rustix::io::Errno;
use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _, path::Component, path::Path};

/// The deepest path that is accepted.
pub const MAX_PATH_DEPTH: usize = 64;
/// The limit of Linux for the path of one call.
const MAX_PATH_BYTES: usize = 4095;

#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("the path must be relative, without `..`, and at most {MAX_PATH_DEPTH} folders deep")]
    InvalidPath,
    #[error("the path leads out of its folder")]
    Outside,
    #[error("a link is not followed")]
    Link,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is not a folder")]
    NotAFolder,
    #[error("it is longer than {limit} bytes")]
    TooLong { limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RootError {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<Errno> for RootError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::XDEV => Self::Outside,
            Errno::LOOP => Self::Link,
            Errno::NOTDIR => Self::NotAFolder,
            // A socket, or a pipe or device without anything at its other end.
            Errno::NXIO | Errno::NODEV => Self::NotAFile,
            error => Self::Io(error.into()),
        }
    }
}

impl From<RootError> for io::Error {
    fn from(error: RootError) -> Self {
        use io::ErrorKind;
        let kind = match &error {
            RootError::Io(_) => ErrorKind::Other,
            RootError::InvalidPath | RootError::NotAFile => ErrorKind::InvalidInput,
            RootError::Outside | RootError::Link => ErrorKind::PermissionDenied,
            RootError::NotAFolder => ErrorKind::NotADirectory,
            RootError::TooLong { .. } => ErrorKind::FileTooLarge,
        };
        match error {
            RootError::Io(error) => error,
            error => io::Error::new(kind, error),
        }
    }
}

/// Splits a path into its names. An empty path is the root itself.
fn plain_names(path: &Path) -> Result<Vec<&OsStr>, RootError> {
    let names = path.components().filter(|part| *part != Component::CurDir).map(|part| match part {
        Component::Normal(name) if !name.as_bytes().contains(&0) => Ok(name),
        _ => Err(RootError::InvalidPath),
    });
    let names: Vec<&OsStr> = names.collect::<Result<_, _>>()?;
    let is_too_long = names.len() > MAX_PATH_DEPTH || path.as_os_str().len() > MAX_PATH_BYTES;
    if is_too_long { Err(RootError::InvalidPath) } else { Ok(names) }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
