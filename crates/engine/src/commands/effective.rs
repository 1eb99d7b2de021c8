//! The effective MCP servers and tools of an agent: the tier that defines each, what it hides, and the policy's
//! verdict.

use super::{McpTrustView, mcp_live};
use crate::{
    Engine, EngineError,
    mcp_servers::{McpServerSource, ResolvedServer, ServerProblem, ServerUnavailable},
};
use domain::{
    actor::Actor,
    agent::{Agent, PolicyDecision, ToolPolicy},
    approval::RememberScope,
    ids::{AgentId, RoomId},
    mcp::{McpTier, McpTransport, NamedMcpServer, tool_name},
    permission::Permission,
};
use providers::host_tools::{HostToolAudience, HostToolDefinition, HostTools, SERVER_NAME, tools::ASK_USER};
use serde::Serialize;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use workbench::{
    mcp::{McpToolListing, PlacedMcpServer},
    project_sandbox::SandboxSpec,
};

/// The time limit for listing the tools of all servers.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Descriptions are shortened here; the server's own tool list has the full text.
const DESCRIPTION_CHARS: usize = 300;

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Effective)]
pub struct EffectiveView {
    pub agent_id: AgentId,
    pub room_id: Option<RoomId>,
    pub provider: EffectiveProvider,
    /// All servers by name, including those that are not used.
    pub servers: Vec<EffectiveServer>,
    /// The built-in tools of Greenroom.
    pub built_in: Vec<EffectiveTool>,
    /// The `.mcp.json` of the room's workspace.
    pub project: Option<McpTrustView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveProvider {
    pub name: String,
    /// Whether the provider supports MCP servers.
    pub mcp: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveServer {
    pub name: String,
    #[serde(flatten)]
    pub tier: TierView,
    pub source: McpServerSource,
    #[schema(value_type = Option<String>, examples("stdio", "http", "sse"))]
    pub transport: Option<&'static str>,
    pub state: EffectiveState,
    pub problem: Option<ServerProblem>,
    /// The tiers whose server of the same name it hides, strongest first.
    pub shadowed: Vec<TierView>,
    /// `null` if not requested or if they could not be listed.
    pub tools: Option<Vec<EffectiveTool>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectiveState {
    Used,
    Disabled,
    Problem,
    /// Its `.mcp.json` in the workspace is not trusted.
    Untrusted,
}

/// The tier that defines a server. Skill overrides agent, agent overrides project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTier)]
pub struct TierView {
    #[schema(value_type = String, examples("skill", "agent", "project"))]
    pub tier: &'static str,
    /// The name of the skill, for the skill tier.
    pub skill: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveTool {
    pub name: String,
    /// The name that the agent's tool policy uses.
    pub full_name: String,
    pub description: Option<String>,
    pub verdict: VerdictView,
    /// Whether a person has allowed it for good in this room.
    pub remembered: bool,
    /// Why the tool cannot be used.
    pub quarantined: Option<String>,
}

/// What happens when the agent calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ToolVerdict)]
#[serde(rename_all = "snake_case")]
pub enum VerdictView {
    Allow,
    Ask,
    Deny,
}

impl From<&McpTier> for TierView {
    fn from(tier: &McpTier) -> Self {
        match tier {
            McpTier::Project => Self { tier: "project", skill: None },
            McpTier::Agent => Self { tier: "agent", skill: None },
            McpTier::Skill(name) => Self { tier: "skill", skill: Some(name.clone()) },
        }
    }
}

impl Engine {
    /// With `with_tools`, lists the tools of every used server, which may start it.
    pub async fn effective(
        &self,
        actor: &Actor,
        agent: AgentId,
        room: Option<RoomId>,
        with_tools: bool,
    ) -> Result<EffectiveView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let agent = self.store().agent(owner, agent).await?;
        let remembered = match room {
            Some(room) => self.store().remembered_tools(owner, room).await?,
            None => Vec::new(),
        };
        // Rules for some calls of a tool do not change what the tool needs in general.
        let is_whole = |tool: &store::RememberedTool| tool.rule.scope() == RememberScope::Tool;
        let remembered = remembered.into_iter().filter(|tool| tool.agent_id == agent.id && is_whole(tool));
        let remembered = remembered.map(|tool| tool.rule.tool);
        let host_tools = &self.config().host_tools;
        let rules = ToolRules { policy: &agent.spec.tools, remembered: remembered.collect(), host_tools };
        let stored = self.skill_servers(owner, &agent.spec).await?;
        let tiers = self.skill_tiers(&agent.spec, &stored).await;
        let resolved = self.resolve_servers(owner, &agent.spec, tiers, room).await?;
        let sandbox = match room.filter(|_| with_tools) {
            Some(room) => self.servers_sandbox(owner, room).await?,
            None => Ok(None),
        };
        let listings = if with_tools { self.list_all(&resolved.servers, sandbox).await } else { Vec::new() };
        let mut servers: Vec<EffectiveServer> = Vec::with_capacity(resolved.servers.len());
        for server in resolved.servers {
            let missing = match server.server {
                Err(ServerUnavailable::Missing) => Some(self.unknown_server_message(owner, &server.name).await?),
                _ => None,
            };
            servers.push(server_view(server, missing));
        }
        for (name, listing) in listings {
            let Some(server) = servers.iter_mut().find(|server| server.name == name) else { continue };
            match listing {
                Ok(listing) => server.tools = Some(rules.tools(&name, &listing)),
                Err(problem) => server.problem = Some(problem),
            }
        }
        let provider = self.provider_of(owner, &agent.spec.provider).await?;
        let uses_mcp = provider.is_some_and(|provider| provider.capabilities().mcp);
        Ok(EffectiveView {
            agent_id: agent.id,
            room_id: room,
            built_in: if uses_mcp { rules.built_in() } else { Vec::new() },
            provider: provider_view(&agent, uses_mcp),
            servers,
            project: resolved.mcp_file.map(|project| self.trust_view(owner, &project)),
        })
    }

    /// Lists the tools of all servers concurrently, of programs in this sandbox; a timeout is reported as a problem of that
    /// server.
    async fn list_all(
        &self,
        servers: &[ResolvedServer],
        sandbox: Result<Option<Arc<SandboxSpec>>, String>,
    ) -> Vec<(String, Result<Arc<McpToolListing>, ServerProblem>)> {
        let mut listed = Vec::new();
        let until = Instant::now() + LIST_TIMEOUT;
        let mut listing = JoinSet::new();
        for server in servers.iter().filter_map(|resolved| resolved.server.as_ref().ok()) {
            let placed = match (&sandbox, &server.config.transport) {
                (Err(why), McpTransport::Stdio { .. }) => {
                    listed.push((server.name.clone(), Err(ServerProblem { code: "no_sandbox", message: why.clone() })));
                    continue;
                }
                (sandbox, _) => {
                    let sandbox = sandbox.as_ref().ok().and_then(Option::as_ref);
                    PlacedMcpServer::new(server.clone(), sandbox)
                }
            };
            let (engine, server) = (self.clone(), server.clone());
            listing.spawn(async move {
                let listed = match timeout_at(until, engine.mcp().tools_of(&placed)).await {
                    Ok(Ok(listing)) => Ok(listing),
                    Ok(Err(failure)) => Err(server_problem(engine.mcp_failed(&server, &failure))),
                    Err(_) => Err(server_problem(mcp_live::timeout_error(&server, LIST_TIMEOUT))),
                };
                (server.name, listed)
            });
        }
        while let Some(one) = listing.join_next().await {
            match one {
                Ok(one) => listed.push(one),
                Err(error) => tracing::error!(%error, "listing MCP tools panicked"),
            }
        }
        listed
    }
}

fn server_problem(error: EngineError) -> ServerProblem {
    match error {
        EngineError::McpFailed { code, message } => ServerProblem { code, message },
        other => ServerProblem { code: "mcp_failed", message: other.to_string() },
    }
}

fn provider_view(agent: &Agent, mcp: bool) -> EffectiveProvider {
    EffectiveProvider { name: agent.spec.provider.clone(), mcp }
}

fn server_view(resolved: ResolvedServer, missing: Option<String>) -> EffectiveServer {
    let (state, problem) = match resolved.server {
        Ok(NamedMcpServer { .. }) => (EffectiveState::Used, None),
        Err(ServerUnavailable::Disabled) => (EffectiveState::Disabled, None),
        Err(ServerUnavailable::Untrusted) => (EffectiveState::Untrusted, None),
        Err(ServerUnavailable::Missing) => {
            (EffectiveState::Problem, Some(ServerProblem::new("mcp_server_missing", missing.unwrap_or_default())))
        }
        Err(ServerUnavailable::Problem(problem)) => (EffectiveState::Problem, Some(problem)),
    };
    EffectiveServer {
        name: resolved.name,
        tier: TierView::from(&resolved.tier),
        source: resolved.source,
        transport: resolved.transport,
        state,
        problem,
        shadowed: resolved.shadowed.iter().map(TierView::from).collect(),
        tools: None,
    }
}

/// The rules for tool calls, as in `turn::TurnMachine`.
struct ToolRules<'a> {
    policy: &'a ToolPolicy,
    remembered: BTreeSet<String>,
    host_tools: &'a HostTools,
}

impl ToolRules<'_> {
    fn verdict(&self, full_name: &str, is_question: bool) -> (VerdictView, bool) {
        let remembered = self.remembered.contains(full_name);
        let verdict = match self.policy.decide(full_name) {
            PolicyDecision::Deny => VerdictView::Deny,
            _ if is_question => VerdictView::Ask,
            PolicyDecision::Ask if remembered => VerdictView::Allow,
            PolicyDecision::Ask => VerdictView::Ask,
            PolicyDecision::Allow => VerdictView::Allow,
        };
        (verdict, remembered)
    }

    fn tool(&self, server: &str, name: &str, description: Option<&str>, is_question: bool) -> EffectiveTool {
        let full_name = tool_name(server, name);
        let (verdict, remembered) = self.verdict(&full_name, is_question);
        let description = description.map(|text| match text.char_indices().nth(DESCRIPTION_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        });
        EffectiveTool { name: name.to_owned(), full_name, description, verdict, remembered, quarantined: None }
    }

    fn tools(&self, server: &str, listing: &McpToolListing) -> Vec<EffectiveTool> {
        let good = listing.tools.iter().map(|tool| self.tool(server, &tool.name, tool.description.as_deref(), false));
        let bad = listing.quarantined.iter().map(|bad| {
            let tool = self.tool(server, bad.name.as_deref().unwrap_or_default(), None, false);
            EffectiveTool { verdict: VerdictView::Deny, quarantined: Some(bad.reason.clone()), ..tool }
        });
        good.chain(bad).collect()
    }

    fn built_in(&self) -> Vec<EffectiveTool> {
        let for_all = self.host_tools.definitions().filter(|tool| tool.audience == HostToolAudience::EveryAgent);
        let tool = |tool: &HostToolDefinition| {
            self.tool(SERVER_NAME, &tool.name, Some(&tool.description), tool.name == ASK_USER)
        };
        for_all.map(tool).collect()
    }
}
