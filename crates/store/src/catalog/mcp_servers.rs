//! Configured MCP servers, by name. Configurations contain secrets: they are stored encrypted, and callers must mask them
//! before showing them.

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
    secrets::Secrets,
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
        let opened = secrets.open(&SealedTable::McpServers.place(&[owner.as_str(), &self.name]), &self.config);
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

/// The number of servers that one owner may store.
pub const MAX_MCP_SERVERS: i64 = 500;

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
            .map(|server| {
                self.seal_config(SealedTable::McpServers, owner, &server.name, &serde_json::to_string(&server.config)?)
            })
            .collect::<Result<_>>()?;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, result, now);
            sqlx::query(LOCK_OWNER).bind(owner.as_str()).bind(now.as_millis()).execute(&mut *transaction).await?;
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
}
