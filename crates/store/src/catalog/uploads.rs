//! Metadata of uploads. Their content is stored as files in the data folder, not in the database: 25 MB in a
//! transaction would delay every journal.

use super::{audit::store_audit, idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::UploadId,
    name::Name,
    owner::Owner,
    time::Timestamp,
    upload::{MAX_OWNER_BYTES, Upload},
};
use uuid::Uuid;

row! {
    struct UploadRow {
        id: Uuid,
        name: String,
        media_type: String,
        bytes: i64,
        created_at: i64,
    }
}

impl TryFrom<UploadRow> for Upload {
    type Error = StoreError;
    fn try_from(row: UploadRow) -> Result<Self> {
        Ok(Self {
            id: UploadId(row.id),
            name: Name::parse(&row.name).map_err(|error| StoreError::unreadable("a name").caused_by(error))?,
            media_type: row.media_type,
            bytes: unsigned(row.bytes)?,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

impl Store {
    /// Adds uploads whose files are on disk: all of them, or none. Fails if the owner's total would exceed the limit. The
    /// result of the attempt is their ids, separated by commas.
    pub async fn add_uploads(
        &self,
        actor: &Actor,
        uploads: &[Upload],
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        let ids = uploads.iter().map(|upload| upload.id.to_string()).collect::<Vec<String>>().join(",");
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, ids, now);
            for upload in uploads {
                store_audit!(
                    transaction,
                    AuditEntry::new(actor, AuditAction::Create, AuditedObject::Upload, upload.id),
                    now
                );
                sqlx::query(
                    "INSERT INTO uploads (id, owner, name, media_type, bytes, created_at) \
                     VALUES ($1, $2, $3, $4, $5, $6)",
                )
                .bind(upload.id.0)
                .bind(owner.as_str())
                .bind(upload.name.as_str())
                .bind(upload.media_type.as_str())
                .bind(signed(upload.bytes))
                .bind(upload.created_at.as_millis())
                .execute(&mut *transaction)
                .await?;
            }
            let total: i64 =
                sqlx::query_scalar("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM uploads WHERE owner = $1")
                    .bind(owner.as_str())
                    .fetch_one(&mut *transaction)
                    .await?;
            if unsigned(total)? > MAX_OWNER_BYTES {
                return Err(StoreError::LimitReached(format!(
                    "your uploads would exceed {} MB in total; delete some first",
                    MAX_OWNER_BYTES / 1_000_000
                )));
            }
        });
        Ok(())
    }

    pub async fn upload(&self, owner: &Owner, id: UploadId) -> Result<Upload> {
        let row: UploadRow = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, name, media_type, bytes, created_at FROM uploads WHERE id = $1 AND owner = $2")
                .bind(id.0)
                .bind(owner.as_str())
                .fetch_one(pool)
                .await
        })?;
        row.try_into()
    }

    /// A page of the owner's uploads, newest first. Their ids are in the order of their times.
    pub async fn uploads(&self, owner: &Owner, before: Option<UploadId>, limit: u32) -> Result<Vec<Upload>> {
        let before = before.map_or(Uuid::max(), |id| id.0);
        let rows: Vec<UploadRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, name, media_type, bytes, created_at FROM uploads
                 WHERE owner = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
            )
            .bind(owner.as_str())
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Upload::try_from).collect()
    }

    pub async fn delete_upload(&self, actor: &Actor, id: UploadId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Upload, id), now);
            let deleted = sqlx::query("DELETE FROM uploads WHERE id = $1 AND owner = $2")
                .bind(id.0)
                .bind(owner.as_str())
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
        });
        Ok(())
    }
}
