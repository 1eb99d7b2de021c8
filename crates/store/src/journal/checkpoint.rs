//! Moves committed pages from SQLite's log into its database file, beside the writer instead of inside its commits, so
//! that the log stays small and is overwritten in place (a file that does not grow syncs several times faster).

use crate::{Error, database::Database, open::Store};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(500);
/// The log is left alone below this many pages of 4 KiB.
const WORTH_IT: i64 = 1000;

pub(crate) struct Checkpointer {
    pub store: Store,
}

impl Checkpointer {
    pub(crate) async fn run(self, cancel: CancellationToken) {
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

    async fn checkpoint(&self) -> Result<(), Error> {
        let Database::Sqlite { read, .. } = self.store.database() else {
            return Ok(());
        };
        let log = self.store.log_bytes() / 4096;
        if log < WORTH_IT {
            return Ok(());
        }
        // PASSIVE never waits for the writer or a reader; what it could not move is moved next time.
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(read).await?;
        Ok(())
    }
}
