//! Imports a `.mcp.json`: each server is checked on its own, and all valid ones are stored in one transaction.

use super::mcp_servers::KEYS;
use crate::{Engine, EngineError, mcp_servers::CatalogServer};
use domain::{
    actor::Actor,
    mcp::{MAX_SERVERS, McpServerEntry},
    permission::Permission,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{IdempotentRequest, MAX_MCP_SERVERS, McpServerImport, StoreError};

/// The result of importing one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpImported)]
pub struct ImportedServer {
    pub name: String,
    pub outcome: ImportOutcome,
    /// Why the server was refused.
    pub problem: Option<ImportProblem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpImportOutcome)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    Created,
    Replaced,
    /// The same server already exists.
    Unchanged,
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpImportProblem)]
pub struct ImportProblem {
    #[schema(examples("mcp_config", "operator_only", "conflict"))]
    pub code: String,
    pub message: String,
}

impl Engine {
    /// Imports all valid servers and reports the result for each. With `replace`, existing servers of the same name are
    /// replaced.
    pub async fn import_mcp_servers(
        &self,
        actor: &Actor,
        servers: Map<String, Value>,
        replace: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Vec<ImportedServer>, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        if let Some(earlier) = self.earlier_result(actor, attempt).await? {
            return serde_json::from_str(&earlier).map_err(unreadable);
        }
        if servers.len() > MAX_SERVERS {
            return Err(EngineError::invalid_field(
                "/mcpServers",
                format!("mcpServers: at most {MAX_SERVERS} at once"),
            ));
        }
        let stored = self.store().mcp_servers(owner).await?.into_iter().map(|record| self.database_server(record));
        let stored: BTreeMap<String, CatalogServer> = stored.map(|known| (known.name.clone(), known)).collect();
        let (mut report, mut storing) = (Vec::new(), Vec::new());
        let mut free_slots = usize::try_from(MAX_MCP_SERVERS).unwrap_or_default().saturating_sub(stored.len());
        for (name, settings) in servers {
            let (outcome, problem) = match self.check_import(actor, &name, settings, stored.get(&name), replace) {
                Ok(Some(new)) if !new.replaces && free_slots == 0 => {
                    (ImportOutcome::Refused, Some(conflict(StoreError::McpServerLimit.to_string())))
                }
                Ok(Some(new)) => {
                    let outcome = if new.replaces { ImportOutcome::Replaced } else { ImportOutcome::Created };
                    free_slots -= usize::from(!new.replaces);
                    storing.push(new);
                    (outcome, None)
                }
                Ok(None) => (ImportOutcome::Unchanged, None),
                Err(problem) => (ImportOutcome::Refused, Some(problem)),
            };
            report.push(ImportedServer { name: shorten_name(name), outcome, problem });
        }
        let result = serde_json::to_string(&report).map_err(unreadable)?;
        match self.store().import_mcp_servers(actor, &storing, &result, attempt).await {
            Ok(()) => {}
            // A concurrent request with the same key was first: return its result.
            Err(StoreError::KeyUsed) => {
                let earlier = self.earlier_result(actor, attempt).await?.ok_or(EngineError::KeyConflict)?;
                return serde_json::from_str(&earlier).map_err(unreadable);
            }
            Err(error) => return Err(error.into()),
        }
        storing.iter().filter_map(|new| stored.get(&new.name)).for_each(|replaced| self.stop_server(owner, replaced));
        Ok(report)
    }

    /// Returns `None` if the same server already exists.
    fn check_import(
        &self,
        actor: &Actor,
        name: &str,
        settings: Value,
        existing: Option<&CatalogServer>,
        replace: bool,
    ) -> Result<Option<McpServerImport>, ImportProblem> {
        let Value::Object(mut settings) = settings else {
            let message = "its entry must be an object with a command or a url".to_owned();
            return Err(ImportProblem { code: "mcp_config".into(), message });
        };
        // Other programs store additional keys in their files.
        settings.retain(|key, _| KEYS.iter().any(|(known, _)| known == key));
        let current = existing.and_then(|known| known.config.clone().ok());
        let entry = current.clone().map(McpServerEntry::from);
        let config = self.check_new_name(name).and_then(|()| self.parse_config(actor, name, settings, entry.as_ref()));
        let config = config.map_err(|error| {
            let code = match &error {
                EngineError::OperatorOnly(_) => "operator_only",
                EngineError::Conflict(_) => "conflict",
                _ => "mcp_config",
            };
            ImportProblem { code: code.into(), message: error.to_string() }
        })?;
        match existing {
            Some(_) if current.as_ref() == Some(&config) => Ok(None),
            Some(_) if !replace => Err(conflict(format!(
                "an MCP server named {name:?} already exists; import with replace=true, or rename it"
            ))),
            _ => Ok(Some(McpServerImport { name: name.to_owned(), config, replaces: existing.is_some() })),
        }
    }
}

fn conflict(message: String) -> ImportProblem {
    ImportProblem { code: "conflict".into(), message }
}

/// Shortens an invalid name for the report.
fn shorten_name(name: String) -> String {
    if name.chars().count() <= 64 { name } else { name.chars().take(64).chain(['…']).collect() }
}

fn unreadable(error: serde_json::Error) -> EngineError {
    EngineError::Store(StoreError::from(error))
}
