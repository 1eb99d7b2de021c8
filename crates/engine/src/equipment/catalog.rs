//! The servers that agents can name: those of the operator's file, which are for everybody, and those that an owner has
//! configured.
//!
//! Where both have one of a name, the file's is used: it can be changed on the machine itself and nowhere else, so nothing
//! that is sent over the network takes the place of what the operator wrote there.

use crate::{Engine, Error};
use domain::{
    mcp::{ConfigError, ServerConfig, check_name},
    owner::Owner,
    time::Timestamp,
};
use serde::Serialize;
use store::McpServerRecord;

/// Who wrote a server down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpSource)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The operator's `mcp.json`.
    File,
    Database,
    Skill,
    /// The `.mcp.json` of the folder that the agent works in.
    Project,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub name: String,
    pub source: Source,
    pub config: Result<ServerConfig, ConfigError>,
    /// The file has another one of this name.
    pub shadowed: bool,
    /// When it was made and when it was changed; the file does not know.
    pub times: Option<(Timestamp, Timestamp)>,
}

impl Engine {
    /// By name; where there are two of one name, the file's comes first.
    pub(crate) async fn known_servers(&self, owner: &Owner) -> Result<Vec<Known>, store::Error> {
        let stored = self.store().mcp_servers(owner).await?;
        let file = self.config().mcp_servers.keys().filter_map(|name| self.of_file(name));
        let mut known: Vec<Known> = file.chain(stored.into_iter().map(|record| self.of_database(record))).collect();
        known.sort_by(|one, other| (&one.name, one.shadowed).cmp(&(&other.name, other.shadowed)));
        Ok(known)
    }

    /// The one that an agent gets by this name.
    pub(crate) async fn known_server(&self, owner: &Owner, name: &str) -> Result<Known, Error> {
        match self.of_file(name) {
            Some(known) => Ok(known),
            None => self.stored_server(owner, name).await,
        }
    }

    /// One that the owner has configured, whatever the file says.
    pub(crate) async fn stored_server(&self, owner: &Owner, name: &str) -> Result<Known, Error> {
        // What can be no name is not looked for: databases differ in which texts they take.
        check_name(name).map_err(|_| Error::NotFound)?;
        Ok(self.of_database(self.store().mcp_server(owner, name).await?))
    }

    fn of_file(&self, name: &str) -> Option<Known> {
        let config = self.config().mcp_servers.get(name)?.clone().map_err(ConfigError::from);
        Some(Known { name: name.to_owned(), source: Source::File, config, shadowed: false, times: None })
    }

    pub(crate) fn of_database(&self, record: McpServerRecord) -> Known {
        Known {
            shadowed: self.config().mcp_servers.contains_key(&record.name),
            name: record.name,
            source: Source::Database,
            config: record.config.map_err(ConfigError::from),
            times: Some((record.created_at, record.updated_at)),
        }
    }
}
