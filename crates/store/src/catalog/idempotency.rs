//! Idempotency keys: the same key twice gives one result, the same key with another body is refused (invariant 7). A
//! key is stored in the transaction of the write it belongs to, so that a crash cannot leave one without the other.

use crate::{
    Error, Store,
    database::{reading, writing},
    error::Result,
};
use domain::{owner::Owner, time::Timestamp};
use std::time::Duration;

/// A write that may be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub key: String,
    /// Tells apart what was asked: a hash of method, path and body.
    pub fingerprint: [u8; 32],
}

/// What an earlier attempt with the same key led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// It asked for the same thing.
    pub same: bool,
    /// The id of what it made.
    pub result: String,
}

/// How long a key is good for.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Stores the key inside a transaction of the catalog, or returns `KeyUsed`.
macro_rules! remember {
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
                return Err($crate::Error::KeyUsed);
            }
        }
    };
}
pub(crate) use remember;

impl Store {
    pub async fn remembered(&self, owner: &Owner, attempt: &Attempt) -> Result<Option<Remembered>> {
        let row: Option<(Vec<u8>, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT fingerprint, result FROM idempotency WHERE owner = $1 AND key = $2")
                .bind(owner.as_str())
                .bind(attempt.key.as_str())
                .fetch_optional(pool)
                .await
        })?;
        Ok(row.map(|(fingerprint, result)| Remembered { same: fingerprint == attempt.fingerprint, result }))
    }

    /// Drops keys that are older than a day.
    pub async fn forget_old_keys(&self) -> Result<()> {
        let before = Timestamp::now().as_millis() - i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        writing!(self.database(), |transaction| {
            sqlx::query("DELETE FROM idempotency WHERE created_at < $1")
                .bind(before)
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<(), Error>(())
    }
}
