//! Uploaded files: written to the data folder under their id, recorded once they are complete and synced, and readable
//! by their owner. A file name is only a label and never part of a path (invariant 18).

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    ids::UploadId,
    message::Attachment,
    name::Name,
    owner::Owner,
    permission::Permission,
    time::Timestamp,
    upload::{MAX_BYTES, MAX_FILES, Upload},
};
use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use store::IdempotentRequest;
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt as _,
};

const PARTIAL: &str = "partial";
/// No upload takes this long: an older partial file was left by a server that was killed.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Uploads in progress. Dropping it before `finish` removes the partial files.
#[derive(Debug)]
pub struct IncomingUploads {
    engine: Engine,
    actor: Actor,
    /// The last one is being written.
    files: Vec<PartialUpload>,
}

/// A file that is not recorded yet.
#[derive(Debug)]
struct PartialUpload {
    upload: Upload,
    /// `None` once it is complete and synced.
    file: Option<File>,
    partial: PathBuf,
}

impl Engine {
    pub async fn begin_uploads(&self, actor: &Actor) -> Result<IncomingUploads, EngineError> {
        let owner = actor.require(Permission::Post)?;
        self.check_storage(owner, 0).await?;
        let folder = self.config().folders.uploads_folder();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| write_error(&error))?;
        Ok(IncomingUploads { engine: self.clone(), actor: actor.clone(), files: Vec::new() })
    }

    pub async fn open_upload(&self, actor: &Actor, id: UploadId) -> Result<(Upload, File), EngineError> {
        let owner = actor.require(Permission::Read)?;
        let upload = self.store().upload(owner, id).await?;
        match File::open(self.upload_file(id)).await {
            Ok(file) => Ok((upload, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(upload = %id, "the file of an upload is missing from the data folder");
                Err(EngineError::NotFound)
            }
            Err(error) => Err(EngineError::Unavailable(error.to_string())),
        }
    }

    pub async fn delete_upload(
        &self,
        actor: &Actor,
        id: UploadId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::Post)?;
        self.store().delete_upload(actor, id, attempt).await?;
        if let Err(error) = tokio::fs::remove_file(self.upload_file(id)).await {
            tracing::warn!(upload = %id, %error, "an upload was deleted, but its file could not be removed");
        }
        Ok(())
    }

    /// Removes partial files that a killed server left.
    pub async fn sweep_uploads(&self) {
        let folder = self.config().folders.uploads_folder();
        let swept = tokio::task::spawn_blocking(move || sweep(&folder)).await;
        match swept {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not remove stale partial uploads"),
            Err(error) => tracing::error!(%error, "the removal of stale partial uploads panicked"),
        }
    }

    /// Checks that the attachments are uploads of the message's author, and returns them as they were uploaded.
    pub(crate) async fn resolve_attachments(
        &self,
        owner: &Owner,
        named: &[Attachment],
    ) -> Result<Vec<Attachment>, EngineError> {
        let mut attachments = Vec::with_capacity(named.len());
        for attachment in named {
            let refused = || EngineError::Refused {
                pointer: "/attachments".into(),
                detail: format!(
                    "attachments: {:?} is not one of your uploads; POST /api/uploads first and send the url from its response",
                    attachment.url
                ),
            };
            let id = attachment.upload_id().ok_or_else(refused)?;
            match self.store().upload(owner, id).await {
                Ok(upload) => attachments.push(upload.attachment()),
                Err(store::StoreError::NotFound) => return Err(refused()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(attachments)
    }

    pub(crate) fn upload_file(&self, id: UploadId) -> PathBuf {
        self.config().folders.uploads_folder().join(id.to_string())
    }
}

impl IncomingUploads {
    /// Begins the next file; the one before is complete.
    pub async fn start(&mut self, name: Name, media_type: String) -> Result<(), EngineError> {
        self.complete_last().await?;
        if self.files.len() >= MAX_FILES {
            return Err(EngineError::Invalid(format!("send at most {MAX_FILES} files at once")));
        }
        let id = UploadId::generate();
        let partial = self.engine.config().folders.uploads_folder().join(format!("{id}.{PARTIAL}"));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).await;
        let file = Some(opened.map_err(|error| write_error(&error))?);
        let upload = Upload { id, name, media_type, bytes: 0, created_at: Timestamp::now() };
        self.files.push(PartialUpload { upload, file, partial });
        Ok(())
    }

    pub async fn write(&mut self, piece: &[u8]) -> Result<(), EngineError> {
        let Some(PartialUpload { upload, file: Some(file), .. }) = self.files.last_mut() else {
            return Err(EngineError::Unavailable("no upload has been started".into()));
        };
        upload.bytes += piece.len() as u64;
        if upload.bytes > MAX_BYTES {
            return Err(EngineError::Invalid(format!("a file has at most {MAX_BYTES} bytes")));
        }
        file.write_all(piece).await.map_err(|error| write_error(&error))
    }

    /// Syncs the file that was written last, and counts it in its workspace's share.
    async fn complete_last(&mut self) -> Result<(), EngineError> {
        let Some(last) = self.files.last_mut() else { return Ok(()) };
        let Some(mut file) = last.file.take() else { return Ok(()) };
        self.engine.check_storage(&self.actor.workspace, last.upload.bytes).await?;
        file.flush().await.map_err(|error| write_error(&error))?;
        file.sync_all().await.map_err(|error| write_error(&error))
    }

    /// Records the files once all are synced: an upload whose URL was returned can be read. All of them are recorded, or
    /// none is left.
    pub async fn finish(self, attempt: Option<&IdempotentRequest>) -> Result<Vec<Upload>, EngineError> {
        let (engine, attempt) = (self.engine.clone(), attempt.cloned());
        // In a task of its own: a client that disconnects must not leave a file without an owner.
        let kept = engine.background_tasks().spawn(async move { self.finish_detached(attempt.as_ref()).await });
        kept.await.unwrap_or_else(|error| Err(error.into()))
    }

    async fn finish_detached(mut self, attempt: Option<&IdempotentRequest>) -> Result<Vec<Upload>, EngineError> {
        self.complete_last().await?;
        let uploads: Vec<Upload> = self.files.iter().map(|file| file.upload.clone()).collect();
        let recorded = match self.move_into_place().await {
            Ok(()) => self.engine.store().add_uploads(&self.actor, &uploads, attempt).await.map_err(EngineError::from),
            Err(error) => Err(write_error(&error)),
        };
        if let Err(error) = recorded {
            // If they were recorded although the response got lost, their owner finds no files: better than files
            // without an owner.
            for upload in &uploads {
                remove_if_exists(&self.engine.upload_file(upload.id));
            }
            return Err(error);
        }
        Ok(uploads)
    }

    async fn move_into_place(&self) -> io::Result<()> {
        for PartialUpload { upload, partial, .. } in &self.files {
            tokio::fs::rename(partial, self.engine.upload_file(upload.id)).await?;
        }
        // A rename is durable only once its folder is synced.
        File::open(self.engine.config().folders.uploads_folder()).await?.sync_all().await
    }
}

impl Drop for IncomingUploads {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| remove_if_exists(&file.partial));
    }
}

fn remove_if_exists(file: &Path) {
    match std::fs::remove_file(file) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "the file of a failed upload could not be removed")
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

fn sweep(folder: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_partial = entry.path().extension().is_some_and(|extension| extension == PARTIAL);
        // Another server may share the folder and still be writing.
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if is_partial && age > STALE_AFTER {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A write failure is reported as temporary: the client may retry.
fn write_error(error: &io::Error) -> EngineError {
    EngineError::Unavailable(format!("the upload could not be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{STALE_AFTER, sweep};
    use std::{
        fs::{self, File},
        time::Duration,
    };

    #[test]
    fn sweep_removes_only_old_partial_files() {
        let folder = tempfile::tempdir().unwrap();
        let old = fs::metadata(folder.path()).unwrap().modified().unwrap() - STALE_AFTER - Duration::from_secs(60);
        for (name, is_old) in [("a.partial", true), ("b.partial", false), ("c", true)] {
            let file = File::create(folder.path().join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        sweep(folder.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["b.partial", "c"]);
        sweep(&folder.path().join("nowhere")).unwrap();
    }
}
