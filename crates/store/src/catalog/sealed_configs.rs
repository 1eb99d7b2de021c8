//! Tables of configurations that are secret: `owner`, `name`, and an encrypted `config`. When the store opens, what is not
//! encrypted with the current key is encrypted again.

use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
    secrets::SecretPlace,
};
use domain::owner::Owner;

/// Configurations that are encrypted again in one transaction.
const SEALED_AT_ONCE: i64 = 100;

/// Changes nothing, and makes other writers of the same owner's configurations wait until this transaction ends.
pub(super) const LOCK_OWNER: &str = "INSERT INTO workspaces (name, created_at) VALUES ($1, $2) \
                                     ON CONFLICT (name) DO UPDATE SET created_at = workspaces.created_at";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealedTable {
    McpServers,
    ProviderSettings,
}

/// The configurations after a row that do not begin with a prefix, and the change of one that is still as it was read.
macro_rules! statements {
    ($table:literal) => {
        (
            concat!(
                "SELECT owner, name, config FROM ",
                $table,
                " WHERE (owner > $1 OR (owner = $1 AND name > $2)) AND config NOT LIKE $3 ORDER BY owner, name LIMIT $4"
            ),
            concat!("UPDATE ", $table, " SET config = $4 WHERE owner = $1 AND name = $2 AND config = $3"),
        )
    };
}

impl SealedTable {
    const ALL: [Self; 2] = [Self::McpServers, Self::ProviderSettings];

    fn name(self) -> &'static str {
        match self {
            Self::McpServers => "mcp_servers",
            Self::ProviderSettings => "provider_settings",
        }
    }

    fn statements(self) -> (&'static str, &'static str) {
        match self {
            Self::McpServers => statements!("mcp_servers"),
            Self::ProviderSettings => statements!("provider_settings"),
        }
    }

    /// Where a configuration is stored; the row is the owner and the name.
    pub(super) fn place<'a>(self, row: &'a [&'a str]) -> SecretPlace<'a> {
        SecretPlace { table: self.name(), row, column: "config" }
    }
}

impl Store {
    pub(super) fn seal_config(&self, table: SealedTable, owner: &Owner, name: &str, config: &str) -> Result<String> {
        let sealed = self.secrets().seal(&table.place(&[owner.as_str(), name]), config);
        sealed.map_err(|error| StoreError::unavailable("a secret cannot be encrypted").caused_by(error))
    }

    /// Encrypts what an earlier version stored in plain text, and what is encrypted with an older key. Leaves alone what it
    /// cannot read.
    pub(crate) async fn encrypt_old_secrets(&self) -> Result<()> {
        let mut encrypted = 0;
        for table in SealedTable::ALL {
            encrypted += self.encrypt_old_rows(table).await?;
        }
        if encrypted > 0 {
            tracing::info!(encrypted, "encrypted stored secrets with the current key");
            // The log still has them as they were.
            self.empty_log().await?;
        }
        Ok(())
    }

    async fn encrypt_old_rows(&self, table: SealedTable) -> Result<usize> {
        let prefix = self.secrets().current_prefix().map_err(|error| StoreError::start(error.to_string()))?;
        let (select, update) = table.statements();
        let (mut after, mut encrypted) = ((String::new(), String::new()), 0);
        loop {
            let page: Vec<(String, String, String)> = reading!(self.database(), |pool| {
                sqlx::query_as(select)
                    .bind(after.0.as_str())
                    .bind(after.1.as_str())
                    .bind(format!("{prefix}%"))
                    .bind(SEALED_AT_ONCE)
                    .fetch_all(pool)
                    .await
            })?;
            let Some((owner, name, _)) = page.last() else { break };
            after = (owner.clone(), name.clone());
            let mut changed = Vec::new();
            for (owner, name, stored) in &page {
                let row = [owner.as_str(), name.as_str()];
                let opened = self.secrets().open(&table.place(&row), stored);
                match opened.and_then(|plain| self.secrets().seal(&table.place(&row), &plain)) {
                    Ok(sealed) => changed.push((owner, name, stored, sealed)),
                    Err(error) => {
                        let table = table.name();
                        tracing::error!(workspace = %owner, table, %name, %error, "a stored secret cannot be read");
                    }
                }
            }
            writing!(self.database(), |transaction| {
                for (owner, name, stored, sealed) in &changed {
                    // Unless somebody has changed it since it was read.
                    sqlx::query(update)
                        .bind(owner.as_str())
                        .bind(name.as_str())
                        .bind(stored.as_str())
                        .bind(sealed.as_str())
                        .execute(&mut *transaction)
                        .await?;
                }
            });
            encrypted += changed.len();
        }
        Ok(encrypted)
    }
}
