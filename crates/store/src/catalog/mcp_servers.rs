//! MCP servers that people have configured, by name. What is here holds secrets: who shows it masks it.

use super::idempotency::{Attempt, remember};
use crate::{
    Error, Store,
    database::{reading, writing},
    error::Result,
};
use domain::{
    mcp::{Entry, EntryError, ServerConfig},
    owner::Owner,
    time::Timestamp,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerRecord {
    pub name: String,
    /// One that another version has stored may not be understood; it is that server's problem, not the list's.
    pub config: std::result::Result<ServerConfig, EntryError>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One of several that are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerImport {
    pub name: String,
    pub config: ServerConfig,
    /// Takes the place of the one that is there; otherwise there must be none.
    pub replaces: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    name: String,
    config: String,
    created_at: i64,
    updated_at: i64,
}

impl From<Row> for McpServerRecord {
    fn from(row: Row) -> Self {
        // Without the parser's own words: they may repeat a value.
        let entry = serde_json::from_str::<Entry>(&row.config);
        Self {
            name: row.name,
            config: entry
                .map_err(|_| EntryError::Shape("another version stored it".into()))
                .and_then(TryInto::try_into),
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        }
    }
}

const INSERT: &str = "INSERT INTO mcp_servers (owner, name, config, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) \
                      ON CONFLICT (owner, name) DO NOTHING";
const UPDATE: &str = "UPDATE mcp_servers SET config = $3, updated_at = $4 WHERE owner = $1 AND name = $2";

impl Store {
    /// By name.
    pub async fn mcp_servers(&self, owner: &Owner) -> Result<Vec<McpServerRecord>> {
        let rows: Vec<Row> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT name, config, created_at, updated_at FROM mcp_servers WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_all(pool)
                .await
        })?;
        let mut servers: Vec<McpServerRecord> = rows.into_iter().map(McpServerRecord::from).collect();
        // Here, not in SQL: databases do not agree on the order of letters.
        servers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(servers)
    }

    pub async fn mcp_server(&self, owner: &Owner, name: &str) -> Result<McpServerRecord> {
        let row: Row = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT name, config, created_at, updated_at FROM mcp_servers WHERE owner = $1 AND name = $2",
            )
            .bind(owner.as_str())
            .bind(name)
            .fetch_one(pool)
            .await
        })?;
        Ok(row.into())
    }

    pub async fn create_mcp_server(
        &self,
        owner: &Owner,
        name: &str,
        config: &ServerConfig,
        attempt: Option<&Attempt>,
    ) -> Result<()> {
        let server = McpServerImport { name: name.to_owned(), config: config.clone(), replaces: false };
        self.import_mcp_servers(owner, &[server], name, attempt).await
    }

    pub async fn update_mcp_server(
        &self,
        owner: &Owner,
        name: &str,
        config: &ServerConfig,
        attempt: Option<&Attempt>,
    ) -> Result<()> {
        let server = McpServerImport { name: name.to_owned(), config: config.clone(), replaces: true };
        self.import_mcp_servers(owner, &[server], name, attempt).await
    }

    /// All of them or, when one is in the way or gone, none. `result` is what a later attempt is told.
    pub async fn import_mcp_servers(
        &self,
        owner: &Owner,
        servers: &[McpServerImport],
        result: &str,
        attempt: Option<&Attempt>,
    ) -> Result<()> {
        let now = Timestamp::now();
        let configs: Vec<String> = servers
            .iter()
            .map(|server| serde_json::to_string(&server.config))
            .collect::<std::result::Result<_, _>>()?;
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, result, now);
            for (server, config) in servers.iter().zip(&configs) {
                let stored = sqlx::query(if server.replaces { UPDATE } else { INSERT })
                    .bind(owner.as_str())
                    .bind(server.name.as_str())
                    .bind(config.as_str())
                    .bind(now.as_millis())
                    .execute(&mut *transaction)
                    .await?;
                match (stored.rows_affected(), server.replaces) {
                    (0, true) => return Err(Error::NotFound),
                    (0, false) => return Err(Error::McpServerExists(server.name.clone())),
                    _ => {}
                }
            }
        });
        Ok(())
    }

    pub async fn delete_mcp_server(&self, owner: &Owner, name: &str, attempt: Option<&Attempt>) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, name, now);
            let deleted = sqlx::query("DELETE FROM mcp_servers WHERE owner = $1 AND name = $2")
                .bind(owner.as_str())
                .bind(name)
                .execute(&mut *transaction)
                .await?;
            if deleted.rows_affected() == 0 {
                return Err(Error::NotFound);
            }
        });
        Ok(())
    }
}
