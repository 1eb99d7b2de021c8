//! The notes that an agent keeps across rooms.

use super::{attempt, named_page::NamedPageParams, run_once};
use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, MemoryId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use store::MemoryRecord;

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Memory)]
pub struct MemoryView {
    id: MemoryId,
    text: String,
    created_at: Timestamp,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct MemoryList {
    memories: Vec<MemoryView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryPatch {
    /// The new text, at most 8 KB.
    #[schema(min_length = 1, max_length = 8192, pattern = "\\S")]
    text: String,
}

/// List an agent's memories
///
/// The notes that the agent has saved for itself, in all rooms, newest first. There are at most 1,000. Only agents on
/// model APIs save notes here; programs such as Claude Code have a memory of their own.
#[utoipa::path(get, path = "/api/agents/{id}/memories", tag = "memories",
               params(("id" = AgentId, Path), NamedPageParams), responses((status = 200, body = MemoryList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<MemoryList>, Problem> {
    let found = app.engine.memories(&caller, agent).await?;
    let (found, next) = page.cut_newest_first(found, |memory| memory.id.to_string())?;
    let view = |MemoryRecord { id, text, created_at }| MemoryView { id, text, created_at };
    Ok(Json(MemoryList { memories: found.into_iter().map(view).collect(), next }))
}

/// Update an agent's memory
///
/// Replaces its text.
#[utoipa::path(patch, path = "/api/agents/{id}/memories/{memory_id}", tag = "memories", request_body = MemoryPatch,
               params(("id" = AgentId, Path), ("memory_id" = MemoryId, Path)), responses((status = 204)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id((agent, id)): Id<(AgentId, MemoryId)>,
    key: IdempotencyKey,
    JsonBody(patch, fingerprint): JsonBody<MemoryPatch>,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.update_memory(actor, agent, id, &patch.text, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete an agent's memory
///
/// Removes it from the list.
#[utoipa::path(delete, path = "/api/agents/{id}/memories/{memory_id}", tag = "memories",
               params(("id" = AgentId, Path), ("memory_id" = MemoryId, Path)), responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id((agent, id)): Id<(AgentId, MemoryId)>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_memory(actor, agent, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
