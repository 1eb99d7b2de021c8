//! The tool that lists agents.

use super::arguments::{McpToolError, NoArguments};
use crate::handler::McpRequestContext;
use domain::agent::Agent;
use serde_json::{Value, json};

/// How many agents a hint names.
const MAX_NAMED: usize = 50;

pub async fn list(ctx: &McpRequestContext<'_>, _: NoArguments) -> Result<Value, McpToolError> {
    let agents = ctx.agents().await?;
    let shown = |agent: &Agent| {
        json!({"id": agent.id, "name": agent.spec.name, "provider": agent.spec.provider, "model": agent.spec.model,
               "skills": agent.spec.skills})
    };
    Ok(json!({"agents": agents.iter().map(shown).collect::<Vec<_>>()}))
}

/// Describes the agents in one sentence.
pub fn describe(agents: &[Agent]) -> String {
    let names: Vec<&str> = agents.iter().take(MAX_NAMED).map(|agent| agent.spec.name.as_str()).collect();
    match (names.is_empty(), agents.len() > MAX_NAMED) {
        (true, _) => "There are no agents yet; create one in the web app or with POST /api/agents.".into(),
        (false, false) => format!("Agents: {}.", names.join(", ")),
        (false, true) => format!("Agents: {}, and more: see list_agents.", names.join(", ")),
    }
}
