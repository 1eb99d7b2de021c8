//! The catalog of MCP servers: create, update, delete, export. Only the operator may configure programs; every owner
//! may add URLs.

use super::{McpServerView, McpStatusView};
use crate::{
    Engine, EngineError,
    mcp_servers::{
        CatalogServer, MaskError, McpServerSource, ServerProblem, config_error_text, is_from_operator, mask_entry,
        restore_masked,
    },
};
use domain::{
    actor::Actor,
    mcp::{McpConfigError, McpEntryError, McpServerConfig, McpServerEntry, McpTransport, check_name},
    owner::Owner,
    permission::Permission,
};
use providers::host_tools;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::IdempotentRequest;

const MAX_ENTRY_BYTES: usize = 64 * 1024;
/// Names that routes next to those of the servers use.
const RESERVED: [&str; 3] = [host_tools::SERVER_NAME, "import", "export"];

impl Engine {
    /// Lists all servers by name, including those of the operator's file.
    pub async fn mcp_servers(&self, actor: &Actor) -> Result<Vec<McpServerView>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.catalog_servers(owner).await?.into_iter().map(|known| self.view(actor, known)).collect())
    }

    /// Returns the server that agents get by this name.
    pub async fn mcp_server(&self, actor: &Actor, name: &str) -> Result<McpServerView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.view(actor, self.catalog_server(owner, name).await?))
    }

    /// Creates a server. `settings` are the keys of an entry of `.mcp.json`.
    pub async fn create_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        settings: Map<String, Value>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<McpServerView, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        self.check_new_name(name)?;
        let config = self.parse_config(actor, name, settings, None)?;
        self.store().create_mcp_server(actor, name, &config, attempt).await?;
        Ok(self.view(actor, self.stored_server(owner, name).await?))
    }

    /// Updates a server with a merge patch: given keys are replaced, `null` clears, `***` keeps.
    pub async fn change_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        patch: Map<String, Value>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<McpServerView, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        let known = self.editable_server(owner, name).await?;
        let before = known.config.clone().ok();
        let current = before.clone().map(McpServerEntry::from);
        // The patch is merged into what its sender can see, so that a value which it does not mention counts as kept.
        let shown = current.clone().map(mask_entry).unwrap_or_default();
        let mut settings = match serde_json::to_value(shown) {
            Ok(Value::Object(settings)) => settings,
            Ok(_) | Err(_) => Map::new(),
        };
        for (key, value) in patch {
            match value {
                Value::Null => drop(settings.remove(&key)),
                value => drop(settings.insert(key, value)),
            }
        }
        let config = self.parse_config(actor, name, settings, current.as_ref())?;
        self.store().update_mcp_server(actor, name, &config, attempt).await?;
        if before.as_ref() != Some(&config) {
            self.stop_server(owner, &known);
        }
        Ok(self.view(actor, self.stored_server(owner, name).await?))
    }

    /// Deletes a server. Runs of agents that still name it fail with `mcp_server_missing`.
    pub async fn delete_mcp_server(
        &self,
        actor: &Actor,
        name: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        let known = self.editable_server(owner, name).await?;
        self.store().delete_mcp_server(actor, name, attempt).await?;
        self.stop_server(owner, &known);
        Ok(())
    }

    /// Exports the owner's servers as a `.mcp.json`, with `***` for every secret value.
    pub async fn export_mcp_servers(&self, actor: &Actor) -> Result<BTreeMap<String, McpServerEntry>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let stored = self.store().mcp_servers(owner).await?;
        let entry = |record: store::McpServerRecord| Some((record.name, mask_entry(record.config.ok()?.into())));
        Ok(stored.into_iter().filter_map(entry).collect())
    }

    /// Checks that a server of this name can be stored and would be used.
    pub(super) fn check_new_name(&self, name: &str) -> Result<(), EngineError> {
        let refused = |detail| Err(EngineError::Refused { pointer: "/name".into(), detail });
        if check_name(name).is_err() {
            return refused("name: 1 to 64 letters, digits, _ and -".to_owned());
        }
        if RESERVED.contains(&name) {
            return refused(format!("name: {name:?} is reserved; choose another name"));
        }
        if self.config().mcp_servers.contains_key(name) {
            return Err(EngineError::Conflict(format!(
                "the operator's file has an MCP server named {name:?}, which would be used instead; choose another name"
            )));
        }
        Ok(())
    }

    /// Builds a config from its settings, and checks that this owner may have it.
    pub(super) fn parse_config(
        &self,
        actor: &Actor,
        name: &str,
        settings: Map<String, Value>,
        current: Option<&McpServerEntry>,
    ) -> Result<McpServerConfig, EngineError> {
        let mut entry = parse_settings(settings)?;
        restore_masked(&mut entry, current)
            .map_err(|MaskError { pointer, detail }| EngineError::refused(pointer, detail))?;
        let config = McpServerConfig::try_from(entry).map_err(|error| {
            let (pointer, error) = (error_pointer(&error), McpConfigError::from(error));
            EngineError::refused(pointer, format!("the MCP server {name:?} {}", config_error_text(&error)))
        })?;
        if matches!(config.transport, McpTransport::Stdio { .. }) && !actor.may(Permission::Operate) {
            return Err(EngineError::OperatorOnly(
                "Only the operator of this server may configure programs; add a server of type http or sse, or ask the \
                 operator."
                    .to_owned(),
            ));
        }
        if serde_json::to_string(&config).is_ok_and(|text| text.len() > MAX_ENTRY_BYTES) {
            let detail = format!("the entry of an MCP server may have at most {MAX_ENTRY_BYTES} bytes");
            return Err(EngineError::refused("", detail));
        }
        Ok(config)
    }

    async fn editable_server(&self, owner: &Owner, name: &str) -> Result<CatalogServer, EngineError> {
        match self.stored_server(owner, name).await {
            Err(EngineError::NotFound) if self.config().mcp_servers.contains_key(name) => Err(EngineError::Conflict(
                format!("the MCP server {name:?} is in the operator's file; edit it there and restart the server"),
            )),
            found => found,
        }
    }

    /// Stops a running server whose settings have changed, in the background.
    pub(super) fn stop_server(&self, owner: &Owner, known: &CatalogServer) {
        if let Ok(server) = self.resolve_server(owner, known.source, &known.name, &known.config, None) {
            let manager = self.mcp().clone();
            self.background_tasks().spawn(async move { manager.stop(&server).await });
        }
    }

    fn view(&self, actor: &Actor, known: CatalogServer) -> McpServerView {
        let owner = &actor.workspace;
        let CatalogServer { name, source, config, shadowed, times } = known;
        let is_disabled = config.as_ref().is_ok_and(|config| config.disabled);
        let ready = self.resolve_server(owner, source, &name, &config, None);
        let status = ready.as_ref().ok().filter(|_| !is_disabled && !shadowed).map(|server| {
            let secrets = self.secrets_of(server);
            McpStatusView::of(self.mcp().status(server), &secrets, actor.may(Permission::Operate))
        });
        let variables = config
            .as_ref()
            .ok()
            .map(|config| self.config().mcp_variables.used_by(&config.transport, is_from_operator(owner, source)));
        let entry = mask_entry(config.map(McpServerEntry::from).unwrap_or_default());
        // Other owners may use a server of the operator by name, but do not see its settings.
        let entry = match source {
            McpServerSource::File if !actor.may(Permission::Operate) => {
                McpServerEntry { kind: entry.kind, disabled: entry.disabled, ..McpServerEntry::default() }
            }
            _ => entry,
        };
        McpServerView {
            name,
            source,
            editable: source == McpServerSource::Database,
            shadowed,
            entry,
            variables: variables.unwrap_or_default(),
            problem: ready.err(),
            status,
            created_at: times.map(|(created, _)| created),
            updated_at: times.map(|(_, updated)| updated),
        }
    }
}

/// The keys of an entry and their types.
pub(super) const KEYS: [(&str, &str); 10] = [
    ("type", "stdio, http or sse"),
    ("command", "a string"),
    ("args", "a list of strings"),
    ("env", "an object of strings"),
    ("url", "a string"),
    ("headers", "an object of strings"),
    ("disabled", "true or false"),
    ("timeout", "a number of milliseconds"),
    ("startupTimeout", "a number of milliseconds"),
    ("cwd", "a string"),
];

/// The JSON pointer to a field of the body.
fn pointer_to(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Parses an entry. Errors name the wrong key and never its value.
fn parse_settings(settings: Map<String, Value>) -> Result<McpServerEntry, EngineError> {
    for (key, value) in &settings {
        let Some((_, takes)) = KEYS.iter().find(|(known, _)| known == key) else {
            let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
            let key: String = key.chars().take(64).collect();
            let detail = format!("unknown setting {key:?}; the settings are: {}", known.join(", "));
            return Err(EngineError::invalid_field(pointer_to(&key), detail));
        };
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        if serde_json::from_value::<McpServerEntry>(Value::Object(alone)).is_err() {
            return Err(EngineError::invalid_field(pointer_to(key), format!("{key}: it must be {takes}")));
        }
    }
    serde_json::from_value(Value::Object(settings))
        .map_err(|_| EngineError::Invalid("the settings are not a valid entry".to_owned()))
}

fn error_pointer(error: &McpEntryError) -> &'static str {
    match error {
        McpEntryError::Name => "/name",
        McpEntryError::Kind(_) => "/type",
        McpEntryError::CommandOrUrl | McpEntryError::NoCommand | McpEntryError::Nul => "/command",
        McpEntryError::Url(_) => "/url",
        McpEntryError::Header(_) => "/headers",
        McpEntryError::Variable(_) => "/env",
        McpEntryError::Timeout => "/timeout",
        McpEntryError::Shape(_) | McpEntryError::Secrets(_) => "",
    }
}

impl From<ServerProblem> for EngineError {
    fn from(problem: ServerProblem) -> Self {
        Self::Refused { pointer: "".into(), detail: problem.message }
    }
}
