//! Agents: configured personas.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{
        Created, PurgeParams, WriteOutcome, attempt, merge_patch::MergePatch, named_page::NamedPageParams, run_once,
    },
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    agent::{Agent, AgentSpec},
    ids::AgentId,
};
use serde::Serialize;

type AgentPatch = MergePatch<AgentSpec>;

#[derive(Serialize, utoipa::ToSchema)]
pub struct AgentList {
    agents: Vec<Agent>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

/// List agents
///
/// In the order of their creation, in pages.
#[utoipa::path(get, path = "/api/agents", tag = "agents", params(NamedPageParams),
               responses((status = 200, body = AgentList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<AgentList>, Problem> {
    // Ids are sorted by the time of their creation.
    let (agents, next) =
        page.cut(app.engine.queries().agents(&caller.workspace).await?, |agent| agent.id.to_string())?;
    Ok(Json(AgentList { agents, next }))
}

/// Create an agent
///
/// Its provider, skills and MCP servers must exist on this server.
#[utoipa::path(post, path = "/api/agents", tag = "agents", request_body = AgentSpec,
               responses((status = 201, body = Agent),
                         (status = 422, description = "The agent names an unknown skill or MCP server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<AgentSpec>,
) -> Result<Created<Agent>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.create_agent(actor, spec, attempt.as_ref()).await?) };
    let agent = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(id) => {
            app.engine.queries().agent(&actor.workspace, id.parse().map_err(Problem::internal)?).await?
        }
    };
    Ok(Created::at("/api/agents", agent.id, agent))
}

/// Get an agent
///
/// Its current settings.
#[utoipa::path(get, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path)),
               responses((status = 200, body = Agent)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<AgentId>) -> Result<Json<Agent>, Problem> {
    Ok(Json(app.engine.queries().agent(&caller.workspace, id).await?))
}

/// Update an agent
///
/// A merge patch (RFC 7396): fields in the body are replaced, `null` clears a field, all others stay. Runs that have
/// started keep the old settings.
#[utoipa::path(patch, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path)),
               request_body = AgentPatch,
               responses((status = 200, body = Agent),
                         (status = 422, description = "The agent names an unknown skill or MCP server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    key: IdempotencyKey,
    JsonBody(patch, fingerprint): JsonBody<AgentPatch>,
) -> Result<Json<Agent>, Problem> {
    let (queries, actor, attempt) = (app.engine.queries(), &*caller, attempt(key, fingerprint));
    let merge = |spec: &AgentSpec| patch.apply_to(spec);
    let write = app.engine.change_agent(actor, id, merge, attempt.as_ref());
    Ok(Json(match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(_) => queries.agent(&actor.workspace, id).await?,
    }))
}

/// Delete an agent
///
/// The agent leaves every room. Its messages stay. Its settings, its memory and its home folder are erased after a grace
/// period.
#[utoipa::path(delete, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path), PurgeParams),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    QueryParams(PurgeParams { purge }): QueryParams<PurgeParams>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async {
        match purge {
            true => app.engine.purge_agent(actor, id, attempt.as_ref()).await?,
            false => app.engine.delete_agent(actor, id, attempt.as_ref()).await?,
        }
        Ok(())
    };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
