//! What a run was given, as JSON of the engine. Stored with the first events of the run.

use crate::{
    Store,
    commit::{ChangeContext, Statement},
    database::reading,
    error::{Result, signed},
};
use domain::{
    ids::{AgentId, MessageId, RunId},
    owner::Owner,
    position::Seq,
    run::RunStatus,
};

pub(crate) fn put(context: &ChangeContext, run_id: RunId, given: &str) -> Statement {
    Statement::new(
        "INSERT INTO run_contexts (run_id, room_id, context) VALUES ($1, $2, $3) ON CONFLICT (run_id) DO NOTHING",
    )
    .with(run_id.0)
    .with(context.room.0)
    .with(given)
}

impl Store {
    /// Returns what a run was given; `None` before its first event, and for runs of earlier versions. The caller must
    /// have checked the run's owner.
    pub async fn run_context(&self, run: RunId) -> Result<Option<String>> {
        let context: Option<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT context FROM run_contexts WHERE run_id = $1")
                .bind(run.0)
                .fetch_optional(pool)
                .await
        })?;
        Ok(context)
    }

    /// Returns whether an agent has completed a run for the message that was queued before this seq.
    pub async fn has_answered(&self, owner: &Owner, message: MessageId, agent: AgentId, before: Seq) -> Result<bool> {
        let found: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT queued_seq FROM runs WHERE message_id = $1 AND agent_id = $2 AND owner = $3 AND queued_seq < $4 \
                 AND status = $5 LIMIT 1",
            )
            .bind(message.0)
            .bind(agent.0)
            .bind(owner.as_str())
            .bind(signed(before))
            .bind(RunStatus::Completed.as_str())
            .fetch_optional(pool)
            .await
        })?;
        Ok(found.is_some())
    }
}
