//! Bearer tokens. Only their SHA-256 is stored (invariant 17).

use crate::{
    Error, Store,
    database::{reading, writing},
    error::Result,
};
use domain::{
    ids::TokenId,
    name::Name,
    owner::{Owner, Principal},
    time::Timestamp,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    pub owner: Owner,
    pub label: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    owner: String,
    label: String,
    created_at: i64,
    revoked_at: Option<i64>,
}

fn owner(text: &str) -> Result<Owner> {
    Name::parse(text).map(Owner::new).map_err(|error| Error::Unreadable(error.to_string()))
}

impl Store {
    pub async fn create_token(&self, owner: &Owner, label: &Name, hash: &[u8; 32]) -> Result<TokenId> {
        let id = TokenId::generate();
        writing!(self.database(), |transaction| {
            sqlx::query("INSERT INTO tokens (id, owner, label, hash, created_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(id.0)
                .bind(owner.as_str())
                .bind(label.as_str())
                .bind(hash.as_slice())
                .bind(Timestamp::now().as_millis())
                .execute(&mut *transaction)
                .await?;
        });
        Ok(id)
    }

    /// For the operator, who may see every owner's.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let rows: Vec<Row> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, owner, label, created_at, revoked_at FROM tokens ORDER BY id")
                .fetch_all(pool)
                .await
        })?;
        let record = |row: Row| {
            Ok(TokenRecord {
                id: TokenId(row.id),
                owner: owner(&row.owner)?,
                label: row.label,
                created_at: Timestamp::from_millis(row.created_at),
                revoked_at: row.revoked_at.map(Timestamp::from_millis),
            })
        };
        rows.into_iter().map(record).collect()
    }

    pub async fn revoke_token(&self, id: TokenId) -> Result<()> {
        writing!(self.database(), |transaction| {
            let changed = sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
                .bind(id.0)
                .bind(Timestamp::now().as_millis())
                .execute(&mut *transaction)
                .await?;
            if changed.rows_affected() == 0 {
                return Err(Error::NotFound);
            }
        });
        Ok(())
    }

    /// Whose token this is, if it is one and still good.
    pub async fn principal_of(&self, hash: &[u8; 32]) -> Result<Option<Principal>> {
        let row: Option<(Uuid, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, owner FROM tokens WHERE hash = $1 AND revoked_at IS NULL")
                .bind(hash.as_slice())
                .fetch_optional(pool)
                .await
        })?;
        row.map(|(id, name)| Ok(Principal { owner: owner(&name)?, token: Some(TokenId(id)) })).transpose()
    }

    /// Whether a token that was good when a stream began still is.
    pub async fn token_is_good(&self, id: TokenId) -> Result<bool> {
        let created: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT created_at FROM tokens WHERE id = $1 AND revoked_at IS NULL")
                .bind(id.0)
                .fetch_optional(pool)
                .await
        })?;
        Ok(created.is_some())
    }

    /// Accounts are on as soon as a token was ever made: revoking the last one locks the doors, it does not open them.
    pub async fn accounts_exist(&self) -> Result<bool> {
        let any: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT created_at FROM tokens LIMIT 1").fetch_optional(pool).await
        })?;
        Ok(any.is_some())
    }
}
