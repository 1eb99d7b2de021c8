//! Maintains SQLite's write-ahead log in a task of its own, outside of commits. A file that does not grow syncs several
//! times faster, so the log is extended in advance; and committed pages are moved into the database file early enough
//! for the log to be overwritten from its start.

use crate::{StoreError, database::Database, open::Store};
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_millis(500);
/// How long emptying the log may make the writer wait.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// The number of pages in the log that triggers a checkpoint.
const CHECKPOINT_PAGES: i64 = 1000;
/// The size of the log until and during a checkpoint. A page is 4 KiB plus a header.
const LOG_BYTES: u64 = 6 * 1024 * 1024;

pub(crate) struct Checkpointer {
    pub store: Store,
}

impl Checkpointer {
    pub(crate) async fn run(self, cancel: CancellationToken) {
        if let Err(error) = self.extend_log().await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "could not extend the write-ahead log; it grows on demand"
            );
        }
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            if let Err(error) = self.checkpoint().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "checkpoint failed; retrying");
            }
        }
    }

    async fn extend_log(&self) -> Result<(), StoreError> {
        let Some(log) = self.store.log() else { return Ok(()) };
        const WHAT: &str = "cannot write to the write-ahead log";
        let extended = tokio::task::spawn_blocking(move || extend(&log)).await;
        extended
            .map_err(|error| StoreError::unavailable(WHAT).caused_by(error))?
            .map_err(|error| StoreError::unavailable(WHAT).caused_by(error))
    }

    async fn checkpoint(&self) -> Result<(), StoreError> {
        let Database::Sqlite { read, .. } = self.store.database() else {
            return Ok(());
        };
        let (_, logged, moved): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)").fetch_one(read).await?;
        if logged - moved < CHECKPOINT_PAGES {
            return Ok(());
        }
        // PASSIVE never waits for the writer or a reader; the next checkpoint moves the rest.
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(read).await?;
        Ok(())
    }
}

impl Store {
    /// Empties the log, so that nothing that was erased is left in it. Returns false if a reader was in the way.
    pub async fn empty_log(&self) -> Result<bool, StoreError> {
        let Some(file) = self.file() else { return Ok(true) };
        // On a connection of its own, because it makes the writer wait for as long as it waits itself.
        let options = SqliteConnectOptions::new().filename(file).busy_timeout(LONGEST_WAIT);
        let mut connection = options.connect().await?;
        let emptied: Result<(i64, i64, i64), sqlx::Error> =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await;
        connection.close().await?;
        let (is_busy, _, _) = emptied?;
        if is_busy == 0 {
            Checkpointer { store: self.clone() }.extend_log().await?;
        }
        Ok(is_busy == 0)
    }

    /// The path of SQLite's write-ahead log.
    fn log(&self) -> Option<PathBuf> {
        let mut log = self.file()?.as_os_str().to_owned();
        log.push("-wal");
        Some(log.into())
    }
}

/// Appends real zeros: with a sparse file, each sync would have to allocate blocks. SQLite reads its log up to the
/// first invalid page, and zeros are invalid. Appending never overwrites what SQLite is writing.
fn extend(log: &Path) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut file = File::options().append(true).open(log)?;
    while file.metadata()?.len() < LOG_BYTES {
        file.write_all(&ZEROS)?;
    }
    file.sync_all()
}
