//! Visits: browsers that are signed in with a token. Only the SHA-256 of a visit's cookie is stored (invariant 17); it ends
//! with its token, after a while, or when the person leaves.

use crate::{
    Error, Store,
    database::{reading, writing},
    error::Result,
};
use domain::{
    ids::{TokenId, VisitId},
    owner::Principal,
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// How long a browser stays signed in.
pub const VISIT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Browsers per token; a new one takes the place of the oldest.
const MAX_VISITS: i64 = 50;

impl Store {
    pub async fn begin_visit(&self, token: TokenId, hash: &[u8; 32]) -> Result<VisitId> {
        let (id, now) = (VisitId::generate(), Timestamp::now());
        writing!(self.database(), |transaction| {
            // What grows with use is trimmed where it grows.
            sqlx::query("DELETE FROM visits WHERE expires_at <= $1")
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            sqlx::query("INSERT INTO visits (id, token_id, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(id.0)
                .bind(token.0)
                .bind(hash.as_slice())
                .bind(now.as_millis())
                .bind((now + VISIT).as_millis())
                .execute(&mut *transaction)
                .await?;
            sqlx::query(
                "DELETE FROM visits WHERE token_id = $1 AND id NOT IN \
                 (SELECT id FROM visits WHERE token_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)",
            )
            .bind(token.0)
            .bind(MAX_VISITS)
            .execute(&mut *transaction)
            .await?;
        });
        Ok::<_, Error>(id)
    }

    /// Whose visit this is, if it is one and its token is still good.
    pub async fn visitor(&self, hash: &[u8; 32]) -> Result<Option<Principal>> {
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
        let principal = |(visit, token, name): (Uuid, Uuid, String)| {
            let owner = super::tokens::owner(&name)?;
            Ok(Principal { owner, token: Some(TokenId(token)), visit: Some(VisitId(visit)) })
        };
        row.map(principal).transpose()
    }

    /// Whether a visit that was good when a stream began still is.
    pub async fn visit_is_good(&self, id: VisitId) -> Result<bool> {
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

    /// A visit that is over already ends as well.
    pub async fn end_visit(&self, hash: &[u8; 32]) -> Result<()> {
        writing!(self.database(), |transaction| {
            sqlx::query("DELETE FROM visits WHERE hash = $1").bind(hash.as_slice()).execute(&mut *transaction).await?;
        });
        Ok::<(), Error>(())
    }
}
