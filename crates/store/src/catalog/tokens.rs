//! Bearer tokens. Only their SHA-256 is stored (invariant 17).

use super::{
    audit::store_audit,
    idempotency::store_key,
    members::{ActorRow, Membership, ensure_member, parse_scopes},
    owned::must_exist,
};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::{Actor, Credential},
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::TokenId,
    name::Name,
    owner::Owner,
    permission::Role,
    scope::Scopes,
    time::Timestamp,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    /// The workspace in which the token acts.
    pub owner: Owner,
    /// The name of the user as whom it acts.
    pub user: String,
    pub label: String,
    pub created_at: Timestamp,
    pub scopes: Scopes,
    /// `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The token with which it was created, and with which it is revoked.
    pub parent: Option<TokenId>,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// A token to create. The secret itself never comes here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for, as people see it.
    pub label: Name,
    /// The SHA-256 of the secret.
    pub hash: [u8; 32],
    pub scopes: Scopes,
    /// `None`: never.
    pub expires_at: Option<Timestamp>,
}

impl NewToken {
    /// A token with every scope that does not expire.
    pub fn unlimited(label: Name, hash: [u8; 32]) -> Self {
        Self { label, hash, scopes: Scopes::ALL, expires_at: None }
    }
}

row! {
    struct TokenRow {
        id: Uuid,
        owner: String,
        user_name: String,
        label: String,
        created_at: i64,
        scopes: String,
        expires_at: Option<i64>,
        parent_id: Option<Uuid>,
        last_used_at: Option<i64>,
        revoked_at: Option<i64>,
    }
}

row! {
    struct TokenActorRow {
        ..actor: ActorRow,
        id: Uuid,
    }
}

impl TryFrom<TokenRow> for TokenRecord {
    type Error = StoreError;
    fn try_from(row: TokenRow) -> Result<Self> {
        Ok(Self {
            id: TokenId(row.id),
            owner: parse_owner(&row.owner)?,
            user: row.user_name,
            label: row.label,
            created_at: Timestamp::from_millis(row.created_at),
            scopes: parse_scopes(&row.scopes)?,
            expires_at: row.expires_at.map(Timestamp::from_millis),
            parent: row.parent_id.map(TokenId),
            last_used_at: row.last_used_at.map(Timestamp::from_millis),
            revoked_at: row.revoked_at.map(Timestamp::from_millis),
        })
    }
}

/// The maximum number of valid tokens per owner.
pub const MAX_TOKENS: i64 = 100;

pub(super) fn parse_owner(text: &str) -> Result<Owner> {
    Name::parse(text).map(Owner::new).map_err(|error| StoreError::unreadable("a name").caused_by(error))
}

/// All columns of a token with the name of its user.
macro_rules! select_tokens {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, t.owner, u.name AS user_name, t.label, t.created_at, t.scopes, t.expires_at, t.parent_id, ",
            "t.last_used_at, t.revoked_at ",
            "FROM tokens t JOIN users u ON u.id = t.user_id ",
            $rest
        )
    };
}

const INSERT: &str = "INSERT INTO tokens (id, owner, user_id, label, hash, created_at, scopes, expires_at, parent_id) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// A token and all that were created with it, by each other.
const REVOKE: &str = "UPDATE tokens SET revoked_at = $2 WHERE revoked_at IS NULL AND id IN (\
                      WITH RECURSIVE family (id) AS (SELECT id FROM tokens WHERE id = $1 \
                      UNION SELECT t.id FROM tokens t JOIN family f ON t.parent_id = f.id) SELECT id FROM family)";

/// Stores a token, and fails if its workspace has too many. Expired ones do not count.
macro_rules! insert_token {
    ($transaction:ident, $id:expr, $owner:expr, $user:expr, $token:expr, $parent:expr, $now:expr) => {
        sqlx::query(INSERT)
            .bind($id.0)
            .bind($owner.as_str())
            .bind($user.0)
            .bind($token.label.as_str())
            .bind($token.hash.as_slice())
            .bind($now.as_millis())
            .bind($token.scopes.to_string())
            .bind($token.expires_at.map(Timestamp::as_millis))
            .bind($parent)
            .execute(&mut *$transaction)
            .await?;
        let valid: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM tokens WHERE owner = $1 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $2)",
        )
        .bind($owner.as_str())
        .bind($now.as_millis())
        .fetch_one(&mut *$transaction)
        .await?;
        if valid > MAX_TOKENS {
            return Err(StoreError::LimitReached(format!(
                "the limit of {MAX_TOKENS} tokens is reached; revoke one first"
            )));
        }
    };
}

impl Store {
    /// Creates a token for any user; creates the user and the workspace if needed. Only for the operator.
    pub async fn create_token(&self, actor: &Actor, member: &Membership, token: &NewToken) -> Result<TokenId> {
        let (id, now) = (TokenId::generate(), Timestamp::now());
        writing!(self.database(), |transaction| {
            let user = ensure_member!(transaction, member, now);
            insert_token!(transaction, id, member.workspace, user, token, None::<Uuid>, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Create, AuditedObject::Token, id), now);
        });
        Ok(id)
    }

    /// Creates a token for the actor's own user, with the actor's role. It is revoked with the actor's token, and does not
    /// outlive it. Returns when it expires, too.
    pub async fn add_token(
        &self,
        actor: &Actor,
        token: &NewToken,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(TokenId, Option<Timestamp>)> {
        let (owner, user) = (&actor.workspace, actor.user_id().ok_or(StoreError::NotFound)?);
        let (id, now) = (TokenId::generate(), Timestamp::now());
        let (parent, mut token) = (actor.credential.token().map(|parent| parent.0), token.clone());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            if let Some(parent) = parent {
                let limits: Option<(Option<i64>, Option<i64>)> =
                    sqlx::query_as("SELECT expires_at, revoked_at FROM tokens WHERE id = $1")
                        .bind(parent)
                        .fetch_optional(&mut *transaction)
                        .await?;
                let (ends, revoked) = limits.unwrap_or_default();
                // Revoked since the request was authenticated: a child stored now would survive it.
                must_exist(u64::from(revoked.is_none()))?;
                token.expires_at = [token.expires_at, ends.map(Timestamp::from_millis)].into_iter().flatten().min();
            }
            insert_token!(transaction, id, owner, user, token, parent, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Create, AuditedObject::Token, id), now);
        });
        Ok((id, token.expires_at))
    }

    /// Returns the tokens of all workspaces. Only for the operator.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let rows: Vec<TokenRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_tokens!("ORDER BY t.id")).fetch_all(pool).await
        })?;
        rows.into_iter().map(TokenRecord::try_from).collect()
    }

    /// Returns the valid tokens of the actor's own user in this workspace, oldest first.
    pub async fn own_tokens(&self, actor: &Actor) -> Result<Vec<TokenRecord>> {
        let rows: Vec<TokenRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_tokens!(
                "WHERE t.owner = $1 AND t.user_id = $2 AND t.revoked_at IS NULL \
                 AND (t.expires_at IS NULL OR t.expires_at > $3) ORDER BY t.id"
            ))
            .bind(actor.workspace.as_str())
            .bind(actor.user_id().map(|user| user.0))
            .bind(Timestamp::now().as_millis())
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(TokenRecord::try_from).collect()
    }

    /// Revokes any token with those that were created with it, and signs out their browser sessions. Only for the operator.
    pub async fn revoke_token(&self, actor: &Actor, id: TokenId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let changed = sqlx::query(REVOKE).bind(id.0).bind(now.as_millis()).execute(&mut *transaction).await?;
            must_exist(changed.rows_affected())?;
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Revoke, AuditedObject::Token, id), now);
        });
        Ok(())
    }

    /// Revokes a token of the actor's own user, with those that were created with it.
    pub async fn revoke_own_token(
        &self,
        actor: &Actor,
        id: TokenId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let own: Option<i64> =
                sqlx::query_scalar("SELECT created_at FROM tokens WHERE id = $1 AND owner = $2 AND user_id = $3")
                    .bind(id.0)
                    .bind(owner.as_str())
                    .bind(actor.user_id().map(|user| user.0))
                    .fetch_optional(&mut *transaction)
                    .await?;
            must_exist(u64::from(own.is_some()))?;
            let changed = sqlx::query(REVOKE).bind(id.0).bind(now.as_millis()).execute(&mut *transaction).await?;
            must_exist(changed.rows_affected())?;
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Revoke, AuditedObject::Token, id), now);
        });
        Ok(())
    }

    pub async fn record_token_use(&self, id: TokenId) -> Result<()> {
        writing!(self.database(), |transaction| {
            sqlx::query("UPDATE tokens SET last_used_at = $2 WHERE id = $1")
                .bind(id.0)
                .bind(Timestamp::now().as_millis())
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<(), StoreError>(())
    }

    /// Returns the actor of a token, if the token is valid and its user is a member of the workspace.
    pub async fn actor_for_token(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        let row: Option<TokenActorRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT t.id, t.owner AS workspace, u.id AS user_id, u.name AS user_name, m.role, t.scopes FROM tokens t \
                 JOIN users u ON u.id = t.user_id \
                 JOIN members m ON m.workspace = t.owner AND m.user_id = t.user_id \
                 WHERE t.hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)",
            )
            .bind(hash.as_slice())
            .bind(Timestamp::now().as_millis())
            .fetch_optional(pool)
            .await
        })?;
        row.map(|TokenActorRow { actor, id }| actor.actor(Credential::Token(TokenId(id)))).transpose()
    }

    /// Returns the current role of a valid token. Used by open streams.
    pub async fn role_of_token(&self, id: TokenId) -> Result<Option<Role>> {
        self.current_role(
            "SELECT m.role FROM tokens t JOIN members m ON m.workspace = t.owner AND m.user_id = t.user_id \
             WHERE t.id = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)",
            id.0,
        )
        .await
    }
}
