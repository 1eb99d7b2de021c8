//! The MCP servers that agents can refer to by name: those of the operator's file, which all owners share, and those
//! that an owner has configured.
//!
//! If both define the same name, the file wins: it can only be changed on the machine itself, so no network request
//! replaces an entry of the operator.

use crate::{Engine, EngineError};
use domain::{
    mcp::{McpConfigError, McpServerConfig, check_name},
    owner::Owner,
    time::Timestamp,
};
use serde::Serialize;
use store::McpServerRecord;

/// Where a server is configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpSource)]
#[serde(rename_all = "snake_case")]
pub enum McpServerSource {
    /// The operator's `mcp.json`.
    File,
    Database,
    Skill,
    /// The `.mcp.json` of the agent's workspace.
    Project,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CatalogServer {
    pub name: String,
    pub source: McpServerSource,
    pub config: Result<McpServerConfig, McpConfigError>,
    /// The operator's file has a server of the same name, which is used instead.
    pub shadowed: bool,
    /// When it was created and updated; `None` for servers of the file.
    pub times: Option<(Timestamp, Timestamp)>,
}

impl Engine {
    /// Lists servers by name; of two with the same name, the one of the file comes first.
    pub(crate) async fn catalog_servers(&self, owner: &Owner) -> Result<Vec<CatalogServer>, store::StoreError> {
        self.refresh_mcp_variables().await?;
        let stored = self.store().mcp_servers(owner).await?;
        let file = self.config().mcp_servers.keys().filter_map(|name| self.file_server(name));
        let mut known: Vec<CatalogServer> =
            file.chain(stored.into_iter().map(|record| self.database_server(record))).collect();
        known.sort_by(|one, other| (&one.name, one.shadowed).cmp(&(&other.name, other.shadowed)));
        Ok(known)
    }

    /// Returns the server that agents get by this name.
    pub(crate) async fn catalog_server(&self, owner: &Owner, name: &str) -> Result<CatalogServer, EngineError> {
        self.refresh_mcp_variables().await?;
        match self.file_server(name) {
            Some(known) => Ok(known),
            None => self.stored_server(owner, name).await,
        }
    }

    /// Returns a server that the owner has configured, even if the file has one of the same name.
    pub(crate) async fn stored_server(&self, owner: &Owner, name: &str) -> Result<CatalogServer, EngineError> {
        // An invalid name is not queried: databases differ in which strings they accept.
        check_name(name).map_err(|_| EngineError::NotFound)?;
        Ok(self.database_server(self.store().mcp_server(owner, name).await?))
    }

    fn file_server(&self, name: &str) -> Option<CatalogServer> {
        let config = self.config().mcp_servers.get(name)?.clone().map_err(McpConfigError::from);
        Some(CatalogServer {
            name: name.to_owned(),
            source: McpServerSource::File,
            config,
            shadowed: false,
            times: None,
        })
    }

    pub(crate) fn database_server(&self, record: McpServerRecord) -> CatalogServer {
        CatalogServer {
            shadowed: self.config().mcp_servers.contains_key(&record.name),
            name: record.name,
            source: McpServerSource::Database,
            config: record.config.map_err(McpConfigError::from),
            times: Some((record.created_at, record.updated_at)),
        }
    }
}
