//! The settings of providers in a workspace. They hold keys, so they are stored encrypted.

use super::{
    audit::store_audit,
    idempotency::store_key,
    owned::must_exist,
    sealed_configs::{LOCK_OWNER, SealedTable},
};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    owner::Owner,
    provider_settings::{ProviderSettings, WorkspaceProviders},
    time::Timestamp,
};
use serde_json::json;

/// The number of providers that one workspace may have settings for.
pub const MAX_PROVIDER_SETTINGS: i64 = 100;

row! {
    struct ProviderSettingsRow {
        name: String,
        config: String,
    }
}

/// Whether the settings may be new, or must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsWrite {
    Create,
    Replace,
}

const INSERT: &str = "INSERT INTO provider_settings (owner, name, config, created_at, updated_at) \
                      VALUES ($1, $2, $3, $4, $4) ON CONFLICT (owner, name) DO NOTHING";
const REPLACE: &str = "INSERT INTO provider_settings (owner, name, config, created_at, updated_at) \
                       VALUES ($1, $2, $3, $4, $4) \
                       ON CONFLICT (owner, name) DO UPDATE SET config = excluded.config, updated_at = excluded.updated_at";

impl Store {
    /// Returns the settings of all providers of a workspace.
    pub async fn provider_settings(&self, owner: &Owner) -> Result<WorkspaceProviders> {
        let rows: Vec<ProviderSettingsRow> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT name, config FROM provider_settings WHERE owner = $1 ORDER BY name")
                .bind(owner.as_str())
                .fetch_all(pool)
                .await
        })?;
        let mut all = WorkspaceProviders::none(owner);
        for ProviderSettingsRow { name, config } in rows {
            let row = [owner.as_str(), name.as_str()];
            let opened = self.secrets().open(&SealedTable::ProviderSettings.place(&row), &config);
            // Without the parser's message: it may contain a secret value.
            let read = opened.map_err(|error| error.to_string()).and_then(|text| {
                serde_json::from_str::<ProviderSettings>(&text)
                    .map_err(|_| "its settings were stored by another version; set them again".to_owned())
            });
            match read {
                Ok(settings) => drop(all.settings.insert(name, settings)),
                Err(problem) => drop(all.unreadable.insert(name, problem)),
            }
        }
        Ok(all)
    }

    pub async fn put_provider_settings(
        &self,
        actor: &Actor,
        name: &str,
        settings: &ProviderSettings,
        write: SettingsWrite,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        let config = self.seal_config(SealedTable::ProviderSettings, owner, name, &serde_json::to_string(settings)?)?;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            sqlx::query(LOCK_OWNER).bind(owner.as_str()).bind(now.as_millis()).execute(&mut *transaction).await?;
            let (statement, action) = match write {
                SettingsWrite::Create => (INSERT, AuditAction::Create),
                SettingsWrite::Replace => (REPLACE, AuditAction::Update),
            };
            let stored = sqlx::query(statement)
                .bind(owner.as_str())
                .bind(name)
                .bind(config.as_str())
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            if stored.rows_affected() == 0 {
                return Err(StoreError::ProviderExists(name.to_owned()));
            }
            let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM provider_settings WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            if count > MAX_PROVIDER_SETTINGS {
                return Err(StoreError::LimitReached(format!(
                    "a workspace may have settings for at most {MAX_PROVIDER_SETTINGS} providers; delete some"
                )));
            }
            let detail = json!({"has_key": settings.key.is_some(), "has_base_url": settings.base_url.is_some()});
            let entry = AuditEntry::new(actor, action, AuditedObject::Provider, name).with_detail(detail);
            store_audit!(transaction, entry, now);
        });
        Ok(())
    }

    pub async fn delete_provider_settings(
        &self,
        actor: &Actor,
        name: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Provider, name), now);
            let deleted = sqlx::query("DELETE FROM provider_settings WHERE owner = $1 AND name = $2")
                .bind(owner.as_str())
                .bind(name)
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
        });
        Ok(())
    }
}
