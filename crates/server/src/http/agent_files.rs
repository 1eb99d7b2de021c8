//! Agents as files: export and import.

use crate::{App, auth::Caller, error::Problem, extract::JsonBody};
use axum::{Json, extract::State};
use engine::commands::ImportedAgent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Files of agents: `FOLDER/agent.toml`, `FOLDER/prompt.md` and `FOLDER/memory.md`, each with its text.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AgentFiles)]
pub struct AgentFilesView {
    /// The text of each file, by `FOLDER/FILE`.
    #[schema(example = json!({"ann/agent.toml": "name = \"Ann\"\nprovider = \"scripted\"\n", "ann/prompt.md": "You are Ann.\n"}))]
    files: BTreeMap<String, String>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = AgentImport)]
pub struct AgentImportView {
    /// One for each folder, by name.
    agents: Vec<ImportedAgent>,
}

/// Export agents as files
///
/// All agents of the workspace: a folder for each, with its settings, its system prompt and its notes.
#[utoipa::path(get, path = "/api/agents/files", tag = "agents", responses((status = 200, body = AgentFilesView)))]
pub async fn export(State(app): State<App>, caller: Caller) -> Result<Json<AgentFilesView>, Problem> {
    Ok(Json(AgentFilesView { files: app.engine.export_agents(&caller).await? }))
}

/// Import agents from files
///
/// An agent with the same name is updated, any other created; notes are added. Rooms use the new settings from the next turn
/// on. A folder with a mistake is refused without holding up the others. Repeating an import changes nothing.
#[utoipa::path(post, path = "/api/agents/files", tag = "agents", request_body = AgentFilesView,
               responses((status = 200, body = AgentImportView)))]
pub async fn import(
    State(app): State<App>,
    caller: Caller,
    JsonBody(AgentFilesView { files }, _): JsonBody<AgentFilesView>,
) -> Result<Json<AgentImportView>, Problem> {
    Ok(Json(AgentImportView { agents: app.engine.import_agents(&caller, files).await? }))
}
