//! What an agent really has: every server and every tool, with the tier that set it, what that hides, and what the agent's
//! policy says of it.

use super::{McpTrustView, mcp_live};
use crate::{
    Engine, Error,
    equipment::{Equipped, ServerProblem, Source, Unused, full_name},
};
use domain::{
    agent::{Agent, ToolPolicy, Verdict},
    ids::{AgentId, RoomId},
    mcp::{Server, Tier},
    owner::Owner,
};
use providers::host_tools;
use serde::Serialize;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use workbench::mcp::Listing;

/// For the lists of all servers together.
const PATIENCE: Duration = Duration::from_secs(30);
/// A page about everything shows the beginning of each description; the server's own page has all of it.
const DESCRIPTION_CHARS: usize = 300;

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Effective)]
pub struct EffectiveView {
    pub agent_id: AgentId,
    pub room_id: Option<RoomId>,
    pub provider: EffectiveProvider,
    /// By name; those that are not used among them.
    pub servers: Vec<EffectiveServer>,
    /// Tools that Greenroom itself gives to the agent.
    pub built_in: Vec<EffectiveTool>,
    /// The `.mcp.json` of the room's folder.
    pub project: Option<McpTrustView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveProvider {
    pub name: String,
    /// Whether it uses MCP servers at all.
    pub mcp: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveServer {
    pub name: String,
    #[serde(flatten)]
    pub tier: TierView,
    pub source: Source,
    #[schema(value_type = Option<String>, examples("stdio", "http", "sse"))]
    pub transport: Option<&'static str>,
    pub state: EffectiveState,
    pub problem: Option<ServerProblem>,
    /// The tiers whose server of the same name it hides, the strongest first.
    pub shadowed: Vec<TierView>,
    /// `null` where they were not asked for or could not be listed.
    pub tools: Option<Vec<EffectiveTool>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectiveState {
    Used,
    Disabled,
    Problem,
    /// It stands in a project's file that nobody has trusted yet.
    Untrusted,
}

/// Where a server was written down: skill over agent over project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTier)]
pub struct TierView {
    #[schema(value_type = String, examples("skill", "agent", "project"))]
    pub tier: &'static str,
    /// Which skill.
    pub skill: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveTool {
    pub name: String,
    /// As the agent's tool policy knows it.
    pub full_name: String,
    pub description: Option<String>,
    pub verdict: VerdictView,
    /// A person has allowed it for good in this room.
    pub remembered: bool,
    /// Why it cannot be used.
    pub quarantined: Option<String>,
}

/// What happens when the agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ToolVerdict)]
#[serde(rename_all = "snake_case")]
pub enum VerdictView {
    Allow,
    Ask,
    Deny,
}

impl From<&Tier> for TierView {
    fn from(tier: &Tier) -> Self {
        match tier {
            Tier::Project => Self { tier: "project", skill: None },
            Tier::Agent => Self { tier: "agent", skill: None },
            Tier::Skill(name) => Self { tier: "skill", skill: Some(name.clone()) },
        }
    }
}

impl Engine {
    /// `with_tools` asks every server that is used for its tools, which may start it.
    pub async fn effective(
        &self,
        owner: &Owner,
        agent: AgentId,
        room: Option<RoomId>,
        with_tools: bool,
    ) -> Result<EffectiveView, Error> {
        let agent = self.store().agent(owner, agent).await?;
        let remembered = match room {
            Some(room) => self.store().remembered_tools(owner, room).await?,
            None => Vec::new(),
        };
        let remembered = remembered.into_iter().filter(|tool| tool.agent_id == agent.id).map(|tool| tool.tool);
        let rules = Rules { policy: &agent.spec.tools, remembered: remembered.collect() };
        let stored = self.skill_servers(owner, &agent.spec).await?;
        let layers = self.skill_layers(&agent.spec, &stored).await;
        let outfit = self.outfit(owner, &agent.spec, layers, room).await?;
        let listings = if with_tools { self.list_all(&outfit.servers).await } else { Vec::new() };
        let mut servers: Vec<EffectiveServer> = Vec::with_capacity(outfit.servers.len());
        for equipped in outfit.servers {
            let missing = match equipped.server {
                Err(Unused::Missing) => Some(self.no_such_server(owner, &equipped.name).await?),
                _ => None,
            };
            servers.push(shown(equipped, missing));
        }
        for (name, listing) in listings {
            let Some(server) = servers.iter_mut().find(|server| server.name == name) else { continue };
            match listing {
                Ok(listing) => server.tools = Some(rules.tools(&name, &listing)),
                Err(problem) => server.problem = Some(problem),
            }
        }
        let uses_mcp = self.providers().get(&agent.spec.provider).is_some_and(|provider| provider.capabilities().mcp);
        Ok(EffectiveView {
            agent_id: agent.id,
            room_id: room,
            built_in: if uses_mcp { rules.built_in() } else { Vec::new() },
            provider: provider_of(&agent, uses_mcp),
            servers,
            project: outfit.project.map(|project| self.trust_view(owner, &project)),
        })
    }

    /// Side by side; what is not there in time is a problem of that server.
    async fn list_all(&self, servers: &[Equipped]) -> Vec<(String, Result<Arc<Listing>, ServerProblem>)> {
        let until = Instant::now() + PATIENCE;
        let mut listing = JoinSet::new();
        for server in servers.iter().filter_map(|equipped| equipped.server.as_ref().ok()) {
            let (engine, server) = (self.clone(), server.clone());
            listing.spawn(async move {
                let listed = match timeout_at(until, engine.mcp().tools(&server)).await {
                    Ok(Ok(listing)) => Ok(listing),
                    Ok(Err(failure)) => Err(problem(engine.mcp_failed(&server, &failure))),
                    Err(_) => Err(problem(mcp_live::too_slow(&server, PATIENCE))),
                };
                (server.name, listed)
            });
        }
        let mut listed = Vec::new();
        while let Some(one) = listing.join_next().await {
            match one {
                Ok(one) => listed.push(one),
                Err(error) => tracing::error!(%error, "a list of MCP tools crashed"),
            }
        }
        listed
    }
}

fn problem(error: Error) -> ServerProblem {
    match error {
        Error::McpFailed { code, message } => ServerProblem { code, message },
        other => ServerProblem { code: "mcp_failed", message: other.to_string() },
    }
}

fn provider_of(agent: &Agent, mcp: bool) -> EffectiveProvider {
    EffectiveProvider { name: agent.spec.provider.clone(), mcp }
}

fn shown(equipped: Equipped, missing: Option<String>) -> EffectiveServer {
    let (state, problem) = match equipped.server {
        Ok(Server { .. }) => (EffectiveState::Used, None),
        Err(Unused::Disabled) => (EffectiveState::Disabled, None),
        Err(Unused::Untrusted) => (EffectiveState::Untrusted, None),
        Err(Unused::Missing) => {
            (EffectiveState::Problem, Some(ServerProblem::new("mcp_server_missing", missing.unwrap_or_default())))
        }
        Err(Unused::Problem(problem)) => (EffectiveState::Problem, Some(problem)),
    };
    EffectiveServer {
        name: equipped.name,
        tier: TierView::from(&equipped.tier),
        source: equipped.source,
        transport: equipped.transport,
        state,
        problem,
        shadowed: equipped.shadowed.iter().map(TierView::from).collect(),
        tools: None,
    }
}

/// What decides about a call, as `turn::Machine` does.
struct Rules<'a> {
    policy: &'a ToolPolicy,
    remembered: BTreeSet<String>,
}

impl Rules<'_> {
    fn verdict(&self, full_name: &str, is_question: bool) -> (VerdictView, bool) {
        let remembered = self.remembered.contains(full_name);
        let verdict = match self.policy.verdict(full_name) {
            Verdict::Deny => VerdictView::Deny,
            _ if is_question => VerdictView::Ask,
            Verdict::Ask if remembered => VerdictView::Allow,
            Verdict::Ask => VerdictView::Ask,
            Verdict::Allow => VerdictView::Allow,
        };
        (verdict, remembered)
    }

    fn tool(&self, server: &str, name: &str, description: Option<&str>, is_question: bool) -> EffectiveTool {
        let full_name = full_name(server, name);
        let (verdict, remembered) = self.verdict(&full_name, is_question);
        let description = description.map(|text| match text.char_indices().nth(DESCRIPTION_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        });
        EffectiveTool { name: name.to_owned(), full_name, description, verdict, remembered, quarantined: None }
    }

    fn tools(&self, server: &str, listing: &Listing) -> Vec<EffectiveTool> {
        let good = listing.tools.iter().map(|tool| self.tool(server, &tool.name, tool.description.as_deref(), false));
        let bad = listing.quarantined.iter().map(|bad| {
            let tool = self.tool(server, bad.name.as_deref().unwrap_or_default(), None, false);
            EffectiveTool { verdict: VerdictView::Deny, quarantined: Some(bad.reason.clone()), ..tool }
        });
        good.chain(bad).collect()
    }

    fn built_in(&self) -> Vec<EffectiveTool> {
        let tool = |tool: &host_tools::Definition| {
            self.tool(host_tools::SERVER, tool.name, Some(tool.description), tool.name == "ask_user")
        };
        host_tools::TOOLS.iter().map(tool).collect()
    }
}
