//! Agents and the participants of a room.

use super::{audit::store_audit, idempotency::store_key, owned::Delete};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    erase::ErasedObject,
    error::Result,
    notify::OwnerList,
    row::row,
};
use domain::{
    actor::Actor,
    agent::{Agent, AgentSpec},
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, RoomId},
    owner::Owner,
    room::RoomPolicy,
    time::Timestamp,
};
use uuid::Uuid;

row! {
    struct AgentRow {
        id: Uuid,
        spec: String,
        created_at: i64,
        updated_at: i64,
    }
}

row! {
    /// A room joined with one participant; agent columns are NULL for an empty room.
    struct RoomAgentRow {
        policy: String,
        id: Option<Uuid>,
        spec: Option<String>,
        created_at: Option<i64>,
        updated_at: Option<i64>,
    }
}

impl RoomAgentRow {
    fn agent(self) -> Option<AgentRow> {
        let Self { id, spec, created_at, updated_at, .. } = self;
        Some(AgentRow { id: id?, spec: spec?, created_at: created_at?, updated_at: updated_at? })
    }
}

impl TryFrom<AgentRow> for Agent {
    type Error = StoreError;
    fn try_from(row: AgentRow) -> Result<Self> {
        Ok(Self {
            id: AgentId(row.id),
            spec: serde_json::from_str(&row.spec)?,
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        })
    }
}

/// Maps a unique violation to a duplicate name.
fn name_taken(error: sqlx::Error, name: &str) -> StoreError {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => StoreError::AgentNameTaken(name.to_owned()),
        _ => error.into(),
    }
}

/// Agents of one workspace: with prompts of the largest size, a list of all is 32 MB.
const MAX_AGENTS: i64 = 500;

const AGENT: &str =
    "SELECT id, spec, created_at, updated_at FROM agents WHERE id = $1 AND owner = $2 AND deleted_at IS NULL";

impl Store {
    pub async fn agents(&self, owner: &Owner) -> Result<Vec<Agent>> {
        let rows: Vec<AgentRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, spec, created_at, updated_at FROM agents WHERE owner = $1 AND deleted_at IS NULL ORDER BY id",
            )
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Agent::try_from).collect()
    }

    pub async fn agent(&self, owner: &Owner, id: AgentId) -> Result<Agent> {
        let row: AgentRow = reading!(self.database(), |pool| {
            sqlx::query_as(AGENT).bind(id.0).bind(owner.as_str()).fetch_one(pool).await
        })?;
        row.try_into()
    }

    /// Returns the policy of a room and its agents, in the order they joined.
    pub async fn room_with_agents(&self, owner: &Owner, room: RoomId) -> Result<(RoomPolicy, Vec<Agent>)> {
        let rows: Vec<RoomAgentRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT r.policy, a.id, a.spec, a.created_at, a.updated_at FROM rooms r \
                 LEFT JOIN participants p ON p.room_id = r.id \
                 LEFT JOIN agents a ON a.id = p.agent_id AND a.owner = r.owner AND a.deleted_at IS NULL \
                 WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL ORDER BY p.ordinal",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        let policy = serde_json::from_str(&rows.first().ok_or(StoreError::NotFound)?.policy)?;
        let agents = rows.into_iter().filter_map(RoomAgentRow::agent).map(Agent::try_from).collect::<Result<_>>()?;
        Ok((policy, agents))
    }

    pub async fn create_agent(
        &self,
        actor: &Actor,
        spec: AgentSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Agent> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        let agent = Agent { id: AgentId::generate(), spec, created_at: now, updated_at: now };
        let json = serde_json::to_string(&agent.spec)?;
        let name = agent.spec.name.as_str();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, agent.id, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Create, AuditedObject::Agent, agent.id), now);
            let inserted = sqlx::query(
                "INSERT INTO agents (id, owner, name, spec, created_at, updated_at) SELECT $1, $2, $3, $4, $5, $5 \
                 WHERE (SELECT COUNT(*) FROM agents WHERE owner = $2 AND deleted_at IS NULL) < $6",
            )
            .bind(agent.id.0)
            .bind(owner.as_str())
            .bind(name)
            .bind(json.as_str())
            .bind(now.as_millis())
            .bind(MAX_AGENTS)
            .execute(&mut *transaction)
            .await
            .map_err(|error| name_taken(error, name))?;
            if inserted.rows_affected() == 0 {
                let detail = format!("a workspace has at most {MAX_AGENTS} agents; delete some first");
                return Err(StoreError::LimitReached(detail));
            }
        });
        self.list_changed(owner, OwnerList::Agents);
        Ok(agent)
    }

    pub async fn update_agent(
        &self,
        actor: &Actor,
        id: AgentId,
        spec: AgentSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Agent> {
        let current = self.agent(&actor.workspace, id).await?;
        self.change_agent(actor, &current, spec, attempt).await
    }

    /// Replaces the settings that were read before. Fails with `AgentChanged` if they are no longer the newest.
    pub async fn change_agent(
        &self,
        actor: &Actor,
        current: &Agent,
        spec: AgentSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Agent> {
        let (owner, id) = (&actor.workspace, current.id);
        // Later than the one before, also within a millisecond: it tells the versions apart.
        let now = Timestamp::now().max(Timestamp::from_millis(current.updated_at.as_millis() + 1));
        let json = serde_json::to_string(&spec)?;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Update, AuditedObject::Agent, id), now);
            let changed = sqlx::query(
                "UPDATE agents SET name = $3, spec = $4, updated_at = $5 WHERE id = $1 AND owner = $2 \
                 AND deleted_at IS NULL AND updated_at = $6",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .bind(spec.name.as_str())
            .bind(json.as_str())
            .bind(now.as_millis())
            .bind(current.updated_at.as_millis())
            .execute(&mut *transaction)
            .await
            .map_err(|error| name_taken(error, spec.name.as_str()))?;
            if changed.rows_affected() == 0 {
                return Err(StoreError::AgentChanged);
            }
        });
        self.list_changed(owner, OwnerList::Agents);
        Ok(Agent { spec, updated_at: now, ..current.clone() })
    }

    /// Deletes an agent. It leaves every room; its messages stay. It is erased when the grace period is over.
    pub async fn delete_agent(&self, actor: &Actor, id: AgentId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let delete = Delete {
            statement: "UPDATE agents SET deleted_at = $3 WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
            object: ErasedObject::Agent(id),
            purge: false,
        };
        let entry = AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Agent, id);
        self.mark_deleted(delete, id.0, entry, attempt).await?;
        self.list_changed(&actor.workspace, OwnerList::Agents);
        Ok(())
    }

    /// Deletes an agent, or one that is deleted already, to be erased without the grace period.
    pub async fn purge_agent(&self, actor: &Actor, id: AgentId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let delete = Delete {
            statement: "UPDATE agents SET deleted_at = COALESCE(deleted_at, $3) WHERE id = $1 AND owner = $2",
            object: ErasedObject::Agent(id),
            purge: true,
        };
        let entry = AuditEntry::new(actor, AuditAction::Purge, AuditedObject::Agent, id);
        self.mark_deleted(delete, id.0, entry, attempt).await?;
        self.list_changed(&actor.workspace, OwnerList::Agents);
        Ok(())
    }
}
