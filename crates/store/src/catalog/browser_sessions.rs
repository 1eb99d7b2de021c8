//! Browser sessions: browsers that are signed in with a token. Only the SHA-256 of the cookie is stored (invariant 17).
//! A session ends with its token, when it expires, or when the user signs out.

use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{
    actor::{Actor, Credential},
    ids::{BrowserSessionId, TokenId},
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// How long a browser stays signed in.
pub const BROWSER_SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The maximum number of browser sessions per token; a new one replaces the oldest.
const MAX_BROWSER_SESSIONS: i64 = 50;

impl Store {
    pub async fn create_browser_session(&self, token: TokenId, hash: &[u8; 32]) -> Result<BrowserSessionId> {
        let (id, now) = (BrowserSessionId::generate(), Timestamp::now());
        writing!(self.database(), |transaction| {
            // Expired sessions are deleted here, because the table only grows here.
            sqlx::query("DELETE FROM visits WHERE expires_at <= $1")
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            sqlx::query("INSERT INTO visits (id, token_id, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(id.0)
                .bind(token.0)
                .bind(hash.as_slice())
                .bind(now.as_millis())
                .bind((now + BROWSER_SESSION_LIFETIME).as_millis())
                .execute(&mut *transaction)
                .await?;
            sqlx::query(
                "DELETE FROM visits WHERE token_id = $1 AND id NOT IN \
                 (SELECT id FROM visits WHERE token_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)",
            )
            .bind(token.0)
            .bind(MAX_BROWSER_SESSIONS)
            .execute(&mut *transaction)
            .await?;
        });
        Ok::<_, StoreError>(id)
    }

    /// Returns the actor of a browser session, if it and its token are valid.
    pub async fn actor_for_browser_session(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        let row: Option<(Uuid, Uuid, String)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT v.id, t.id, t.owner FROM visits v JOIN tokens t ON t.id = v.token_id \
                 WHERE v.hash = $1 AND v.expires_at > $2 AND t.revoked_at IS NULL",
            )
            .bind(hash.as_slice())
            .bind(Timestamp::now().as_millis())
            .fetch_optional(pool)
            .await
        })?;
        let actor = |(visit, token, name): (Uuid, Uuid, String)| {
            let credential = Credential::BrowserSession { session: BrowserSessionId(visit), token: TokenId(token) };
            Ok(super::tokens::owner_actor(super::tokens::parse_owner(&name)?, credential))
        };
        row.map(actor).transpose()
    }

    /// Returns whether a browser session is still valid. Used by open streams.
    pub async fn is_browser_session_valid(&self, id: BrowserSessionId) -> Result<bool> {
        let found: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT v.created_at FROM visits v JOIN tokens t ON t.id = v.token_id \
                 WHERE v.id = $1 AND v.expires_at > $2 AND t.revoked_at IS NULL",
            )
            .bind(id.0)
            .bind(Timestamp::now().as_millis())
            .fetch_optional(pool)
            .await
        })?;
        Ok(found.is_some())
    }

    /// Deletes a browser session. Succeeds if it does not exist.
    pub async fn delete_browser_session(&self, hash: &[u8; 32]) -> Result<()> {
        writing!(self.database(), |transaction| {
            sqlx::query("DELETE FROM visits WHERE hash = $1").bind(hash.as_slice()).execute(&mut *transaction).await?;
        });
        Ok::<(), StoreError>(())
    }
}
