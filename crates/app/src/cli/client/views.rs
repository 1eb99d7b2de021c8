//! The parts of the API's answers that the command line uses. Unknown fields are ignored: a newer server may add some.

use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    run::Receipt,
};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
pub struct Agents {
    pub agents: Vec<Agent>,
}

#[derive(Clone, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub name: String,
    pub provider: String,
    pub model: Option<String>,
}

impl Agents {
    pub fn names(&self) -> HashMap<AgentId, String> {
        self.agents.iter().map(|agent| (agent.id, agent.name.clone())).collect()
    }

    /// By id, by exact name, or by name in another case when only one agent has it.
    pub fn find(&self, wanted: &str) -> Option<&Agent> {
        if let Ok(id) = wanted.parse::<AgentId>() {
            return self.agents.iter().find(|agent| agent.id == id);
        }
        self.agents.iter().find(|agent| agent.name == wanted).or_else(|| {
            let mut alike = self.agents.iter().filter(|agent| agent.name.to_lowercase() == wanted.to_lowercase());
            alike.next().filter(|_| alike.next().is_none())
        })
    }
}

#[derive(Deserialize)]
pub struct Rooms {
    pub rooms: Vec<Room>,
}

#[derive(Deserialize)]
pub struct Room {
    pub id: RoomId,
    pub name: String,
    pub agents: Vec<AgentId>,
    pub head: u64,
    pub updated_at: String,
}

#[derive(Deserialize)]
pub struct Posted {
    pub message: PostedMessage,
    pub runs: Vec<PostedRun>,
}

#[derive(Deserialize)]
pub struct PostedMessage {
    #[expect(dead_code, reason = "part of the shape that is checked on reading")]
    pub id: MessageId,
    pub seq: u64,
}

#[derive(Clone, Copy, Deserialize)]
pub struct PostedRun {
    pub id: RunId,
    pub agent_id: AgentId,
}

#[derive(Deserialize)]
pub struct Cancelled {
    pub status: String,
    pub receipt: Receipt,
}

/// What stopping took, for people.
impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Receipt { processes, signals, millis } = &self.receipt;
        write!(f, "{} after {millis} ms", self.status)?;
        match processes {
            0 => Ok(()),
            1 => write!(f, ", 1 process ended ({})", signals.join(", ")),
            n => write!(f, ", {n} processes ended ({})", signals.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Agents, Cancelled};
    use serde_json::json;

    #[test]
    fn an_agent_is_found_by_id_or_name() {
        let agent = |id: u8, name: &str| json!({"id": format!("00000000-0000-0000-0000-0000000000{id:02}"), "name": name, "provider": "scripted", "new": 1});
        let agents: Agents =
            serde_json::from_value(json!({"agents": [agent(1, "Ada"), agent(2, "Bob"), agent(3, "bob")]})).unwrap();
        assert_eq!(agents.find("bob").unwrap().id, agents.agents[2].id);
        assert_eq!(agents.find("ADA").unwrap().id, agents.agents[0].id);
        assert!(agents.find("BOB").is_none(), "two are meant");
        assert_eq!(agents.find("00000000-0000-0000-0000-000000000002").unwrap().name, "Bob");
        assert!(agents.find("eve").is_none());
    }

    #[test]
    fn a_receipt_says_what_was_stopped() {
        let of = |value| serde_json::from_value::<Cancelled>(value).unwrap().to_string();
        let receipt = json!({"processes": 2, "signals": ["SIGTERM", "SIGKILL"], "millis": 12});
        assert_eq!(
            of(json!({"status": "cancelled", "receipt": receipt})),
            "cancelled after 12 ms, 2 processes ended (SIGTERM, SIGKILL)"
        );
    }
}
