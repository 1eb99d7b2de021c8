//! Tools that a person has allowed once and for all, for one agent in one room.

use crate::{
    Error, Store,
    database::{snapshot, writing},
    error::Result,
};
use domain::{
    ids::{AgentId, RoomId},
    owner::Owner,
    time::Timestamp,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedTool {
    pub agent_id: AgentId,
    pub tool: String,
    pub created_at: Timestamp,
}

const ROOM: &str = "SELECT created_at FROM rooms WHERE id = $1 AND owner = $2 AND deleted_at IS NULL";

impl Store {
    /// By agent and name.
    pub async fn remembered_tools(&self, owner: &Owner, room: RoomId) -> Result<Vec<RememberedTool>> {
        let rows: Vec<(Uuid, String, i64)> = snapshot!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(ROOM).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            sqlx::query_as("SELECT agent_id, tool, created_at FROM room_tools WHERE room_id = $1")
                .bind(room.0)
                .fetch_all(&mut *transaction)
                .await?
        });
        let tool = |(agent, tool, created_at)| RememberedTool {
            agent_id: AgentId(agent),
            tool,
            created_at: Timestamp::from_millis(created_at),
        };
        let mut tools: Vec<RememberedTool> = rows.into_iter().map(tool).collect();
        // Here, not in SQL: databases do not agree on the order of letters.
        tools.sort_unstable_by(|a, b| (a.agent_id, &a.tool).cmp(&(b.agent_id, &b.tool)));
        Ok(tools)
    }

    /// What was not remembered is forgotten as well.
    pub async fn forget_tool(&self, owner: &Owner, room: RoomId, agent: AgentId, tool: &str) -> Result<()> {
        writing!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(ROOM).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            sqlx::query("DELETE FROM room_tools WHERE room_id = $1 AND agent_id = $2 AND tool = $3")
                .bind(room.0)
                .bind(agent.0)
                .bind(tool.replace('\0', ""))
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<(), Error>(())
    }
}
