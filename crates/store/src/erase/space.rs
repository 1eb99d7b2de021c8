//! Returns the space of erased rows to the file system. PostgreSQL does it by itself: autovacuum.

use crate::{Store, database::Database, error::Result};

/// Pages that one step moves and frees: every commit waits for it.
const PAGES_PER_STEP: i64 = 256;
const VACUUM_STEP: &str = "PRAGMA incremental_vacuum(256)";

impl Store {
    /// Frees some pages at the end of SQLite's file. Returns whether there are more. A file that was created by an earlier
    /// version keeps its free pages for new rows; a backup and its restore make it a file that shrinks.
    pub async fn free_space(&self) -> Result<bool> {
        let Database::Sqlite { write, .. } = self.database() else { return Ok(false) };
        let mut connection = write.acquire().await?;
        let is_incremental: i64 = sqlx::query_scalar("PRAGMA auto_vacuum").fetch_one(&mut *connection).await?;
        let free: i64 = sqlx::query_scalar("PRAGMA freelist_count").fetch_one(&mut *connection).await?;
        if is_incremental != 2 || free == 0 {
            return Ok(false);
        }
        sqlx::query(VACUUM_STEP).execute(&mut *connection).await?;
        Ok(free > PAGES_PER_STEP)
    }
}
