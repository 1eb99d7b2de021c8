//! The catalog of MCP servers: made, changed, deleted, handed out. Only the operator may say which programs are started;
//! anybody may add addresses.

use super::{McpServerView, McpStatusView};
use crate::{
    Engine, Error,
    equipment::{KeepError, Known, ServerProblem, Source, is_operators, keep, masked, said},
};
use domain::{
    mcp::{ConfigError, Entry, EntryError, ServerConfig, Transport, check_name},
    owner::Owner,
};
use providers::host_tools;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::Attempt;

/// Of one owner.
pub(super) const MAX_STORED: usize = 500;
const MAX_ENTRY_BYTES: usize = 64 * 1024;
/// Words of the addresses beside which servers have theirs.
const RESERVED: [&str; 3] = [host_tools::SERVER, "import", "export"];

impl Engine {
    /// By name; those of the operator's file among them.
    pub async fn mcp_servers(&self, owner: &Owner) -> Result<Vec<McpServerView>, Error> {
        Ok(self.known_servers(owner).await?.into_iter().map(|known| self.view(owner, known)).collect())
    }

    /// The one that an agent gets by this name.
    pub async fn mcp_server(&self, owner: &Owner, name: &str) -> Result<McpServerView, Error> {
        Ok(self.view(owner, self.known_server(owner, name).await?))
    }

    /// `settings` are the keys of an entry of `.mcp.json`.
    pub async fn create_mcp_server(
        &self,
        owner: &Owner,
        name: &str,
        settings: Map<String, Value>,
        attempt: Option<&Attempt>,
    ) -> Result<McpServerView, Error> {
        self.check_free(name)?;
        let config = self.define(owner, name, settings, None)?;
        if self.store().mcp_servers(owner).await?.len() >= MAX_STORED {
            return Err(Error::Conflict(full()));
        }
        self.store().create_mcp_server(owner, name, &config, attempt).await?;
        Ok(self.view(owner, self.stored_server(owner, name).await?))
    }

    /// A merge patch: what is named is replaced, `null` clears, `***` keeps.
    pub async fn change_mcp_server(
        &self,
        owner: &Owner,
        name: &str,
        patch: Map<String, Value>,
        attempt: Option<&Attempt>,
    ) -> Result<McpServerView, Error> {
        let known = self.editable(owner, name).await?;
        let before = known.config.clone().ok();
        let current = before.clone().map(Entry::from);
        let mut settings = match serde_json::to_value(current.clone().unwrap_or_default()) {
            Ok(Value::Object(settings)) => settings,
            Ok(_) | Err(_) => Map::new(),
        };
        for (key, value) in patch {
            match value {
                Value::Null => drop(settings.remove(&key)),
                value => drop(settings.insert(key, value)),
            }
        }
        let config = self.define(owner, name, settings, current.as_ref())?;
        self.store().update_mcp_server(owner, name, &config, attempt).await?;
        if before.as_ref() != Some(&config) {
            self.end(owner, &known);
        }
        Ok(self.view(owner, self.stored_server(owner, name).await?))
    }

    /// Agents that name it fail from now on, saying so.
    pub async fn delete_mcp_server(&self, owner: &Owner, name: &str, attempt: Option<&Attempt>) -> Result<(), Error> {
        let known = self.editable(owner, name).await?;
        self.store().delete_mcp_server(owner, name, attempt).await?;
        self.end(owner, &known);
        Ok(())
    }

    /// What the owner has configured, as a `.mcp.json` with `***` for every value that is kept here.
    pub async fn export_mcp_servers(&self, owner: &Owner) -> Result<BTreeMap<String, Entry>, Error> {
        let stored = self.store().mcp_servers(owner).await?;
        let entry = |record: store::McpServerRecord| Some((record.name, masked(record.config.ok()?.into())));
        Ok(stored.into_iter().filter_map(entry).collect())
    }

    /// Whether one of this name could be stored and would be used.
    pub(super) fn check_free(&self, name: &str) -> Result<(), Error> {
        let refused = |detail| Err(Error::Refused { pointer: "/name", detail });
        if check_name(name).is_err() {
            return refused("name: 1 to 64 letters, digits, _ and -".to_owned());
        }
        if RESERVED.contains(&name) {
            return refused(format!("name: {name:?} has another meaning here; choose another"));
        }
        if self.config().mcp_servers.contains_key(name) {
            return Err(Error::Conflict(format!(
                "the operator's file has an MCP server named {name:?}, which would be used instead; choose another name"
            )));
        }
        Ok(())
    }

    /// A config from its settings, if this owner may have it.
    pub(super) fn define(
        &self,
        owner: &Owner,
        name: &str,
        settings: Map<String, Value>,
        current: Option<&Entry>,
    ) -> Result<ServerConfig, Error> {
        let mut entry = read(settings)?;
        keep(&mut entry, current).map_err(|KeepError { pointer, detail }| Error::Refused { pointer, detail })?;
        let config = ServerConfig::try_from(entry).map_err(|error| {
            let (pointer, error) = (pointer(&error), ConfigError::from(error));
            Error::Refused { pointer, detail: format!("the MCP server {name:?} {}", said(&error)) }
        })?;
        if matches!(config.transport, Transport::Stdio { .. }) && !owner.is_operator() {
            return Err(Error::OperatorOnly(
                "Only the operator of this server may say which programs it starts; add a server of type http or sse, or ask \
                 the operator."
                    .to_owned(),
            ));
        }
        if serde_json::to_string(&config).is_ok_and(|text| text.len() > MAX_ENTRY_BYTES) {
            return Err(Error::Invalid(format!("an MCP server's entry has at most {MAX_ENTRY_BYTES} bytes")));
        }
        Ok(config)
    }

    async fn editable(&self, owner: &Owner, name: &str) -> Result<Known, Error> {
        match self.stored_server(owner, name).await {
            Err(Error::NotFound) if self.config().mcp_servers.contains_key(name) => Err(Error::Conflict(format!(
                "the MCP server {name:?} is in the operator's file; it is changed there, and read when the server starts"
            ))),
            found => found,
        }
    }

    /// What runs with settings that hold no more is ended; nobody waits for it.
    pub(super) fn end(&self, owner: &Owner, known: &Known) {
        if let Ok(server) = self.ready(owner, known.source, &known.name, &known.config, None) {
            let manager = self.mcp().clone();
            self.chores().spawn(async move { manager.stop(&server).await });
        }
    }

    fn view(&self, owner: &Owner, known: Known) -> McpServerView {
        let Known { name, source, config, shadowed, times } = known;
        let is_disabled = config.as_ref().is_ok_and(|config| config.disabled);
        let ready = self.ready(owner, source, &name, &config, None);
        let status = ready.as_ref().ok().filter(|_| !is_disabled && !shadowed).map(|server| {
            let secrets = self.secrets_of(server);
            McpStatusView::of(self.mcp().status(server), &secrets, owner.is_operator())
        });
        let variables = config
            .as_ref()
            .ok()
            .map(|config| self.config().mcp_variables.used_by(&config.transport, is_operators(owner, source)));
        let entry = masked(config.map(Entry::from).unwrap_or_default());
        // What the operator starts and where is for the operator; others may use it by its name.
        let entry = match source {
            Source::File if !owner.is_operator() => {
                Entry { kind: entry.kind, disabled: entry.disabled, ..Entry::default() }
            }
            _ => entry,
        };
        McpServerView {
            name,
            source,
            editable: source == Source::Database,
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

/// The keys of an entry, and what each takes.
pub(super) const KEYS: [(&str, &str); 10] = [
    ("type", "stdio, http or sse"),
    ("command", "a text"),
    ("args", "a list of texts"),
    ("env", "an object of texts"),
    ("url", "a text"),
    ("headers", "an object of texts"),
    ("disabled", "true or false"),
    ("timeout", "a number of milliseconds"),
    ("startupTimeout", "a number of milliseconds"),
    ("cwd", "a text"),
];

pub(super) fn full() -> String {
    format!("you have {MAX_STORED} MCP servers, which is the limit; delete some")
}

/// Says which key is wrong and never what was in it.
fn read(settings: Map<String, Value>) -> Result<Entry, Error> {
    for (key, value) in &settings {
        let Some((_, takes)) = KEYS.iter().find(|(known, _)| known == key) else {
            let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
            let key: String = key.chars().take(64).collect();
            return Err(Error::Invalid(format!("there is no setting {key:?}; there are: {}", known.join(", "))));
        };
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        if serde_json::from_value::<Entry>(Value::Object(alone)).is_err() {
            return Err(Error::Invalid(format!("{key}: it must be {takes}")));
        }
    }
    serde_json::from_value(Value::Object(settings)).map_err(|_| Error::Invalid("the settings do not fit".to_owned()))
}

fn pointer(error: &EntryError) -> &'static str {
    match error {
        EntryError::Name => "/name",
        EntryError::Kind(_) => "/type",
        EntryError::CommandOrUrl | EntryError::NoCommand | EntryError::Nul => "/command",
        EntryError::Url(_) => "/url",
        EntryError::Header(_) => "/headers",
        EntryError::Variable(_) => "/env",
        EntryError::Timeout => "/timeout",
        EntryError::Shape(_) => "",
    }
}

impl From<ServerProblem> for Error {
    fn from(problem: ServerProblem) -> Self {
        Self::Refused { pointer: "", detail: problem.message }
    }
}
