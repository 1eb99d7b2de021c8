//! Variables of the environment that the operator allowed through the API. Their values are not stored.

use super::{audit::store_audit, owned::must_exist};
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    owner::Owner,
    time::Timestamp,
};

/// No environment has more.
const MAX_VARIABLES: i64 = 1000;

impl Store {
    /// The names, in order.
    pub async fn mcp_variables(&self, owner: &Owner) -> Result<Vec<String>> {
        let names: Vec<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT name FROM mcp_variables WHERE owner = $1 ORDER BY name LIMIT $2")
                .bind(owner.as_str())
                .bind(MAX_VARIABLES)
                .fetch_all(pool)
                .await
        })?;
        Ok(names)
    }

    /// Allows a variable. Succeeds if it is allowed already.
    pub async fn allow_mcp_variable(&self, actor: &Actor, name: &str) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            sqlx::query(
                "INSERT INTO mcp_variables (owner, name, allowed_at) VALUES ($1, $2, $3) ON CONFLICT (owner, name) DO NOTHING",
            )
            .bind(owner.as_str())
            .bind(name)
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await?;
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM mcp_variables WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            if count > MAX_VARIABLES {
                return Err(StoreError::LimitReached(format!("at most {MAX_VARIABLES} variables can be allowed")));
            }
            store_audit!(
                transaction,
                AuditEntry::new(actor, AuditAction::Trust, AuditedObject::McpVariable, name),
                now
            );
        });
        Ok(())
    }

    /// Not found if the variable was not allowed here.
    pub async fn disallow_mcp_variable(&self, actor: &Actor, name: &str) -> Result<()> {
        let owner = &actor.workspace;
        writing!(self.database(), |transaction| {
            let deleted = sqlx::query("DELETE FROM mcp_variables WHERE owner = $1 AND name = $2")
                .bind(owner.as_str())
                .bind(name)
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
            let entry = AuditEntry::new(actor, AuditAction::Distrust, AuditedObject::McpVariable, name);
            store_audit!(transaction, entry, Timestamp::now());
        });
        Ok::<(), StoreError>(())
    }
}
