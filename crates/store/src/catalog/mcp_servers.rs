//! Configured MCP servers, by name. Configurations contain secrets: they are stored encrypted, and callers must mask them
//! before showing them.

use super::{audit::store_audit, idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
    secrets::{SecretPlace, Secrets},
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    mcp::{McpEntryError, McpServerConfig, McpServerEntry},
    owner::Owner,
    time::Timestamp,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerRecord {
    pub name: String,
    /// A configuration stored by another version may be unreadable; that does not affect the other servers.
    pub config: std::result::Result<McpServerConfig, McpEntryError>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One of several servers that are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerImport {
    pub name: String,
    pub config: McpServerConfig,
    /// Whether the server replaces an existing one; otherwise none of this name may exist.
    pub replaces: bool,
}

row! {
    struct McpServerRow {
        name: String,
        config: String,
        created_at: i64,
        updated_at: i64,
    }
}

impl McpServerRow {
    fn record(self, secrets: &Secrets, owner: &Owner) -> McpServerRecord {
        // Without the parser's message: it may contain a secret value.
        let read = |text: String| {
            serde_json::from_str::<McpServerEntry>(&text)
                .map_err(|_| McpEntryError::Shape("it was stored by another version".into()))
        };
        let opened = secrets.open(&place(&[owner.as_str(), &self.name]), &self.config);
        let row = self;
        McpServerRecord {
            config: opened
                .map_err(|error| McpEntryError::Secrets(error.to_string()))
                .and_then(read)
                .and_then(TryInto::try_into),
            name: row.name,
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        }
    }
}

/// Where the configuration of a server is stored; the row is the owner and the name.
fn place<'a>(row: &'a [&'a str]) -> SecretPlace<'a> {
    SecretPlace { table: "mcp_servers", row, column: "config" }
}

/// Configurations that are encrypted again in one transaction.
const SEALED_AT_ONCE: i64 = 100;

/// The number of servers that one owner may store.
pub const MAX_MCP_SERVERS: i64 = 500;

/// Changes nothing, and makes other writers of the same owner's servers wait until this transaction ends.
const LOCK: &str = "INSERT INTO workspaces (name, created_at) VALUES ($1, $2) \
                    ON CONFLICT (name) DO UPDATE SET created_at = workspaces.created_at";
const INSERT: &str = "INSERT INTO mcp_servers (owner, name, config, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) \
                      ON CONFLICT (owner, name) DO NOTHING";
const UPDATE: &str = "UPDATE mcp_servers SET config = $3, updated_at = $4 WHERE owner = $1 AND name = $2";

impl Store {
    /// Returns all servers, sorted by name.
    pub async fn mcp_servers(&self, owner: &Owner) -> Result<Vec<McpServerRecord>> {
        let rows: Vec<McpServerRow> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT name, config, created_at, updated_at FROM mcp_servers WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_all(pool)
                .await
        })?;
        let record = |row: McpServerRow| row.record(self.secrets(), owner);
        let mut servers: Vec<McpServerRecord> = rows.into_iter().map(record).collect();
        // Sorted here because the databases collate text differently.
        servers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(servers)
    }

    pub async fn mcp_server(&self, owner: &Owner, name: &str) -> Result<McpServerRecord> {
        let row: McpServerRow = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT name, config, created_at, updated_at FROM mcp_servers WHERE owner = $1 AND name = $2",
            )
            .bind(owner.as_str())
            .bind(name)
            .fetch_one(pool)
            .await
        })?;
        Ok(row.record(self.secrets(), owner))
    }

    pub async fn create_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        config: &McpServerConfig,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let server = McpServerImport { name: name.to_owned(), config: config.clone(), replaces: false };
        self.import_mcp_servers(actor, &[server], name, attempt).await
    }

    pub async fn update_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        config: &McpServerConfig,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let server = McpServerImport { name: name.to_owned(), config: config.clone(), replaces: true };
        self.import_mcp_servers(actor, &[server], name, attempt).await
    }

    /// Stores all servers, or none if one conflicts or is missing. `result` is returned to a repeated request.
    pub async fn import_mcp_servers(
        &self,
        actor: &Actor,
        servers: &[McpServerImport],
        result: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        let configs: Vec<String> = servers
            .iter()
            .map(|server| self.seal_config(owner, &server.name, &serde_json::to_string(&server.config)?))
            .collect::<Result<_>>()?;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, result, now);
            sqlx::query(LOCK).bind(owner.as_str()).bind(now.as_millis()).execute(&mut *transaction).await?;
            for (server, config) in servers.iter().zip(&configs) {
                let stored = sqlx::query(if server.replaces { UPDATE } else { INSERT })
                    .bind(owner.as_str())
                    .bind(server.name.as_str())
                    .bind(config.as_str())
                    .bind(now.as_millis())
                    .execute(&mut *transaction)
                    .await?;
                match (stored.rows_affected(), server.replaces) {
                    (0, true) => return Err(StoreError::NotFound),
                    (0, false) => return Err(StoreError::McpServerExists(server.name.clone())),
                    _ => {}
                }
                let action = if server.replaces { AuditAction::Update } else { AuditAction::Create };
                let entry = AuditEntry::new(actor, action, AuditedObject::McpServer, &server.name);
                store_audit!(transaction, entry, now);
            }
            let stored: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM mcp_servers WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            if stored > MAX_MCP_SERVERS && servers.iter().any(|server| !server.replaces) {
                return Err(StoreError::McpServerLimit);
            }
        });
        Ok(())
    }

    pub async fn delete_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::McpServer, name), now);
            let deleted = sqlx::query("DELETE FROM mcp_servers WHERE owner = $1 AND name = $2")
                .bind(owner.as_str())
                .bind(name)
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
        });
        Ok(())
    }

    fn seal_config(&self, owner: &Owner, name: &str, config: &str) -> Result<String> {
        let sealed = self.secrets().seal(&place(&[owner.as_str(), name]), config);
        sealed.map_err(|error| StoreError::unavailable("a secret cannot be encrypted").caused_by(error))
    }

    /// Encrypts what an earlier version stored in plain text, and what is encrypted with an older key. Leaves alone what it
    /// cannot read.
    pub(crate) async fn encrypt_old_secrets(&self) -> Result<()> {
        let prefix = self.secrets().current_prefix().map_err(|error| StoreError::start(error.to_string()))?;
        let (mut after, mut encrypted, mut unreadable) = ((String::new(), String::new()), 0, 0);
        loop {
            let page: Vec<(String, String, String)> = reading!(self.database(), |pool| {
                sqlx::query_as(
                    "SELECT owner, name, config FROM mcp_servers WHERE (owner > $1 OR (owner = $1 AND name > $2)) \
                     AND config NOT LIKE $3 ORDER BY owner, name LIMIT $4",
                )
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
                let opened = self.secrets().open(&place(&row), stored);
                match opened.and_then(|plain| self.secrets().seal(&place(&row), &plain)) {
                    Ok(sealed) => changed.push((owner, name, stored, sealed)),
                    Err(error) => {
                        unreadable += 1;
                        tracing::error!(workspace = %owner, server = %name, %error, "an MCP server cannot be used");
                    }
                }
            }
            writing!(self.database(), |transaction| {
                for (owner, name, stored, sealed) in &changed {
                    // Unless somebody has changed it since it was read.
                    sqlx::query("UPDATE mcp_servers SET config = $4 WHERE owner = $1 AND name = $2 AND config = $3")
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
        if encrypted > 0 {
            tracing::info!(encrypted, unreadable, "encrypted the stored secrets of MCP servers with the current key");
            // The log still has them as they were.
            self.empty_log().await?;
        }
        Ok(())
    }
}
