//! Files that people upload: written beside the database under their id, known once they are whole and synced, and read
//! back by their owner. A name is only ever a label here (invariant 18).

use crate::{Engine, Error};
use domain::{
    ids::UploadId,
    message::Attachment,
    name::Name,
    owner::Owner,
    time::Timestamp,
    upload::{MAX_BYTES, Upload},
};
use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use store::Attempt;
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt as _,
};

const PARTIAL: &str = "partial";
/// No upload takes this long: what is older was left by a server that died.
const LEFT: Duration = Duration::from_secs(3600);

/// A file on its way. Dropped before it is kept, nothing of it stays.
#[derive(Debug)]
pub struct Incoming {
    engine: Engine,
    id: UploadId,
    file: Option<File>,
    partial: PathBuf,
    bytes: u64,
}

impl Engine {
    pub async fn begin_upload(&self) -> Result<Incoming, Error> {
        let (id, folder) = (UploadId::generate(), self.config().folders.uploads());
        let partial = folder.join(format!("{id}.{PARTIAL}"));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| unwritable(&error))?;
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).await;
        let file = Some(opened.map_err(|error| unwritable(&error))?);
        Ok(Incoming { engine: self.clone(), id, file, partial, bytes: 0 })
    }

    pub async fn open_upload(&self, owner: &Owner, id: UploadId) -> Result<(Upload, File), Error> {
        let upload = self.store().upload(owner, id).await?;
        match File::open(self.upload_file(id)).await {
            Ok(file) => Ok((upload, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(upload = %id, "the file of an upload is not in the data folder");
                Err(Error::NotFound)
            }
            Err(error) => Err(Error::Unavailable(error.to_string())),
        }
    }

    pub async fn delete_upload(&self, owner: &Owner, id: UploadId, attempt: Option<&Attempt>) -> Result<(), Error> {
        self.store().delete_upload(owner, id, attempt).await?;
        if let Err(error) = tokio::fs::remove_file(self.upload_file(id)).await {
            tracing::warn!(upload = %id, %error, "an upload was forgotten, but its file could not be removed");
        }
        Ok(())
    }

    /// Removes what a server left that died in the middle of an upload.
    pub async fn sweep_uploads(&self) {
        let folder = self.config().folders.uploads();
        let swept = tokio::task::spawn_blocking(move || sweep(&folder)).await;
        match swept {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not look for uploads that were never finished"),
            Err(error) => tracing::error!(%error, "could not look for uploads that were never finished"),
        }
    }

    /// What a message may attach: uploads of its author, as they were uploaded.
    pub(crate) async fn attached(&self, owner: &Owner, named: &[Attachment]) -> Result<Vec<Attachment>, Error> {
        let mut attachments = Vec::with_capacity(named.len());
        for attachment in named {
            let refused = || Error::Refused {
                pointer: "/attachments",
                detail: format!(
                    "attachments: {:?} is no upload of yours; POST /api/uploads first and send the url it answers with",
                    attachment.url
                ),
            };
            let id = attachment.upload().ok_or_else(refused)?;
            match self.store().upload(owner, id).await {
                Ok(upload) => attachments.push(upload.attachment()),
                Err(store::Error::NotFound) => return Err(refused()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(attachments)
    }

    pub(crate) fn upload_file(&self, id: UploadId) -> PathBuf {
        self.config().folders.uploads().join(id.to_string())
    }
}

impl Incoming {
    pub fn id(&self) -> UploadId {
        self.id
    }

    pub async fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.bytes += piece.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(Error::Invalid(format!("a file has at most {MAX_BYTES} bytes")));
        }
        let Some(file) = &mut self.file else { return Err(Error::Unavailable("the upload is over".into())) };
        file.write_all(piece).await.map_err(|error| unwritable(&error))
    }

    /// On disk first, known then: what is answered with its address can be read.
    pub async fn keep(
        self,
        owner: &Owner,
        name: Name,
        media_type: String,
        attempt: Option<&Attempt>,
    ) -> Result<Upload, Error> {
        let (engine, owner, attempt) = (self.engine.clone(), owner.clone(), attempt.cloned());
        // Apart from the request: a client that goes away must not leave a file that nobody owns.
        let kept = engine.chores().spawn(async move { self.settled(&owner, name, media_type, attempt.as_ref()).await });
        kept.await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
    }

    async fn settled(
        mut self,
        owner: &Owner,
        name: Name,
        media_type: String,
        attempt: Option<&Attempt>,
    ) -> Result<Upload, Error> {
        let whole = self.engine.upload_file(self.id);
        self.settle(&whole).await.map_err(|error| unwritable(&error))?;
        let upload = Upload { id: self.id, name, media_type, bytes: self.bytes, created_at: Timestamp::now() };
        if let Err(error) = self.engine.store().add_upload(owner, &upload, attempt).await {
            // Where it was stored although the answer got lost, its owner finds no file: better than one that nobody owns.
            if let Err(error) = tokio::fs::remove_file(&whole).await {
                tracing::warn!(upload = %self.id, %error, "the file of a refused upload could not be removed");
            }
            return Err(error.into());
        }
        Ok(upload)
    }

    async fn settle(&mut self, whole: &Path) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush().await?;
            file.sync_all().await?;
        }
        tokio::fs::rename(&self.partial, whole).await?;
        match whole.parent() {
            // A rename is durable only once its folder is synced.
            Some(folder) => File::open(folder).await?.sync_all().await,
            None => Ok(()),
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(upload = %self.id, %error, "an unfinished upload could not be removed"),
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
        // Another server may share the folder and be at it.
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if is_partial && age > LEFT {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Where the folder is and why it fails is for the log; the uploader is told to try again.
fn unwritable(error: &io::Error) -> Error {
    Error::Unavailable(format!("an upload could not be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{LEFT, sweep};
    use std::{
        fs::{self, File},
        time::Duration,
    };

    #[test]
    fn only_what_was_left_long_ago_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let old = fs::metadata(folder.path()).unwrap().modified().unwrap() - LEFT - Duration::from_secs(60);
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
