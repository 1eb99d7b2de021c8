//! The parts of API responses that the command line uses. Unknown fields are ignored: a newer server may add some.

use super::{ApiClient, ClientError};
use crate::cli::find::{Findable, find};
use domain::{
    ids::{AgentId, ApprovalId, BudgetId, MemoryId, MessageId, RoomId, RunId},
    run::Receipt,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// Files of agents, by `FOLDER/FILE`.
#[derive(Deserialize)]
pub struct AgentFilesResponse {
    pub files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub struct AgentImportResponse {
    pub agents: Vec<ImportedAgentResponse>,
}

#[derive(Deserialize)]
pub struct ImportedAgentResponse {
    pub folder: String,
    pub outcome: String,
    pub new_notes: usize,
    pub problem: Option<String>,
}

#[derive(Deserialize)]
pub struct AgentListResponse {
    pub agents: Vec<AgentResponse>,
}

/// The entries as they are: the command prints them.
#[derive(Deserialize)]
pub struct AuditResponse {
    pub entries: Vec<serde_json::Value>,
    /// Where the next page begins; `None` on the last page.
    pub next: Option<String>,
}

#[derive(Clone, Deserialize)]
pub struct AgentResponse {
    pub id: AgentId,
    pub name: String,
    pub provider: String,
    pub model: Option<String>,
}

impl AgentListResponse {
    pub fn names(&self) -> HashMap<AgentId, String> {
        self.agents.iter().map(|agent| (agent.id, agent.name.clone())).collect()
    }

    /// Finds an agent, or says which ones there are.
    pub fn find_or_list(&self, wanted: &str) -> anyhow::Result<&AgentResponse> {
        find("agent", &self.agents, wanted)
    }
}

impl Findable for AgentResponse {
    fn uuid(&self) -> Uuid {
        self.id.0
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Deserialize)]
pub struct RoomListResponse {
    pub rooms: Vec<RoomResponse>,
}

impl RoomListResponse {
    /// The most recent rooms, as many as the server lists at once.
    pub async fn all(client: &ApiClient) -> Result<Self, ClientError> {
        client.get("/api/rooms", &[("limit", "1000")]).await
    }
}

#[derive(Deserialize)]
pub struct RoomResponse {
    pub id: RoomId,
    pub name: String,
    pub agents: Vec<AgentId>,
    pub updated_at: String,
}

impl Findable for RoomResponse {
    fn uuid(&self) -> Uuid {
        self.id.0
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Deserialize)]
pub struct RunListResponse {
    pub runs: Vec<RunResponse>,
}

#[derive(Deserialize)]
pub struct RunResponse {
    pub id: RunId,
}

impl Findable for RunResponse {
    fn uuid(&self) -> Uuid {
        self.id.0
    }

    fn name(&self) -> &str {
        ""
    }
}

#[derive(Deserialize)]
pub struct ApprovalListResponse {
    pub approvals: Vec<PendingApproval>,
}

#[derive(Deserialize)]
pub struct PendingApproval {
    pub id: ApprovalId,
    pub run_id: RunId,
    pub agent_id: AgentId,
    pub tool: String,
    pub input: serde_json::Value,
    pub is_question: bool,
    pub pattern: Option<String>,
}

impl Findable for PendingApproval {
    fn uuid(&self) -> Uuid {
        self.id.0
    }

    fn name(&self) -> &str {
        ""
    }
}

#[derive(Deserialize)]
pub struct MemoryListResponse {
    pub memories: Vec<MemoryResponse>,
}

#[derive(Deserialize)]
pub struct MemoryResponse {
    pub id: MemoryId,
    pub text: String,
    pub created_at: String,
}

#[derive(Deserialize)]
pub struct BudgetListResponse {
    pub budgets: Vec<BudgetResponse>,
}

#[derive(Deserialize)]
pub struct BudgetResponse {
    pub id: BudgetId,
    pub scope: String,
    pub subject_id: Option<Uuid>,
    pub period: String,
    pub limit_usd: f64,
    pub spent_usd: f64,
    pub resets_at: Option<String>,
}

#[derive(Deserialize)]
pub struct CreatedBudgetResponse {
    pub id: BudgetId,
}

#[derive(Deserialize)]
pub struct PostResponse {
    pub message: PostedMessage,
    pub runs: Vec<PostedRun>,
}

#[derive(Deserialize)]
pub struct PostedMessage {
    #[expect(dead_code, reason = "read only to validate the response")]
    pub id: MessageId,
    pub seq: u64,
}

#[derive(Clone, Copy, Deserialize)]
pub struct PostedRun {
    pub id: RunId,
    pub agent_id: AgentId,
}

#[derive(Deserialize)]
pub struct CancelResponse {
    pub status: String,
    pub receipt: Receipt,
}

/// The receipt, for people.
impl std::fmt::Display for CancelResponse {
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
    use super::{AgentListResponse, CancelResponse};
    use serde_json::json;

    #[test]
    fn an_agent_is_found_by_id_or_name() {
        let agent = |id: u8, name: &str| json!({"id": format!("00000000-0000-0000-0000-0000000000{id:02}"), "name": name, "provider": "scripted", "new": 1});
        let agents: AgentListResponse =
            serde_json::from_value(json!({"agents": [agent(1, "Ada"), agent(2, "Bob"), agent(3, "bob")]})).unwrap();
        assert_eq!(agents.find_or_list("bob").unwrap().id, agents.agents[2].id);
        assert_eq!(agents.find_or_list("ADA").unwrap().id, agents.agents[0].id);
        assert!(agents.find_or_list("BOB").is_err(), "the name is ambiguous");
        assert_eq!(agents.find_or_list("00000000-0000-0000-0000-000000000002").unwrap().name, "Bob");
        assert!(agents.find_or_list("eve").is_err());
    }

    #[test]
    fn a_receipt_lists_processes_and_signals() {
        let of = |value| serde_json::from_value::<CancelResponse>(value).unwrap().to_string();
        let receipt = json!({"processes": 2, "signals": ["SIGTERM", "SIGKILL"], "millis": 12});
        assert_eq!(
            of(json!({"status": "cancelled", "receipt": receipt})),
            "cancelled after 12 ms, 2 processes ended (SIGTERM, SIGKILL)"
        );
    }
}
