//! The folder of a project, opened for one operation.

use super::{DiskQuota, ProjectFilesError, ProjectPath, QuotaLimits};
use crate::files::{EntryKind, PartialFile, Root, RootError, TreeSize, is_partial_name};
use std::{
    fs::{File, Metadata},
    io::{self, Seek as _, SeekFrom, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// A program keeps its right to be executed when it is replaced.
const EXECUTABLE: u32 = 0o111;
/// A partial file is hidden while it may still be written. An older one was left by a killed server: it is listed, so
/// that it can be deleted.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub struct ProjectFiles {
    pub(super) root: Root,
    pub(super) quota: Arc<DiskQuota>,
    pub(super) limits: QuotaLimits,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedEntry {
    pub name: String,
    pub kind: EntryKind,
    pub bytes: u64,
    pub modified: SystemTime,
}

/// The entries of a folder, folders first, then by name. Names that are not text are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedFolder {
    pub entries: Vec<ListedEntry>,
    pub is_truncated: bool,
}

#[derive(Debug)]
pub struct OpenedFile {
    pub file: File,
    pub bytes: u64,
    pub modified: SystemTime,
}

impl ProjectFiles {
    pub fn open(folder: &Path, quota: Arc<DiskQuota>, limits: QuotaLimits) -> Result<Self, ProjectFilesError> {
        let root = Root::open(folder).map_err(|error| ProjectFilesError::at(&ProjectPath::folder(), error))?;
        Ok(Self { root, quota, limits })
    }

    /// Lists at most `limit` entries of a folder.
    pub fn list(&self, path: &ProjectPath, limit: usize) -> Result<ListedFolder, ProjectFilesError> {
        let at = |error| ProjectFilesError::at(path, error);
        let folder = self.root.open_folder(path).map_err(at)?;
        let listing = folder.list("", limit).map_err(at)?;
        let mut entries = Vec::with_capacity(listing.entries.len());
        for entry in listing.entries {
            let Ok(name) = entry.name.into_string() else { continue };
            let found = match folder.metadata(&name) {
                Ok(found) => found,
                // Removed meanwhile.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(at(error)),
            };
            let modified = found.modified()?;
            let is_abandoned = modified.elapsed().is_ok_and(|age| age >= ABANDONED_AFTER);
            if !is_partial_name(&name) || is_abandoned {
                entries.push(ListedEntry { name, kind: entry.kind, bytes: found.len(), modified });
            }
        }
        entries.sort_by(|a, b| (a.kind != EntryKind::Folder, &a.name).cmp(&(b.kind != EntryKind::Folder, &b.name)));
        Ok(ListedFolder { entries, is_truncated: listing.is_truncated })
    }

    pub fn open_file(&self, path: &ProjectPath) -> Result<OpenedFile, ProjectFilesError> {
        let file = self.root.open_file(path).map_err(|error| ProjectFilesError::at(path, error))?;
        let found = file.metadata()?;
        Ok(OpenedFile { bytes: found.len(), modified: found.modified()?, file })
    }

    /// What is at a path, without following a link.
    pub fn metadata(&self, path: &ProjectPath) -> Result<Metadata, ProjectFilesError> {
        self.root.metadata(path).map_err(|error| ProjectFilesError::at(path, error))
    }

    /// Starts to write a file; its folders are created. Nothing is at the path before [`ProjectFileWriter::finish`].
    pub fn create(&self, path: &ProjectPath) -> Result<ProjectFileWriter<'_>, ProjectFilesError> {
        self.quota.begin(&self.root, &self.limits)?;
        self.create_parents(path)?;
        let replaced = match self.root.metadata(path) {
            Ok(found) if found.is_dir() => return Err(ProjectFilesError::Exists(path.clone())),
            Ok(found) => Some(found),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(ProjectFilesError::at(path, error)),
        };
        self.quota.take(&self.root, &self.limits, TreeSize { bytes: 0, files: 1 })?;
        let counted = CountedBytes { files: self, size: TreeSize { bytes: 0, files: 1 } };
        let kept = replaced.as_ref().filter(|found| found.is_file()).map_or(0, |found| found.mode() & EXECUTABLE);
        let file = self.root.create(path, FILE_MODE | kept).map_err(|error| ProjectFilesError::at(path, error))?;
        let replaced = replaced.map(|found| TreeSize { bytes: found.blocks() * 512, files: 1 });
        Ok(ProjectFileWriter { path: path.clone(), file, counted, replaced })
    }

    pub fn write(&self, path: &ProjectPath, content: &[u8]) -> Result<bool, ProjectFilesError> {
        let mut file = self.create(path)?;
        file.write(content)?;
        file.finish()
    }

    /// Removes a file, or a folder with everything in it.
    pub fn remove(&self, path: &ProjectPath) -> Result<(), ProjectFilesError> {
        if path.is_folder_itself() {
            return Err(ProjectFilesError::Path(String::new()));
        }
        let removed = self.root.remove(path).map_err(|error| ProjectFilesError::at(path, error));
        self.quota.forget();
        removed
    }

    /// Moves a file or a folder to a path where nothing is yet; its folders are created.
    pub fn rename(&self, from: &ProjectPath, to: &ProjectPath) -> Result<(), ProjectFilesError> {
        if from.is_folder_itself() || to.is_folder_itself() {
            return Err(ProjectFilesError::Path(String::new()));
        }
        self.metadata(from)?;
        self.quota.begin(&self.root, &self.limits)?;
        self.create_parents(to)?;
        self.root.rename_new(from, to).map_err(|error| match error {
            error if error.is_not_found() => ProjectFilesError::at(from, error),
            // A folder cannot be moved into itself.
            RootError::Io(error) if error.kind() == io::ErrorKind::InvalidInput => {
                ProjectFilesError::Path(to.to_string())
            }
            error => ProjectFilesError::at(to, error),
        })
    }

    fn create_parents(&self, path: &ProjectPath) -> Result<(), ProjectFilesError> {
        if path.is_folder_itself() {
            return Err(ProjectFilesError::Exists(path.clone()));
        }
        // Hidden as long as it is new, and like a file that is still being written.
        if path.as_str().split('/').any(is_partial_name) {
            return Err(ProjectFilesError::Path(path.to_string()));
        }
        self.create_folders(&path.parent())
    }

    pub(super) fn create_folders(&self, path: &ProjectPath) -> Result<(), ProjectFilesError> {
        if path.is_folder_itself() {
            return Ok(());
        }
        match self.root.open_folder(path) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(ProjectFilesError::at(path, error)),
        }
        self.create_folders(&path.parent())?;
        self.quota.take(&self.root, &self.limits, TreeSize { bytes: 0, files: 1 })?;
        let at = |error| ProjectFilesError::at(path, error);
        self.root.create_dir_all(path, FOLDER_MODE).map_err(at)
    }
}

/// What a writer has counted. Given back unless the file is finished.
#[derive(Debug)]
struct CountedBytes<'a> {
    files: &'a ProjectFiles,
    size: TreeSize,
}

impl Drop for CountedBytes<'_> {
    fn drop(&mut self) {
        self.files.quota.give_back(self.size);
    }
}

/// A file that is being written. Dropping it leaves nothing.
#[derive(Debug)]
pub struct ProjectFileWriter<'a> {
    path: ProjectPath,
    file: PartialFile,
    counted: CountedBytes<'a>,
    replaced: Option<TreeSize>,
}

impl ProjectFileWriter<'_> {
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ProjectFilesError> {
        let size = TreeSize { bytes: bytes.len() as u64, files: 0 };
        let files = self.counted.files;
        files.quota.take(&files.root, &files.limits, size)?;
        self.counted.size.bytes += size.bytes;
        Ok(self.file.write_all(bytes)?)
    }

    /// What was written so far, from its beginning.
    pub(super) fn reader(&self) -> io::Result<File> {
        let mut file = self.file.file().try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    pub fn path(&self) -> &ProjectPath {
        &self.path
    }

    /// Fails if a folder is at the path by now, so that the file could not be finished.
    pub fn check(&self) -> Result<(), ProjectFilesError> {
        match self.counted.files.metadata(&self.path) {
            Ok(found) if found.is_dir() => Err(ProjectFilesError::Exists(self.path.clone())),
            Ok(_) | Err(ProjectFilesError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the file is new; else it has replaced one.
    pub fn finish(mut self) -> Result<bool, ProjectFilesError> {
        let is_new = self.replaced.is_none();
        self.file.persist().map_err(|error| ProjectFilesError::at(&self.path, error))?;
        // What was counted stays counted, but for what was replaced.
        self.counted.size = self.replaced.unwrap_or_default();
        Ok(is_new)
    }
}
