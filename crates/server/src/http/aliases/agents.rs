//! `/api/strapi/agents`: agents with the field names of a content management system.

use super::{AliasPage, AliasPageInfo};
use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{WriteOutcome, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::Actor,
    agent::{Agent, AgentSpec},
    ids::AgentId,
    name::{ListedName, Name},
    time::Timestamp,
};
use engine::commands::InspectionView;
use serde::{Deserialize, Serialize};

/// An agent, or `agent` with one. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct StrapiAgentBody {
    /// The agent, if it is not the body itself.
    #[serde(default)]
    agent: Option<StrapiAgentSpec>,
    #[serde(flatten)]
    fields: StrapiAgentSpec,
}

impl StrapiAgentBody {
    fn spec(self) -> StrapiAgentSpec {
        self.agent.unwrap_or(self.fields)
    }
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiAgentSpec {
    /// The name of the agent; required to create one.
    name: Option<Name>,
    /// By default the first provider that is ready on this server.
    provider: Option<String>,
    /// Instructions that the agent gets with every message.
    #[schema(max_length = 262144)]
    system_prompt: Option<String>,
    /// The model that answers.
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^-\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    model: Option<String>,
    /// Another place for `model`.
    model_config: Option<StrapiModelConfig>,
    /// The names of skills.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    skills: Option<Vec<String>>,
    /// The names of MCP servers.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    mcp_servers: Option<Vec<String>>,
    /// Tools that need no approval.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    allowed_tools: Option<Vec<String>>,
    /// Tools that the agent may not use.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    disallowed_tools: Option<Vec<String>>,
    /// Another place for the lists of tools.
    tool_config: Option<StrapiToolConfig>,
}

#[derive(Deserialize, utoipa::ToSchema)]
pub struct StrapiModelConfig {
    /// The model that answers.
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^-\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    model: Option<String>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiToolConfig {
    /// Tools that need no approval.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    allowed_tools: Option<Vec<String>>,
    /// Tools that the agent may not use.
    #[schema(value_type = Option<Vec<ListedName>>, max_items = 200)]
    disallowed_tools: Option<Vec<String>>,
}

impl StrapiAgentSpec {
    /// The settings with the fields that are present.
    fn apply(&self, current: &AgentSpec) -> AgentSpec {
        let mut spec = current.clone();
        let tools = self.tool_config.as_ref();
        let model = self.model.as_ref().or_else(|| self.model_config.as_ref()?.model.as_ref());
        let allowed = self.allowed_tools.as_ref().or_else(|| tools?.allowed_tools.as_ref());
        let disallowed = self.disallowed_tools.as_ref().or_else(|| tools?.disallowed_tools.as_ref());
        set(&mut spec.name, self.name.as_ref());
        set(&mut spec.provider, self.provider.as_ref());
        set(&mut spec.skills, self.skills.as_ref());
        set(&mut spec.mcp_servers, self.mcp_servers.as_ref());
        set(&mut spec.tools.allow, allowed);
        set(&mut spec.tools.deny, disallowed);
        spec.system_prompt = self.system_prompt.clone().or(spec.system_prompt);
        spec.model = model.cloned().or(spec.model);
        spec
    }
}

fn set<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiAgent {
    /// The id of the agent.
    id: AgentId,
    /// The name of the agent.
    name: Name,
    /// The provider that answers.
    provider: String,
    /// Instructions that the agent gets with every message.
    system_prompt: Option<String>,
    /// The model that answers; `null` for the default of the provider.
    model: Option<String>,
    /// The names of its skills.
    skills: Vec<String>,
    /// The names of its MCP servers.
    mcp_servers: Vec<String>,
    /// Tools that need no approval.
    allowed_tools: Vec<String>,
    /// Tools that the agent may not use.
    disallowed_tools: Vec<String>,
    /// Always true: an agent is deleted instead.
    enabled: bool,
    /// When the agent was created.
    created_at: Timestamp,
    /// When the agent was last changed.
    updated_at: Timestamp,
}

impl From<Agent> for StrapiAgent {
    fn from(Agent { id, spec, created_at, updated_at }: Agent) -> Self {
        let AgentSpec { name, provider, system_prompt, model, skills, mcp_servers, tools, .. } = spec;
        let (allowed_tools, disallowed_tools) = (tools.allow, tools.deny);
        Self {
            id,
            name,
            provider,
            system_prompt,
            model,
            skills,
            mcp_servers,
            allowed_tools,
            disallowed_tools,
            enabled: true,
            created_at,
            updated_at,
        }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StrapiAgentList {
    /// The agents of the page.
    data: Vec<StrapiAgent>,
    /// Which page it is.
    meta: AliasPageInfo,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiAgentSaved {
    /// Always true; an error is a problem with its status.
    success: bool,
    /// The id of the agent.
    agent_id: AgentId,
    /// The agent as it is now.
    agent: StrapiAgent,
    /// What was done, for people.
    message: String,
}

impl StrapiAgentSaved {
    fn new(agent: Agent, verb: &str) -> Self {
        let message = format!("Agent {:?} {verb}", agent.spec.name.as_str());
        Self { success: true, agent_id: agent.id, agent: agent.into(), message }
    }
}

/// List agents at another server's path
///
/// Alias of `GET /api/agents`.
#[utoipa::path(get, path = "/api/strapi/agents", tag = "aliases", params(AliasPage),
               responses((status = 200, body = StrapiAgentList)))]
pub async fn list_strapi_agents(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<AliasPage>,
) -> Result<Json<StrapiAgentList>, Problem> {
    let agents = app.engine.queries().agents(&caller.workspace).await?;
    let (agents, meta) = page
        .select(agents, |agent| [agent.spec.name.to_string(), agent.spec.system_prompt.clone().unwrap_or_default()]);
    Ok(Json(StrapiAgentList { data: agents.into_iter().map(StrapiAgent::from).collect(), meta }))
}

/// Get an agent at another server's path
///
/// Alias of `GET /api/agents/{id}`.
#[utoipa::path(get, path = "/api/strapi/agents/{id}", tag = "aliases", params(("id" = AgentId, Path)),
               responses((status = 200, body = StrapiAgent)))]
pub async fn get_strapi_agent(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
) -> Result<Json<StrapiAgent>, Problem> {
    Ok(Json(app.engine.queries().agent(&caller.workspace, id).await?.into()))
}

/// Create an agent at another server's path
///
/// Alias of `POST /api/agents`.
#[utoipa::path(post, path = "/api/strapi/agents", tag = "aliases", request_body = StrapiAgentBody,
               responses((status = 201, body = StrapiAgentSaved)))]
pub async fn create_strapi_agent(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(body, fingerprint): JsonBody<StrapiAgentBody>,
) -> Result<(StatusCode, Json<StrapiAgentSaved>), Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let fields = body.spec();
    let name = fields.name.clone();
    let name = name.ok_or_else(|| Problem::unprocessable("name: an agent needs a name.").with("pointer", "/name"))?;
    let provider = match &fields.provider {
        Some(provider) => provider.clone(),
        None => ready_provider(&app, actor).await?,
    };
    let spec = fields.apply(&AgentSpec::new(name, provider));
    let write = async { Ok(app.engine.create_agent(actor, spec, attempt.as_ref()).await?) };
    let agent = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(id) => {
            app.engine.queries().agent(&actor.workspace, id.parse().map_err(Problem::internal)?).await?
        }
    };
    Ok((StatusCode::CREATED, Json(StrapiAgentSaved::new(agent, "created"))))
}

async fn ready_provider(app: &App, actor: &Actor) -> Result<String, Problem> {
    let providers = app.engine.providers_of(actor).await?.into_iter();
    let mut ready = providers.filter(|provider| matches!(provider.inspection, InspectionView::Ready { .. }));
    let name = ready.next().map(|provider| provider.name);
    name.ok_or_else(|| {
        Problem::unprocessable("provider: no provider is ready on this server; name one.").with("pointer", "/provider")
    })
}

/// Update an agent at another server's path
///
/// Alias of `PATCH /api/agents/{id}`: fields in the body are replaced, all others stay.
#[utoipa::path(put, path = "/api/strapi/agents/{id}", tag = "aliases", params(("id" = AgentId, Path)),
               request_body = StrapiAgentBody, responses((status = 200, body = StrapiAgentSaved)))]
pub async fn update_strapi_agent(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    key: IdempotencyKey,
    JsonBody(body, fingerprint): JsonBody<StrapiAgentBody>,
) -> Result<Json<StrapiAgentSaved>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let fields = body.spec();
    let merge = |spec: &AgentSpec| Ok::<_, Problem>(fields.apply(spec));
    let write = app.engine.change_agent(actor, id, merge, attempt.as_ref());
    let agent = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(agent) => agent,
        WriteOutcome::AlreadyDone(_) => app.engine.queries().agent(&actor.workspace, id).await?,
    };
    Ok(Json(StrapiAgentSaved::new(agent, "updated")))
}

/// Delete an agent at another server's path
///
/// Alias of `DELETE /api/agents/{id}`.
#[utoipa::path(delete, path = "/api/strapi/agents/{id}", tag = "aliases", params(("id" = AgentId, Path)),
               responses((status = 204)))]
pub async fn delete_strapi_agent(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_agent(actor, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
