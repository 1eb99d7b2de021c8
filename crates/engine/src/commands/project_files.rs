//! Reads and changes the files of a project, on behalf of people. What agents do there goes through host tools.

use crate::{Engine, EngineError};
use bytes::Bytes;
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    event::{FileChanged, NewEvent},
    ids::ProjectId,
    owner::Owner,
    permission::Permission,
    project::ProjectSpace,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::json;
use std::{
    fs::File,
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use store::journal::{Commit, Guard, RowChange};
use tokio::{runtime::Handle, sync::mpsc, task::JoinHandle, time::timeout};
use workbench::{
    files::EntryKind,
    project_files::{
        ListedEntry, ListedFolder, MAX_TRANSFERS, OpenedFile, ProjectFiles, ProjectFilesError, ProjectPath, Transfer,
        UnpackedFile, UnpackedFiles,
    },
};

/// Entries of one listing.
pub const MAX_LISTED: usize = 5000;
/// Pieces of a file that wait for the disk.
const BUFFERED_PIECES: usize = 4;
/// How long a client may take to receive one piece of an archive.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);
/// Rooms of a project, the newest first, in which a change is shown.
const MAX_ANNOUNCED_ROOMS: usize = 20;
/// Changed files of one request that are shown. The audit log has the number of all.
const MAX_ANNOUNCED_FILES: usize = 50;
/// Files of one request; each is kept open until all have arrived.
const MAX_FILES_AT_ONCE: usize = 200;

/// What happened to a file, for the rooms of its project.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileChange {
    Created,
    Modified,
    Deleted,
    Moved,
}

impl FileChange {
    fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Moved => "moved",
        }
    }

    fn action(self) -> AuditAction {
        match self {
            Self::Created => AuditAction::Create,
            Self::Modified | Self::Moved => AuditAction::Update,
            Self::Deleted => AuditAction::Delete,
        }
    }
}

/// A folder of a project.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct ProjectFolderView {
    /// Relative to the project's folder; empty for that folder itself.
    path: String,
    /// Folders first, then by name.
    entries: Vec<ProjectEntryView>,
    /// Whether there are more than the 5000 that are listed.
    truncated: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct ProjectEntryView {
    name: String,
    kind: ProjectEntryKind,
    /// The size of a file.
    bytes: u64,
    modified_at: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectEntryKind {
    File,
    Folder,
    /// Links are not followed.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

impl ProjectFolderView {
    fn new(path: String, listed: ListedFolder) -> Self {
        let entry = |entry: ListedEntry| ProjectEntryView {
            kind: match entry.kind {
                EntryKind::File => ProjectEntryKind::File,
                EntryKind::Folder => ProjectEntryKind::Folder,
                EntryKind::Link => ProjectEntryKind::Link,
                EntryKind::Special => ProjectEntryKind::Special,
            },
            name: entry.name,
            bytes: entry.bytes,
            modified_at: timestamp(entry.modified),
        };
        Self { path, entries: listed.entries.into_iter().map(entry).collect(), truncated: listed.is_truncated }
    }
}

/// A file of a project, opened for reading.
pub struct OpenedProjectFile {
    pub file: File,
    /// The last part of its path.
    pub name: String,
    pub bytes: u64,
}

/// A file that was stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct StoredFile {
    pub path: String,
    pub bytes: u64,
    /// Whether there was no file at the path before.
    pub is_new: bool,
}

impl Engine {
    pub async fn list_project_files(
        &self,
        actor: &Actor,
        id: ProjectId,
        path: &str,
    ) -> Result<ProjectFolderView, EngineError> {
        let (space, path) = (self.file_space(actor, Permission::Read, id).await?, parse(path)?);
        let shown = path.as_str().to_owned();
        let listed = self.in_files(space, move |files| files.list(&path, MAX_LISTED)).await?;
        Ok(ProjectFolderView::new(shown, listed))
    }

    pub async fn open_project_file(
        &self,
        actor: &Actor,
        id: ProjectId,
        path: &str,
    ) -> Result<OpenedProjectFile, EngineError> {
        let (space, path) = (self.file_space(actor, Permission::Read, id).await?, parse(path)?);
        let name = path.name().to_owned();
        let OpenedFile { file, bytes, .. } = self.in_files(space, move |files| files.open_file(&path)).await?;
        Ok(OpenedProjectFile { file, name, bytes })
    }

    /// Packs a folder; the pieces of the archive arrive on the channel while it is packed. The last one of an archive that has
    /// no end is an error.
    pub async fn pack_project_folder(
        &self,
        actor: &Actor,
        id: ProjectId,
        path: &str,
    ) -> Result<mpsc::Receiver<io::Result<Bytes>>, EngineError> {
        let (space, path) = (self.file_space(actor, Permission::Read, id).await?, parse(path)?);
        let transfer = self.start_transfer(&space)?;
        let files = self.open_files(&space).await?;
        // A missing folder is an error of the request, not of the stream.
        let (files, path) = tokio::task::spawn_blocking(move || {
            files.list(&path, 1)?;
            Ok::<_, ProjectFilesError>((files, path))
        })
        .await?
        .map_err(file_error)?;
        let (sender, receiver) = mpsc::channel(BUFFERED_PIECES);
        let runtime = Handle::current();
        self.background_tasks().spawn_blocking(move || {
            let _transfer = transfer;
            let pieces = PieceWriter { pieces: sender.clone(), buffer: Vec::with_capacity(PIECE_BYTES), runtime };
            if let Err(error) = files.pack(&path, pieces) {
                tracing::debug!(%error, "an archive of a project was not sent to its end");
                // The client may be gone, or too slow for this too; then the end is missing as well.
                sender.try_send(Err(io::Error::other(error))).ok();
            }
        });
        Ok(receiver)
    }

    /// Starts to store files. They appear at their paths together, by [`IncomingFiles::finish`].
    pub async fn begin_project_files(&self, actor: &Actor, id: ProjectId) -> Result<IncomingFiles, EngineError> {
        let space = self.file_space(actor, Permission::Post, id).await?;
        self.receive_files(actor, id, &space, ReceivedAs::Files).await
    }

    /// Starts to receive archives that are unpacked into a folder, by [`IncomingFiles::finish`].
    pub async fn begin_project_archive(
        &self,
        actor: &Actor,
        id: ProjectId,
        folder: &str,
    ) -> Result<IncomingFiles, EngineError> {
        let space = self.file_space(actor, Permission::Post, id).await?;
        self.receive_files(actor, id, &space, ReceivedAs::Archives(parse(folder)?)).await
    }

    /// The same for a project that may not be stored yet.
    pub(super) async fn receive_files(
        &self,
        actor: &Actor,
        id: ProjectId,
        space: &ProjectSpace,
        received_as: ReceivedAs,
    ) -> Result<IncomingFiles, EngineError> {
        let transfer = self.start_transfer(space)?;
        let files = self.open_files(space).await?;
        let (pieces, waiting) = mpsc::channel(BUFFERED_PIECES);
        let task = self.background_tasks().spawn_blocking(move || {
            let _transfer = transfer;
            receive(&files, waiting, &received_as)
        });
        Ok(IncomingFiles { engine: self.clone(), actor: actor.clone(), project: id, started: 0, pieces, task })
    }

    pub async fn delete_project_file(&self, actor: &Actor, id: ProjectId, path: &str) -> Result<(), EngineError> {
        let (space, path) = (self.file_space(actor, Permission::Post, id).await?, parse(path)?);
        let shown = path.as_str().to_owned();
        self.in_files(space, move |files| files.remove(&path)).await?;
        self.announce_files(actor, id, vec![(shown, FileChange::Deleted)]).await
    }

    pub async fn move_project_file(
        &self,
        actor: &Actor,
        id: ProjectId,
        from: &str,
        to: &str,
    ) -> Result<(), EngineError> {
        let space = self.file_space(actor, Permission::Post, id).await?;
        let (from, to) = (parse(from)?, parse(to)?);
        let changes =
            vec![(from.as_str().to_owned(), FileChange::Moved), (to.as_str().to_owned(), FileChange::Created)];
        self.in_files(space, move |files| files.rename(&from, &to)).await?;
        self.announce_files(actor, id, changes).await
    }

    pub(super) async fn file_space(
        &self,
        actor: &Actor,
        permission: Permission,
        id: ProjectId,
    ) -> Result<ProjectSpace, EngineError> {
        let owner = actor.require(permission)?;
        let project = self.store().project(owner, id).await?;
        Ok(self.project_space(owner, &project))
    }

    fn start_transfer(&self, space: &ProjectSpace) -> Result<Transfer, EngineError> {
        let transfer = self.config().projects.storage.start_transfer(&space.owner);
        transfer.ok_or(EngineError::TooManyTransfers { limit: MAX_TRANSFERS })
    }

    pub(super) async fn open_files(&self, space: &ProjectSpace) -> Result<ProjectFiles, EngineError> {
        let (space, storage) = (space.clone(), Arc::clone(&self.config().projects.storage));
        let folders = self.config().folders.clone();
        let opened = tokio::task::spawn_blocking(move || {
            folders.create_space(&space)?;
            storage.open(&space)
        });
        opened.await?.map_err(file_error)
    }

    async fn in_files<T: Send + 'static>(
        &self,
        space: ProjectSpace,
        work: impl FnOnce(&ProjectFiles) -> Result<T, ProjectFilesError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let files = self.open_files(&space).await?;
        tokio::task::spawn_blocking(move || work(&files)).await?.map_err(file_error)
    }

    pub(super) async fn announce_stored(
        &self,
        actor: &Actor,
        id: ProjectId,
        stored: &[StoredFile],
    ) -> Result<(), EngineError> {
        let change = |file: &StoredFile| {
            (file.path.clone(), if file.is_new { FileChange::Created } else { FileChange::Modified })
        };
        self.announce_files(actor, id, stored.iter().map(change).collect()).await
    }

    /// Stores who changed which files, and shows it in the rooms of the project.
    async fn announce_files(
        &self,
        actor: &Actor,
        id: ProjectId,
        mut changes: Vec<(String, FileChange)>,
    ) -> Result<(), EngineError> {
        let owner: &Owner = &actor.workspace;
        let Some((first, change)) = changes.first().cloned() else { return Ok(()) };
        let detail = match change {
            FileChange::Moved => json!({"project": id, "to": changes.last().map(|(to, _)| to)}),
            _ => json!({"project": id, "files": changes.len()}),
        };
        let entry = AuditEntry::new(actor, change.action(), AuditedObject::File, first).with_detail(detail);
        self.store().record_audit(entry).await?;
        changes.truncate(MAX_ANNOUNCED_FILES);
        let event = |(path, change): &(String, FileChange)| {
            NewEvent::new(FileChanged { path: path.clone(), change: change.as_str().to_owned() })
        };
        let mut rooms = self.store().rooms_of_project(owner, id).await?;
        rooms.truncate(MAX_ANNOUNCED_ROOMS);
        for room_id in rooms {
            let events: Vec<NewEvent> = changes.iter().map(event).collect();
            let commit = Commit { room_id, guard: Guard::None, events, changes: Vec::<RowChange>::new() };
            match self.store().commit(commit).await {
                // Deleted meanwhile.
                Ok(_) | Err(store::StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// What happens to files that were received.
pub(super) enum ReceivedAs {
    Files,
    /// They are unpacked into a folder, and not stored themselves.
    Archives(ProjectPath),
}

/// What was stored of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedFiles {
    pub files: Vec<StoredFile>,
    /// Names of links, devices and pipes in an archive, which were left out.
    pub skipped: Vec<String>,
}

enum FilePiece {
    /// The following bytes belong to this file.
    Start(ProjectPath),
    /// The same for an archive, which has no path.
    StartArchive,
    Bytes(Bytes),
    End,
}

/// Writes files until the end, and only then gives them their names. If the sender is gone before, nothing is left of them.
fn receive(
    files: &ProjectFiles,
    mut pieces: mpsc::Receiver<FilePiece>,
    received_as: &ReceivedAs,
) -> Result<Option<ReceivedFiles>, ProjectFilesError> {
    let mut written = Vec::new();
    loop {
        match pieces.blocking_recv() {
            Some(FilePiece::Start(path)) => written.push((files.create(&path)?, 0)),
            Some(FilePiece::StartArchive) => written.push((files.receive_archive()?, 0)),
            Some(FilePiece::Bytes(piece)) => {
                if let Some((file, bytes)) = written.last_mut() {
                    *bytes += piece.len() as u64;
                    file.write(&piece)?;
                }
            }
            Some(FilePiece::End) => break,
            None => return Ok(None),
        }
    }
    if let ReceivedAs::Archives(folder) = received_as {
        let mut all = ReceivedFiles::default();
        for (archive, _) in written {
            let UnpackedFiles { files, skipped } = files.unpack(&archive, folder)?;
            let stored = |file: UnpackedFile| StoredFile {
                path: file.path.as_str().to_owned(),
                bytes: file.bytes,
                is_new: file.is_new,
            };
            all.files.extend(files.into_iter().map(stored));
            all.skipped.extend(skipped);
        }
        return Ok(Some(all));
    }
    // `a` and `a/b` in one request: found before any of them has its name.
    written.iter().try_for_each(|(file, _)| file.check())?;
    let stored = written.into_iter().map(|(file, bytes)| {
        let path = file.path().as_str().to_owned();
        Ok::<_, ProjectFilesError>(StoredFile { path, bytes, is_new: file.finish()? })
    });
    let files = stored.collect::<Result<_, _>>()?;
    Ok(Some(ReceivedFiles { files, skipped: Vec::new() }))
}

/// Files that are being received. Dropping them leaves nothing.
pub struct IncomingFiles {
    engine: Engine,
    actor: Actor,
    project: ProjectId,
    started: usize,
    pieces: mpsc::Sender<FilePiece>,
    task: JoinHandle<Result<Option<ReceivedFiles>, ProjectFilesError>>,
}

impl IncomingFiles {
    /// Begins the next file, in a folder.
    pub async fn start(&mut self, folder: &str, name: &str) -> Result<(), EngineError> {
        self.count_file()?;
        let path = parse(folder)?.join(name).map_err(file_error)?;
        self.send(FilePiece::Start(path)).await
    }

    fn count_file(&mut self) -> Result<(), EngineError> {
        self.started += 1;
        if self.started > MAX_FILES_AT_ONCE {
            let detail =
                format!("at most {MAX_FILES_AT_ONCE} files can be sent at once; send the others in another request");
            return Err(EngineError::Invalid(detail));
        }
        Ok(())
    }

    /// Begins the next archive.
    pub async fn start_archive(&mut self) -> Result<(), EngineError> {
        self.count_file()?;
        self.send(FilePiece::StartArchive).await
    }

    /// Waits if the disk is slower than the sender. Fails as soon as a limit is reached.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), EngineError> {
        self.send(FilePiece::Bytes(piece)).await
    }

    pub async fn finish(self) -> Result<ReceivedFiles, EngineError> {
        let (engine, actor, project) = (self.engine.clone(), self.actor.clone(), self.project);
        let stored = self.store().await?;
        engine.announce_stored(&actor, project, &stored.files).await?;
        Ok(stored)
    }

    /// Gives the files their names, without an event and an audit entry.
    pub(super) async fn store(mut self) -> Result<ReceivedFiles, EngineError> {
        self.send(FilePiece::End).await?;
        match (&mut self.task).await? {
            Ok(Some(stored)) => Ok(stored),
            Ok(None) => Err(unfinished()),
            Err(error) => Err(file_error(error)),
        }
    }

    async fn send(&mut self, piece: FilePiece) -> Result<(), EngineError> {
        if self.pieces.send(piece).await.is_ok() {
            return Ok(());
        }
        Err(match (&mut self.task).await {
            Ok(Err(error)) => file_error(error),
            Ok(Ok(_)) => unfinished(),
            Err(error) => error.into(),
        })
    }
}

fn unfinished() -> EngineError {
    EngineError::Unavailable("the files were not written to their end".to_owned())
}

/// Passes what is written on to a channel, in pieces of a fixed size.
struct PieceWriter {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
    runtime: Handle,
}

const PIECE_BYTES: usize = 64 << 10;

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES));
        match self.runtime.block_on(timeout(PIECE_DEADLINE, self.pieces.send(Ok(piece.into())))) {
            Ok(sent) => sent.map_err(|_| io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Before 1970, a file counts as of 1970.
fn timestamp(time: SystemTime) -> Timestamp {
    let millis = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

fn parse(path: &str) -> Result<ProjectPath, EngineError> {
    ProjectPath::parse(path).map_err(file_error)
}

pub(crate) fn file_error(error: ProjectFilesError) -> EngineError {
    use ProjectFilesError as E;
    match error {
        E::Path(_) => EngineError::refused("", format!("path: {error}")),
        E::Pattern(_) => EngineError::Invalid(error.to_string()),
        E::NotFound(_) => EngineError::NoSuchFile(error.to_string()),
        E::Exists(_) => EngineError::Conflict(error.to_string()),
        E::Archive(_) | E::Link(_) | E::NotAFile(_) | E::NotAFolder(_) | E::TooManyToPack { .. } => {
            EngineError::refused("", error.to_string())
        }
        E::TooManyBytes { .. } | E::TooManyFiles { .. } | E::DiskFull { .. } => {
            EngineError::ProjectFull(error.to_string())
        }
        E::Io(_) => EngineError::Unavailable(error.to_string()),
    }
}
