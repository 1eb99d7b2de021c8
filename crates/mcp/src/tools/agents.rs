//! Who can be asked.

use super::arguments::{Nothing, Trouble};
use crate::handler::Asking;
use domain::agent::Agent;
use serde_json::{Value, json};

/// How many are named where only a hint is wanted.
const NAMED: usize = 50;

pub async fn list(asking: &Asking<'_>, _: Nothing) -> Result<Value, Trouble> {
    let agents = asking.agents().await?;
    let shown = |agent: &Agent| {
        json!({"id": agent.id, "name": agent.spec.name, "provider": agent.spec.provider, "model": agent.spec.model,
               "skills": agent.spec.skills})
    };
    Ok(json!({"agents": agents.iter().map(shown).collect::<Vec<_>>()}))
}

/// In words.
pub fn who(agents: &[Agent]) -> String {
    let names: Vec<&str> = agents.iter().take(NAMED).map(|agent| agent.spec.name.as_str()).collect();
    match (names.is_empty(), agents.len() > NAMED) {
        (true, _) => "There are no agents yet; make one in the web app or by POST /api/agents.".into(),
        (false, false) => format!("Agents: {}.", names.join(", ")),
        (false, true) => format!("Agents: {}, and more: see list_agents.", names.join(", ")),
    }
}
