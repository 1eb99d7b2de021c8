//! Agents: configured personas.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{WriteOutcome, apply_merge_patch, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::Actor,
    agent::{Agent, AgentSpec, MAX_SYSTEM_PROMPT_BYTES},
    ids::AgentId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, utoipa::ToSchema)]
pub struct AgentList {
    agents: Vec<Agent>,
}

/// List agents
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses((status = 200, body = AgentList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<AgentList>, Problem> {
    Ok(Json(AgentList { agents: app.engine.store().agents(&caller.workspace).await? }))
}

/// Create an agent
#[utoipa::path(post, path = "/api/agents", tag = "agents", request_body = AgentSpec,
               responses((status = 201, body = Agent),
                         (status = 422, description = "The agent names an unknown skill or MCP server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<AgentSpec>,
) -> Result<(StatusCode, Json<Agent>), Problem> {
    check(&app, &caller, &spec).await?;
    let (store, actor, attempt) = (app.engine.store(), &*caller, attempt(key, fingerprint));
    let write = async { Ok(store.create_agent(&actor.workspace, spec, attempt.as_ref()).await?) };
    let agent = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(id) => store.agent(&actor.workspace, id.parse().map_err(Problem::internal)?).await?,
    };
    Ok((StatusCode::CREATED, Json(agent)))
}

/// Get an agent
#[utoipa::path(get, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path)),
               responses((status = 200, body = Agent)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<AgentId>) -> Result<Json<Agent>, Problem> {
    Ok(Json(app.engine.store().agent(&caller.workspace, id).await?))
}

/// Update an agent
///
/// A merge patch (RFC 7396): fields in the body are replaced, `null` clears a field, all others stay. Runs that have
/// started keep the old settings.
#[utoipa::path(patch, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path)),
               request_body = Value,
               responses((status = 200, body = Agent),
                         (status = 422, description = "The agent names an unknown skill or MCP server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    key: IdempotencyKey,
    JsonBody(patch, fingerprint): JsonBody<Value>,
) -> Result<Json<Agent>, Problem> {
    let (store, actor, attempt) = (app.engine.store(), &*caller, attempt(key, fingerprint));
    let write = async {
        let agent = store.agent(&actor.workspace, id).await?;
        let spec: AgentSpec = apply_merge_patch(&agent.spec, patch)?;
        check(&app, actor, &spec).await?;
        Ok(store.update_agent(&actor.workspace, id, spec, attempt.as_ref()).await?)
    };
    Ok(Json(match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(_) => store.agent(&actor.workspace, id).await?,
    }))
}

/// Delete an agent
///
/// The agent leaves every room. Its messages stay.
#[utoipa::path(delete, path = "/api/agents/{id}", tag = "agents", params(("id" = AgentId, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.store().delete_agent(&actor.workspace, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

const MAX_LIST: usize = 200;
const MAX_NAME: usize = 200;

async fn check(app: &App, actor: &Actor, spec: &AgentSpec) -> Result<(), Problem> {
    let providers = app.engine.providers();
    if providers.get(&spec.provider).is_none() {
        return Err(Problem::invalid(format!(
            "provider: this server has no provider {:?}; choose one of: {}.",
            spec.provider,
            providers.names()
        ))
        .with("pointer", "/provider"));
    }
    if spec.system_prompt.as_ref().is_some_and(|prompt| prompt.len() > MAX_SYSTEM_PROMPT_BYTES) {
        return Err(Problem::invalid(format!("system_prompt: at most {MAX_SYSTEM_PROMPT_BYTES} bytes.")));
    }
    let name_lists = [&spec.skills, &spec.mcp_servers, &spec.tools.allow, &spec.tools.ask, &spec.tools.deny];
    let is_bad_name =
        |name: &String| name.is_empty() || name.chars().count() > MAX_NAME || name.contains(char::is_control);
    if name_lists.iter().any(|list| list.len() > MAX_LIST || list.iter().any(is_bad_name))
        || spec.model.as_ref().is_some_and(is_bad_name)
    {
        return Err(Problem::invalid(format!(
            "model, skills, mcp_servers and tools take one-line names of 1 to {MAX_NAME} characters, at most {MAX_LIST} each."
        )));
    }
    let values: usize = spec.skill_parameters.values().map(|given| given.len()).sum();
    if values > MAX_LIST || spec.skill_parameters.keys().any(is_bad_name) {
        return Err(Problem::invalid(format!("skill_parameters: at most {MAX_LIST} values.")));
    }
    let limits = &spec.limits;
    let counts = [
        limits.turns,
        limits.wall_seconds,
        limits.first_byte_seconds,
        limits.idle_seconds,
        limits.tool_seconds,
        limits.approval_seconds,
    ];
    if counts.contains(&Some(0)) || limits.output_bytes == Some(0) {
        return Err(Problem::invalid("limits: a limit is at least 1; leave it out for the server's default."));
    }
    Ok(app.engine.check_agent(&actor.workspace, spec).await?)
}

/// The page size of a list.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageLimit {
    /// Maximum number of entries, newest first.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

impl PageLimit {
    pub fn get(&self) -> Result<u32, Problem> {
        match self.limit.unwrap_or(200) {
            limit @ 1..=1000 => Ok(limit),
            _ => Err(Problem::invalid("limit: a number from 1 to 1000.")),
        }
    }
}

pub type LimitParams = QueryParams<PageLimit>;
