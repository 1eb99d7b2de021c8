//! Bearer tokens. Only their SHA-256 is stored (invariant 17).

use super::{idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::{Actor, Credential},
    ids::TokenId,
    name::Name,
    owner::Owner,
    permission::Role,
    time::Timestamp,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    pub owner: Owner,
    pub label: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

row! {
    struct TokenRow {
        id: Uuid,
        owner: String,
        label: String,
        created_at: i64,
        last_used_at: Option<i64>,
        revoked_at: Option<i64>,
    }
}

impl TryFrom<TokenRow> for TokenRecord {
    type Error = StoreError;
    fn try_from(row: TokenRow) -> Result<Self> {
        Ok(Self {
            id: TokenId(row.id),
            owner: parse_owner(&row.owner)?,
            label: row.label,
            created_at: Timestamp::from_millis(row.created_at),
            last_used_at: row.last_used_at.map(Timestamp::from_millis),
            revoked_at: row.revoked_at.map(Timestamp::from_millis),
        })
    }
}

/// The maximum number of valid tokens per owner.
pub const MAX_TOKENS: i64 = 100;

/// The only user of a workspace.
pub(super) fn owner_actor(workspace: Owner, credential: Credential) -> Actor {
    Actor { workspace, user: None, role: Role::Owner, credential }
}

pub(super) fn parse_owner(text: &str) -> Result<Owner> {
    Name::parse(text).map(Owner::new).map_err(|error| StoreError::Unreadable(error.to_string()))
}

impl Store {
    /// Creates a token for any owner. Only for the operator.
    pub async fn create_token(&self, owner: &Owner, label: &Name, hash: &[u8; 32]) -> Result<TokenId> {
        self.add_token(owner, label, hash, None).await
    }

    /// Creates a token for the owner, up to the limit.
    pub async fn add_token(
        &self,
        owner: &Owner,
        label: &Name,
        hash: &[u8; 32],
        attempt: Option<&IdempotentRequest>,
    ) -> Result<TokenId> {
        let (id, now) = (TokenId::generate(), Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            sqlx::query("INSERT INTO tokens (id, owner, label, hash, created_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(id.0)
                .bind(owner.as_str())
                .bind(label.as_str())
                .bind(hash.as_slice())
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            let valid: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM tokens WHERE owner = $1 AND revoked_at IS NULL")
                .bind(owner.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            if valid > MAX_TOKENS {
                return Err(StoreError::LimitReached(format!(
                    "the limit of {MAX_TOKENS} tokens is reached; revoke one first"
                )));
            }
        });
        Ok(id)
    }

    /// Returns the tokens of all owners. Only for the operator.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let rows: Vec<TokenRow> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, owner, label, created_at, last_used_at, revoked_at FROM tokens ORDER BY id")
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(TokenRecord::try_from).collect()
    }

    /// Returns the valid tokens of one owner, oldest first.
    pub async fn owner_tokens(&self, owner: &Owner) -> Result<Vec<TokenRecord>> {
        let rows: Vec<TokenRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, owner, label, created_at, last_used_at, revoked_at FROM tokens \
                 WHERE owner = $1 AND revoked_at IS NULL ORDER BY id",
            )
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(TokenRecord::try_from).collect()
    }

    /// Revokes any token and signs out its browser sessions. Only for the operator.
    pub async fn revoke_token(&self, id: TokenId) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            let changed = sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
                .bind(id.0)
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            must_exist(changed.rows_affected())?;
        });
        Ok(())
    }

    /// Revokes one of the owner's tokens.
    pub async fn revoke_own_token(
        &self,
        owner: &Owner,
        id: TokenId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let statement = "UPDATE tokens SET revoked_at = $3 WHERE id = $1 AND owner = $2 AND revoked_at IS NULL";
        self.set_time(statement, owner, id.0, attempt).await
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

    /// Returns the actor of a token, if the token is valid.
    pub async fn actor_for_token(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        let row: Option<(Uuid, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, owner FROM tokens WHERE hash = $1 AND revoked_at IS NULL")
                .bind(hash.as_slice())
                .fetch_optional(pool)
                .await
        })?;
        row.map(|(id, name)| Ok(owner_actor(parse_owner(&name)?, Credential::Token(TokenId(id))))).transpose()
    }

    /// Returns whether a token is still valid. Used by open streams.
    pub async fn is_token_valid(&self, id: TokenId) -> Result<bool> {
        let created: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT created_at FROM tokens WHERE id = $1 AND revoked_at IS NULL")
                .bind(id.0)
                .fetch_optional(pool)
                .await
        })?;
        Ok(created.is_some())
    }

    /// Returns whether a token was ever created. Revoking the last token must not turn authentication off.
    pub async fn accounts_exist(&self) -> Result<bool> {
        let any: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT created_at FROM tokens LIMIT 1").fetch_optional(pool).await
        })?;
        Ok(any.is_some())
    }
}
