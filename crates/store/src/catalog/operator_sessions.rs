//! Browser sessions of the operator: browsers that signed in with the local key or a sign-in link. They belong to no
//! token, and end when they expire, on sign-out, or when the local key changes. Only the SHA-256 of the cookie and of the
//! key is stored (invariant 17).

use super::browser_sessions::store_session;
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{actor::Actor, ids::BrowserSessionId, time::Timestamp};
use uuid::Uuid;

/// The maximum number of browser sessions of the operator; a new one replaces the oldest.
const MAX_OPERATOR_SESSIONS: i64 = 50;

impl Store {
    /// Signs a browser in as the operator. `key_hash` is the hash of the local key.
    pub async fn create_operator_session(
        &self,
        actor: &Actor,
        key_hash: &[u8; 32],
        hash: &[u8; 32],
    ) -> Result<BrowserSessionId> {
        let id = writing!(self.database(), |transaction| {
            let id = store_session!(transaction, actor, "operator_sessions", "key_hash", (key_hash.as_slice(), hash));
            sqlx::query(
                "DELETE FROM operator_sessions WHERE id NOT IN \
                 (SELECT id FROM operator_sessions ORDER BY created_at DESC, id DESC LIMIT $1)",
            )
            .bind(MAX_OPERATOR_SESSIONS)
            .execute(&mut *transaction)
            .await?;
            id
        });
        Ok::<_, StoreError>(id)
    }

    /// Returns the operator's session whose cookie has this hash, if it is valid with this key.
    pub async fn operator_session(&self, key_hash: &[u8; 32], hash: &[u8; 32]) -> Result<Option<BrowserSessionId>> {
        let id: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT id FROM operator_sessions WHERE hash = $1 AND key_hash = $2 AND expires_at > $3")
                .bind(hash.as_slice())
                .bind(key_hash.as_slice())
                .bind(Timestamp::now().as_millis())
                .fetch_optional(pool)
                .await
        })?;
        Ok(id.map(BrowserSessionId))
    }

    /// Returns whether a session is still valid with this key. Used by open streams.
    pub async fn has_operator_session(&self, key_hash: &[u8; 32], id: BrowserSessionId) -> Result<bool> {
        let found: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT expires_at FROM operator_sessions WHERE id = $1 AND key_hash = $2 AND expires_at > $3",
            )
            .bind(id.0)
            .bind(key_hash.as_slice())
            .bind(Timestamp::now().as_millis())
            .fetch_optional(pool)
            .await
        })?;
        Ok(found.is_some())
    }
}
