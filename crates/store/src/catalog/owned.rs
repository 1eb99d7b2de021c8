//! What the writes of several objects have in common: a row that belongs to an owner must exist.

use super::{audit::store_audit, idempotency::store_key};
use crate::{IdempotentRequest, Store, StoreError, database::writing, error::Result};
use domain::{audit::AuditEntry, time::Timestamp};
use uuid::Uuid;

impl Store {
    /// Sets a time column of one row to now: `$1` is the id, `$2` the owner, `$3` the time.
    pub(super) async fn set_time(
        &self,
        statement: &'static str,
        id: Uuid,
        entry: AuditEntry,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&entry.actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let changed = sqlx::query(statement).bind(id).bind(owner.as_str()).bind(now.as_millis());
            must_exist(changed.execute(&mut *transaction).await?.rows_affected())?;
            store_audit!(transaction, entry, now);
        });
        Ok(())
    }
}

/// Fails if a statement that changes one row has changed none.
pub(super) fn must_exist(rows_affected: u64) -> Result<()> {
    if rows_affected == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}
