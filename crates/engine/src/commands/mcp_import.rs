//! A `.mcp.json` that is brought in: each server is judged by itself, and what is good is stored at once.

use super::mcp_servers::{KEYS, MAX_STORED, full};
use crate::{Engine, Error, equipment::Known};
use domain::{
    mcp::{Entry, MAX_SERVERS},
    owner::Owner,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{Attempt, McpServerImport};

/// What became of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpImported)]
pub struct Imported {
    pub name: String,
    pub outcome: ImportOutcome,
    /// Why it was refused.
    pub problem: Option<ImportProblem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpImportOutcome)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    Created,
    Replaced,
    /// It was there already, the same.
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
    /// Takes in what it can and says for each what became of it. With `replace`, those of the same name are replaced.
    pub async fn import_mcp_servers(
        &self,
        owner: &Owner,
        servers: Map<String, Value>,
        replace: bool,
        attempt: Option<&Attempt>,
    ) -> Result<Vec<Imported>, Error> {
        if let Some(earlier) = self.earlier(owner, attempt).await? {
            return serde_json::from_str(&earlier).map_err(unreadable);
        }
        if servers.len() > MAX_SERVERS {
            return Err(Error::Invalid(format!("mcpServers: at most {MAX_SERVERS} at once")));
        }
        let stored = self.store().mcp_servers(owner).await?.into_iter().map(|record| self.of_database(record));
        let stored: BTreeMap<String, Known> = stored.map(|known| (known.name.clone(), known)).collect();
        let (mut report, mut storing) = (Vec::new(), Vec::new());
        let mut places = MAX_STORED.saturating_sub(stored.len());
        for (name, settings) in servers {
            let (outcome, problem) = match self.judge(owner, &name, settings, stored.get(&name), replace) {
                Ok(Some(new)) if !new.replaces && places == 0 => (ImportOutcome::Refused, Some(conflict(full()))),
                Ok(Some(new)) => {
                    let outcome = if new.replaces { ImportOutcome::Replaced } else { ImportOutcome::Created };
                    places -= usize::from(!new.replaces);
                    storing.push(new);
                    (outcome, None)
                }
                Ok(None) => (ImportOutcome::Unchanged, None),
                Err(problem) => (ImportOutcome::Refused, Some(problem)),
            };
            report.push(Imported { name: shown(name), outcome, problem });
        }
        let result = serde_json::to_string(&report).map_err(unreadable)?;
        match self.store().import_mcp_servers(owner, &storing, &result, attempt).await {
            Ok(()) => {}
            // Someone with the same key was quicker: answer as they were answered.
            Err(store::Error::KeyUsed) => {
                let earlier = self.earlier(owner, attempt).await?.ok_or(Error::KeyConflict)?;
                return serde_json::from_str(&earlier).map_err(unreadable);
            }
            Err(error) => return Err(error.into()),
        }
        storing.iter().filter_map(|new| stored.get(&new.name)).for_each(|replaced| self.end(owner, replaced));
        Ok(report)
    }

    /// `None`: it is there already, the same.
    fn judge(
        &self,
        owner: &Owner,
        name: &str,
        settings: Value,
        there: Option<&Known>,
        replace: bool,
    ) -> Result<Option<McpServerImport>, ImportProblem> {
        let Value::Object(mut settings) = settings else {
            let message = "its entry must be an object with a command or a url".to_owned();
            return Err(ImportProblem { code: "mcp_config".into(), message });
        };
        // Other programs keep settings of their own in their files.
        settings.retain(|key, _| KEYS.iter().any(|(known, _)| known == key));
        let current = there.and_then(|known| known.config.clone().ok());
        let entry = current.clone().map(Entry::from);
        let config = self.check_free(name).and_then(|()| self.define(owner, name, settings, entry.as_ref()));
        let config = config.map_err(|error| {
            let code = match &error {
                Error::OperatorOnly(_) => "operator_only",
                Error::Conflict(_) => "conflict",
                _ => "mcp_config",
            };
            ImportProblem { code: code.into(), message: error.to_string() }
        })?;
        match there {
            Some(_) if current.as_ref() == Some(&config) => Ok(None),
            Some(_) if !replace => Err(conflict(format!(
                "there is another MCP server named {name:?}; import with replace=true, or give it another name"
            ))),
            _ => Ok(Some(McpServerImport { name: name.to_owned(), config, replaces: there.is_some() })),
        }
    }
}

fn conflict(message: String) -> ImportProblem {
    ImportProblem { code: "conflict".into(), message }
}

/// A name that is none is repeated, but not at length.
fn shown(name: String) -> String {
    if name.chars().count() <= 64 { name } else { name.chars().take(64).chain(['…']).collect() }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::Store(store::Error::Unreadable(error.to_string()))
}
