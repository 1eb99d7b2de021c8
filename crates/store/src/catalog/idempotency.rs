//! Idempotency keys: repeating a request with the same key returns the first result; the same key with another body is
//! rejected (invariant 7). A key is stored in the transaction of its write, so that a crash cannot separate them.

use crate::{
    Store, StoreError,
    commit::{ChangeContext, IdempotentRequest, Refusal, Statement},
    database::{reading, writing},
    error::Result,
};
use domain::{owner::Owner, time::Timestamp};
use std::time::Duration;

/// The result of an earlier request with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierResult {
    /// Whether the earlier request was the same.
    pub same_request: bool,
    /// The id of the created object.
    pub result: String,
}

/// How long a key is valid.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Stores the key with the commit, unless it was used before.
pub(crate) fn insert(context: &ChangeContext, owner: &Owner, attempt: &IdempotentRequest, result: &str) -> Statement {
    Statement::new(
        "INSERT INTO idempotency (owner, key, fingerprint, result, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (owner, key) DO NOTHING",
    )
    .with(owner.as_str())
    .with(attempt.key.as_str())
    .with(attempt.fingerprint.as_slice())
    .with(result)
    .with(context.now.as_millis())
    .must_change_or(Refusal::KeyUsed)
}

/// Stores the key inside a transaction of the catalog, or returns `KeyUsed`.
macro_rules! store_key {
    ($transaction:ident, $owner:expr, $attempt:expr, $result:expr, $now:expr) => {
        if let Some(attempt) = $attempt {
            let stored = sqlx::query(
                "INSERT INTO idempotency (owner, key, fingerprint, result, created_at) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (owner, key) DO NOTHING",
            )
            .bind($owner.as_str())
            .bind(attempt.key.as_str())
            .bind(attempt.fingerprint.as_slice())
            .bind($result.to_string())
            .bind($now.as_millis())
            .execute(&mut *$transaction)
            .await?;
            if stored.rows_affected() == 0 {
                return Err($crate::StoreError::KeyUsed);
            }
        }
    };
}
pub(crate) use store_key;

impl Store {
    /// Returns the result of an earlier request with the same key, if there is one.
    pub async fn earlier_result(&self, owner: &Owner, attempt: &IdempotentRequest) -> Result<Option<EarlierResult>> {
        let row: Option<(Vec<u8>, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT fingerprint, result FROM idempotency WHERE owner = $1 AND key = $2")
                .bind(owner.as_str())
                .bind(attempt.key.as_str())
                .fetch_optional(pool)
                .await
        })?;
        Ok(row.map(|(fingerprint, result)| EarlierResult { same_request: fingerprint == attempt.fingerprint, result }))
    }

    /// Deletes keys that are older than a day.
    pub async fn delete_expired_keys(&self) -> Result<()> {
        let before = Timestamp::now().as_millis() - i64::try_from(KEY_LIFETIME.as_millis()).unwrap_or(i64::MAX);
        writing!(self.database(), |transaction| {
            sqlx::query("DELETE FROM idempotency WHERE created_at < $1")
                .bind(before)
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<(), StoreError>(())
    }
}
