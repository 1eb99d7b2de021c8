//! Browser sessions: browsers that are signed in with a token. Only the SHA-256 of the cookie is stored (invariant 17).
//! A session ends with its token, when it expires, or when the user signs out.

use super::{audit::store_audit, members::ActorRow};
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::{Actor, Credential},
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{BrowserSessionId, TokenId},
    permission::Role,
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// How long a browser stays signed in.
pub const BROWSER_SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The maximum number of browser sessions per token; a new one replaces the oldest.
const MAX_BROWSER_SESSIONS: i64 = 50;

row! {
    struct SessionActorRow {
        ..actor: ActorRow,
        id: Uuid,
        token_id: Uuid,
    }
}

/// Stores a session that belongs to a token or to the local key, and its audit entry. Evaluates to its id.
macro_rules! store_session {
    ($transaction:ident, $actor:expr, $table:literal, $column:literal, ($belongs_to:expr, $hash:expr)) => {{
        let (id, now) = (domain::ids::BrowserSessionId::generate(), domain::time::Timestamp::now());
        // Expired sessions are deleted here, because the table only grows here. Servers on one database may have different
        // keys, so sessions of another key stay until they expire.
        sqlx::query(concat!("DELETE FROM ", $table, " WHERE expires_at <= $1"))
            .bind(now.as_millis())
            .execute(&mut *$transaction)
            .await?;
        const INSERT: &str = concat!(
            "INSERT INTO ",
            $table,
            " (id, ",
            $column,
            ", hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)"
        );
        sqlx::query(INSERT)
            .bind(id.0)
            .bind($belongs_to)
            .bind($hash.as_slice())
            .bind(now.as_millis())
            .bind((now + $crate::catalog::browser_sessions::BROWSER_SESSION_LIFETIME).as_millis())
            .execute(&mut *$transaction)
            .await?;
        let (action, object) = (domain::audit::AuditAction::SignIn, domain::audit::AuditedObject::BrowserSession);
        let entry = domain::audit::AuditEntry::new($actor, action, object, id);
        $crate::catalog::audit::store_audit!($transaction, entry, now);
        id
    }};
}

pub(super) use store_session;

impl Store {
    /// Signs a browser in with the token of the actor.
    pub async fn create_browser_session(
        &self,
        actor: &Actor,
        token: TokenId,
        hash: &[u8; 32],
    ) -> Result<BrowserSessionId> {
        let id = writing!(self.database(), |transaction| {
            let id = store_session!(transaction, actor, "visits", "token_id", (token.0, hash));
            sqlx::query(
                "DELETE FROM visits WHERE token_id = $1 AND id NOT IN \
                 (SELECT id FROM visits WHERE token_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)",
            )
            .bind(token.0)
            .bind(MAX_BROWSER_SESSIONS)
            .execute(&mut *transaction)
            .await?;
            id
        });
        Ok::<_, StoreError>(id)
    }

    /// Returns the actor of a browser session, if the session and its token are valid.
    pub async fn actor_for_browser_session(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        let row: Option<SessionActorRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT v.id, v.token_id, t.owner AS workspace, u.id AS user_id, u.name AS user_name, m.role, t.scopes \
                 FROM visits v JOIN tokens t ON t.id = v.token_id JOIN users u ON u.id = t.user_id \
                 JOIN members m ON m.workspace = t.owner AND m.user_id = t.user_id \
                 WHERE v.hash = $1 AND v.expires_at > $2 AND t.revoked_at IS NULL \
                 AND (t.expires_at IS NULL OR t.expires_at > $2)",
            )
            .bind(hash.as_slice())
            .bind(Timestamp::now().as_millis())
            .fetch_optional(pool)
            .await
        })?;
        let actor = |SessionActorRow { actor, id, token_id }| {
            actor.actor(Credential::BrowserSession { session: BrowserSessionId(id), token: Some(TokenId(token_id)) })
        };
        row.map(actor).transpose()
    }

    /// Returns the current role of a valid browser session. Used by open streams.
    pub async fn role_of_browser_session(&self, id: BrowserSessionId) -> Result<Option<Role>> {
        self.current_role(
            "SELECT m.role FROM visits v JOIN tokens t ON t.id = v.token_id \
             JOIN members m ON m.workspace = t.owner AND m.user_id = t.user_id \
             WHERE v.id = $1 AND v.expires_at > $2 AND t.revoked_at IS NULL \
             AND (t.expires_at IS NULL OR t.expires_at > $2)",
            id.0,
        )
        .await
    }

    /// Deletes a browser session, of a token or of the operator. Succeeds if it does not exist.
    pub async fn delete_browser_session(&self, actor: &Actor, hash: &[u8; 32]) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            let of_token: Option<Uuid> = sqlx::query_scalar("DELETE FROM visits WHERE hash = $1 RETURNING id")
                .bind(hash.as_slice())
                .fetch_optional(&mut *transaction)
                .await?;
            let of_operator: Option<Uuid> =
                sqlx::query_scalar("DELETE FROM operator_sessions WHERE hash = $1 RETURNING id")
                    .bind(hash.as_slice())
                    .fetch_optional(&mut *transaction)
                    .await?;
            for id in [of_token, of_operator].into_iter().flatten() {
                let entry = AuditEntry::new(actor, AuditAction::SignOut, AuditedObject::BrowserSession, id);
                store_audit!(transaction, entry, now);
            }
        });
        Ok::<(), StoreError>(())
    }
}
