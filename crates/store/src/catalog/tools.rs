//! What a user has always allowed, for one agent in one room.

use super::audit::store_audit;
use crate::{
    Store, StoreError,
    commit::{ChangeContext, Statement, without_nul},
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::Actor,
    approval::RememberedRule,
    audit::{AuditAction, AuditEntry, AuditedObject},
    hex,
    ids::{AgentId, RoomId},
    owner::Owner,
    time::Timestamp,
};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedTool {
    pub agent_id: AgentId,
    pub rule: RememberedRule,
    pub created_at: Timestamp,
}

row! {
    /// A room joined with one rule; the columns of the rule are NULL for a room without rules.
    struct RuleRow {
        agent_id: Option<Uuid>,
        tool: Option<String>,
        scope: Option<String>,
        detail: Option<String>,
        created_at: Option<i64>,
    }
}

const ROOM: &str = "SELECT created_at FROM rooms WHERE id = $1 AND owner = $2 AND deleted_at IS NULL";

pub(crate) fn remember(context: &ChangeContext, agent_id: AgentId, rule: &RememberedRule) -> Statement {
    let (scope, detail) = rule.to_stored();
    // A whole tool needs no detail; its digest is empty, as in the rows of earlier versions.
    let digest = if detail.is_empty() { String::new() } else { hex::encode(&Sha256::digest(&detail)) };
    Statement::new(
        "INSERT INTO remembered_rules (room_id, agent_id, tool, scope, detail, digest, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (room_id, agent_id, tool, scope, digest) DO NOTHING",
    )
    .with(context.room.0)
    .with(agent_id.0)
    .with(without_nul(&rule.tool))
    .with(scope)
    .with(without_nul(&detail))
    .with(digest)
    .with(context.now.as_millis())
}

impl Store {
    /// Returns the tools of a room, sorted by agent and name.
    pub async fn remembered_tools(&self, owner: &Owner, room: RoomId) -> Result<Vec<RememberedTool>> {
        // One query, because every run waits for it before its first token. A room without tools gives a row of NULLs.
        let rows: Vec<RuleRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT t.agent_id, t.tool, t.scope, t.detail, t.created_at FROM rooms r \
                 LEFT JOIN remembered_rules t ON t.room_id = r.id \
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
        let tool = |row: RuleRow| {
            let (agent_id, created_at) = (AgentId(row.agent_id?), Timestamp::from_millis(row.created_at?));
            let rule = RememberedRule::from_stored(row.tool?, &row.scope?, row.detail?)?;
            Some(RememberedTool { agent_id, rule, created_at })
        };
        let mut tools: Vec<RememberedTool> = rows.into_iter().filter_map(tool).collect();
        // Sorted here because the databases collate text differently.
        tools.sort_unstable_by(|a, b| (a.agent_id, &a.rule).cmp(&(b.agent_id, &b.rule)));
        Ok(tools)
    }

    /// Removes all rules of a tool. Succeeds if it has none.
    pub async fn forget_tool(&self, actor: &Actor, room: RoomId, agent: AgentId, tool: &str) -> Result<()> {
        let owner = &actor.workspace;
        writing!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(ROOM).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            sqlx::query("DELETE FROM remembered_rules WHERE room_id = $1 AND agent_id = $2 AND tool = $3")
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
