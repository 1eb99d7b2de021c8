//! Tools that a user has always allowed, for one agent in one room.

use super::audit::store_audit;
use crate::{
    Store, StoreError,
    commit::{ChangeContext, Statement, without_nul},
    database::{reading, writing},
    error::Result,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
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

pub(crate) fn remember(context: &ChangeContext, agent_id: AgentId, tool: &str) -> Statement {
    Statement::new(
        "INSERT INTO room_tools (room_id, agent_id, tool, created_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (room_id, agent_id, tool) DO NOTHING",
    )
    .with(context.room.0)
    .with(agent_id.0)
    .with(without_nul(tool))
    .with(context.now.as_millis())
}

impl Store {
    /// Returns the tools of a room, sorted by agent and name.
    pub async fn remembered_tools(&self, owner: &Owner, room: RoomId) -> Result<Vec<RememberedTool>> {
        // One query, because every run waits for it before its first token. A room without tools gives a row of NULLs.
        let rows: Vec<(Option<Uuid>, Option<String>, Option<i64>)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT t.agent_id, t.tool, t.created_at FROM rooms r LEFT JOIN room_tools t ON t.room_id = r.id \
                 WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        if rows.is_empty() {
            return Err(StoreError::NotFound);
        }
        let tool = |(agent, tool, created_at): (Option<Uuid>, _, Option<i64>)| {
            let (agent_id, created_at) = (AgentId(agent?), Timestamp::from_millis(created_at?));
            Some(RememberedTool { agent_id, tool: tool?, created_at })
        };
        let mut tools: Vec<RememberedTool> = rows.into_iter().filter_map(tool).collect();
        // Sorted here because the databases collate text differently.
        tools.sort_unstable_by(|a, b| (a.agent_id, &a.tool).cmp(&(b.agent_id, &b.tool)));
        Ok(tools)
    }

    /// Removes a tool. Succeeds if it was not remembered.
    pub async fn forget_tool(&self, actor: &Actor, room: RoomId, agent: AgentId, tool: &str) -> Result<()> {
        let owner = &actor.workspace;
        writing!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(ROOM).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            sqlx::query("DELETE FROM room_tools WHERE room_id = $1 AND agent_id = $2 AND tool = $3")
                .bind(room.0)
                .bind(agent.0)
                .bind(without_nul(tool))
                .execute(&mut *transaction)
                .await?;
            let entry = AuditEntry::new(actor, AuditAction::Forget, AuditedObject::Tool, tool).in_room(room);
            store_audit!(transaction, entry, Timestamp::now());
        });
        Ok::<(), StoreError>(())
    }
}
