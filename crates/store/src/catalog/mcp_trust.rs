//! Trusted content of folders that agents can write, such as a `.mcp.json` or skills: a key and the digest of the content. Changed
//! content is not trusted.

use super::audit::store_audit;
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::RoomId,
    owner::Owner,
    time::Timestamp,
};

const DELETE: &str = "DELETE FROM mcp_trust WHERE owner = $1 AND folder = $2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedContent {
    pub digest: [u8; 32],
    pub trusted_at: Timestamp,
}

impl Store {
    /// Returns the trusted content of this key, the bytes of an OS path.
    pub async fn trusted_content(&self, owner: &Owner, folder: &[u8]) -> Result<Option<TrustedContent>> {
        let row: Option<(Vec<u8>, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT digest, trusted_at FROM mcp_trust WHERE owner = $1 AND folder = $2")
                .bind(owner.as_str())
                .bind(folder)
                .fetch_optional(pool)
                .await
        })?;
        let content = |(digest, trusted_at): (Vec<u8>, i64)| {
            let digest = digest.try_into().map_err(|_| StoreError::unreadable("a digest has the wrong length"))?;
            Ok(TrustedContent { digest, trusted_at: Timestamp::from_millis(trusted_at) })
        };
        row.map(content).transpose()
    }

    /// Trusts content, replacing what was trusted under its key.
    pub async fn trust_content(
        &self,
        actor: &Actor,
        room: RoomId,
        folder: &[u8],
        digest: &[u8; 32],
        object: AuditedObject,
    ) -> Result<TrustedContent> {
        let (owner, trusted_at) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            sqlx::query(
                "INSERT INTO mcp_trust (owner, folder, digest, trusted_at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (owner, folder) DO UPDATE SET digest = excluded.digest, trusted_at = excluded.trusted_at",
            )
            .bind(owner.as_str())
            .bind(folder)
            .bind(digest.as_slice())
            .bind(trusted_at.as_millis())
            .execute(&mut *transaction)
            .await?;
            let entry = AuditEntry::new(actor, AuditAction::Trust, object, room).in_room(room);
            store_audit!(transaction, entry, trusted_at);
        });
        Ok::<_, StoreError>(TrustedContent { digest: *digest, trusted_at })
    }

    /// Removes trust. Succeeds if nothing was trusted.
    pub async fn distrust_content(
        &self,
        actor: &Actor,
        room: RoomId,
        folder: &[u8],
        object: AuditedObject,
    ) -> Result<()> {
        let owner = &actor.workspace;
        writing!(self.database(), |transaction| {
            sqlx::query(DELETE).bind(owner.as_str()).bind(folder).execute(&mut *transaction).await?;
            let entry = AuditEntry::new(actor, AuditAction::Distrust, object, room).in_room(room);
            store_audit!(transaction, entry, Timestamp::now());
        });
        Ok::<(), StoreError>(())
    }

    /// Removes the trust in content of a room or project that is erased.
    pub async fn erase_trust(&self, owner: &Owner, folder: &[u8]) -> Result<()> {
        writing!(self.database(), |transaction| {
            sqlx::query(DELETE).bind(owner.as_str()).bind(folder).execute(&mut *transaction).await?;
        });
        Ok::<(), StoreError>(())
    }
}
