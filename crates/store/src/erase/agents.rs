//! The rows of an agent. Its messages belong to their rooms and stay there, and so do its runs.

use super::ErasureStep;
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{ids::AgentId, owner::Owner};
use uuid::Uuid;

/// `$1` is the agent. Its own row is the last.
const ROWS: [&str; 8] = [
    // At most a few hundred, see `MAX_MEMORIES`.
    "DELETE FROM memories WHERE agent_id = $1",
    "DELETE FROM participants WHERE agent_id = $1",
    "DELETE FROM provider_sessions WHERE agent_id = $1",
    "DELETE FROM room_tools WHERE agent_id = $1",
    "DELETE FROM remembered_rules WHERE agent_id = $1",
    // What its runs were given, with its system prompt.
    "DELETE FROM run_contexts WHERE run_id IN (SELECT id FROM runs WHERE agent_id = $1)",
    "DELETE FROM budgets WHERE scope = 'agent' AND subject = $1",
    "DELETE FROM agents WHERE id = $1",
];

impl Store {
    pub(super) async fn erase_agent_rows(&self, owner: &Owner, agent: AgentId) -> Result<ErasureStep> {
        let unfinished: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT q.run_id FROM queue q JOIN runs u ON u.id = q.run_id WHERE u.agent_id = $1 LIMIT 1",
            )
            .bind(agent.0)
            .fetch_optional(pool)
            .await
        })?;
        if unfinished.is_some() {
            return Ok(ErasureStep::Waiting);
        }
        writing!(self.database(), |transaction| {
            for rows in ROWS {
                sqlx::query(rows).bind(agent.0).execute(&mut *transaction).await?;
            }
            sqlx::query("DELETE FROM idempotency WHERE owner = $1 AND result = $2")
                .bind(owner.as_str())
                .bind(agent.to_string())
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<_, StoreError>(ErasureStep::RowsErased)
    }
}
