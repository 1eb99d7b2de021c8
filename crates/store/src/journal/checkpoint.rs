//! Looks after SQLite's log, beside the writer instead of inside its commits. A file that does not grow syncs several times
//! faster, so the log gets its size before it is written to; and what was committed is moved into the database file in time
//! for the log to be overwritten from its beginning.

use crate::{Error, database::Database, open::Store};
use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(500);
/// Pages that are left in the log until it is worth the while to move them.
const WORTH_IT: i64 = 1000;
/// What the log takes until then, and while that is being done. A page is 4 KiB, and each has a head.
const ROOM: u64 = 6 * 1024 * 1024;

pub(crate) struct Checkpointer {
    pub store: Store,
}

impl Checkpointer {
    pub(crate) async fn run(self, cancel: CancellationToken) {
        if let Err(error) = self.make_room().await {
            tracing::debug!(%error, "the log could not be given its size; it grows as it is needed");
        }
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            if let Err(error) = self.checkpoint().await {
                tracing::warn!(%error, "a checkpoint failed; it is tried again");
            }
        }
    }

    async fn make_room(&self) -> Result<(), Error> {
        let Some(log) = self.store.log() else { return Ok(()) };
        let unavailable = |error: &dyn std::fmt::Display| Error::Unavailable(error.to_string());
        let made = tokio::task::spawn_blocking(move || lengthen(&log)).await.map_err(|error| unavailable(&error))?;
        made.map_err(|error| unavailable(&error))
    }

    async fn checkpoint(&self) -> Result<(), Error> {
        let Database::Sqlite { read, .. } = self.store.database() else {
            return Ok(());
        };
        let (_, logged, moved): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)").fetch_one(read).await?;
        if logged - moved < WORTH_IT {
            return Ok(());
        }
        // PASSIVE never waits for the writer or a reader; what it could not move is moved next time.
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(read).await?;
        Ok(())
    }
}

impl Store {
    /// Where SQLite keeps its log.
    fn log(&self) -> Option<PathBuf> {
        let mut log = self.file()?.as_os_str().to_owned();
        log.push("-wal");
        Some(log.into())
    }
}

/// With real zeros: room that was only promised would have to be entered in the file system's books with each sync. SQLite
/// reads its log up to the first page that is not in order, which zeros are not. They are appended, wherever the end has
/// come to by then, so that they never lie over what somebody is writing.
fn lengthen(log: &Path) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut file = File::options().append(true).open(log)?;
    while file.metadata()?.len() < ROOM {
        file.write_all(&ZEROS)?;
    }
    file.sync_all()
}
