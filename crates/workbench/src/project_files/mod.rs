//! The files of a project: read, written, moved, removed and packed beneath its folder, within its disk quota.
//!
//! Agents write in the folder at the same time, so everything goes through a [`Root`], which follows no link (invariant
//! 18). A new file has a temporary name until it is complete. Knows nothing of rooms and HTTP. All functions block. Start
//! at `storage`, which opens a folder; `quota` counts, `path` checks names, `pack` makes archives, `unpack` reads archives of people, `search` finds text, `transfers`
//! limits what takes long.

mod folder;
mod pack;
mod path;
mod quota;
mod search;
mod storage;
mod transfers;
mod unpack;
mod zip_count;

pub use folder::{ListedEntry, ListedFolder, OpenedFile, ProjectFileWriter, ProjectFiles};
pub use path::ProjectPath;
pub use quota::{DiskQuota, QuotaLimits};
pub use search::{FileSearch, FoundLine, SearchReport};
pub use storage::ProjectStorage;
pub use transfers::{MAX_TRANSFERS, Transfer};
pub use unpack::{UnpackedFile, UnpackedFiles};

use crate::files::RootError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ProjectFilesError {
    #[error(
        "{0:?} is not a path in the project; use one such as src/main.py: without `..`, backslashes, control characters and names of the \
         server, at most 64 folders deep"
    )]
    Path(String),
    #[error("{0} does not exist in the project")]
    NotFound(ProjectPath),
    #[error("{0} is a link; links are not followed")]
    Link(ProjectPath),
    #[error("{0} is not a regular file")]
    NotAFile(ProjectPath),
    #[error("{0} is not a folder")]
    NotAFolder(ProjectPath),
    #[error("{0} exists already")]
    Exists(ProjectPath),
    #[error(
        "the project would have more than {limit} bytes, the most it may have; delete files, or raise limits.disk_bytes"
    )]
    TooManyBytes { limit: u64 },
    #[error(
        "the project would have more than {limit} files and folders, the most it may have; delete some, or raise limits.files"
    )]
    TooManyFiles { limit: u64 },
    #[error("the disk of the server has less than {floor} bytes left; ask the operator to free some")]
    DiskFull { floor: u64 },
    #[error("the folder has more than {limit} files and folders; download a part of it")]
    TooManyToPack { limit: usize },
    #[error("the archive cannot be unpacked: {0}")]
    Archive(String),
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<RootError> for ProjectFilesError {
    fn from(error: RootError) -> Self {
        Self::at(&ProjectPath::folder(), error)
    }
}

impl ProjectFilesError {
    /// The error of an operation on a path.
    fn at(path: &ProjectPath, error: RootError) -> Self {
        match error {
            RootError::InvalidPath => Self::Path(path.to_string()),
            RootError::Outside | RootError::Link => Self::Link(path.clone()),
            RootError::NotAFile => Self::NotAFile(path.clone()),
            RootError::NotAFolder => Self::NotAFolder(path.clone()),
            RootError::TooLong { .. } => Self::Io(io::ErrorKind::FileTooLarge.into()),
            RootError::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => Self::NotFound(path.clone()),
                io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Self::Exists(path.clone()),
                io::ErrorKind::IsADirectory => Self::NotAFile(path.clone()),
                io::ErrorKind::NotADirectory => Self::NotAFolder(path.clone()),
                io::ErrorKind::InvalidFilename => Self::Path(path.to_string()),
                _ => Self::Io(error),
            },
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unpack_tests;
