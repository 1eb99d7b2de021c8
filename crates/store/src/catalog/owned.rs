//! What the writes of several objects have in common: a row that belongs to an owner must exist.

use super::{audit::store_audit, idempotency::store_key};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::writing,
    erase::{ErasedObject, store_erasure},
    error::Result,
};
use domain::{audit::AuditEntry, time::Timestamp};
use uuid::Uuid;

/// How an object is deleted: `$1` is the id, `$2` the owner, `$3` the time.
pub(super) struct Delete {
    pub statement: &'static str,
    pub object: ErasedObject,
    /// Whether it is erased without the grace period.
    pub purge: bool,
}

impl Store {
    /// Marks an object as deleted; the eraser erases it later.
    pub(super) async fn mark_deleted(
        &self,
        delete: Delete,
        id: Uuid,
        entry: AuditEntry,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&entry.actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let changed = sqlx::query(delete.statement).bind(id).bind(owner.as_str()).bind(now.as_millis());
            must_exist(changed.execute(&mut *transaction).await?.rows_affected())?;
            store_erasure!(transaction, delete.object, owner, delete.purge, now);
            store_audit!(transaction, entry, now);
        });
        self.delete_notify().notify_one();
        Ok(())
    }
}

/// Fails if a statement that changes one row has changed none.
pub(super) fn must_exist(rows_affected: u64) -> Result<()> {
    if rows_affected == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}
