//! Memories: notes that an agent saves for itself, across all rooms.

use super::{audit::store_audit, idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{snapshot, writing},
    error::Result,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, MemoryId},
    owner::Owner,
    time::Timestamp,
};
use uuid::Uuid;

/// The limit per agent; old memories are not deleted automatically.
pub const MAX_MEMORIES: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRecord {
    pub id: MemoryId,
    pub text: String,
    pub created_at: Timestamp,
}

const AGENT: &str = "SELECT created_at FROM agents WHERE id = $1 AND owner = $2 AND deleted_at IS NULL";

impl Store {
    /// Saves a memory unless the same text is already saved. Returns false if the limit is reached.
    pub async fn save_memory(&self, actor: &Actor, agent: AgentId, text: &str) -> Result<bool> {
        let owner = &actor.workspace;
        // PostgreSQL text cannot contain NUL.
        let (id, now, text) = (Uuid::now_v7(), Timestamp::now(), text.replace('\0', ""));
        let saved = writing!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(AGENT).bind(agent.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            let known: Option<i64> =
                sqlx::query_scalar("SELECT created_at FROM memories WHERE agent_id = $1 AND text = $2 LIMIT 1")
                    .bind(agent.0)
                    .bind(&text)
                    .fetch_optional(&mut *transaction)
                    .await?;
            let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM memories WHERE agent_id = $1")
                .bind(agent.0)
                .fetch_one(&mut *transaction)
                .await?;
            let has_room = usize::try_from(count).is_ok_and(|count| count < MAX_MEMORIES);
            if known.is_none() && has_room {
                sqlx::query("INSERT INTO memories (id, agent_id, text, created_at) VALUES ($1, $2, $3, $4)")
                    .bind(id)
                    .bind(agent.0)
                    .bind(&text)
                    .bind(now.as_millis())
                    .execute(&mut *transaction)
                    .await?;
                store_audit!(transaction, AuditEntry::new(actor, AuditAction::Create, AuditedObject::Memory, id), now);
            }
            known.is_some() || has_room
        });
        Ok::<bool, StoreError>(saved)
    }

    /// Returns all memories of an agent, newest first.
    pub async fn memories(&self, owner: &Owner, agent: AgentId) -> Result<Vec<MemoryRecord>> {
        let rows: Vec<(Uuid, String, i64)> = snapshot!(self.database(), |transaction| {
            let _: i64 =
                sqlx::query_scalar(AGENT).bind(agent.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            sqlx::query_as("SELECT id, text, created_at FROM memories WHERE agent_id = $1 ORDER BY id DESC")
                .bind(agent.0)
                .fetch_all(&mut *transaction)
                .await?
        });
        let memory = |(id, text, created_at)| MemoryRecord {
            id: MemoryId(id),
            text,
            created_at: Timestamp::from_millis(created_at),
        };
        Ok(rows.into_iter().map(memory).collect())
    }

    /// Replaces the text of a memory.
    pub async fn update_memory(
        &self,
        actor: &Actor,
        agent: AgentId,
        id: MemoryId,
        text: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now, text) = (&actor.workspace, Timestamp::now(), text.replace('\0', ""));
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let _: i64 =
                sqlx::query_scalar(AGENT).bind(agent.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            let updated = sqlx::query("UPDATE memories SET text = $1 WHERE id = $2 AND agent_id = $3")
                .bind(&text)
                .bind(id.0)
                .bind(agent.0)
                .execute(&mut *transaction)
                .await?;
            must_exist(updated.rows_affected())?;
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Update, AuditedObject::Memory, id), now);
        });
        Ok(())
    }

    pub async fn delete_memory(
        &self,
        actor: &Actor,
        agent: AgentId,
        id: MemoryId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let _: i64 =
                sqlx::query_scalar(AGENT).bind(agent.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            let deleted = sqlx::query("DELETE FROM memories WHERE id = $1 AND agent_id = $2")
                .bind(id.0)
                .bind(agent.0)
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Memory, id), now);
        });
        Ok(())
    }
}
