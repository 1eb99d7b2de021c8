//! Provider sessions: the provider's conversation per room, agent and provider, and how much of the room it knows.

use crate::{
    Store,
    commit::{ChangeContext, ProviderSessionRecord, Statement, without_nul},
    database::reading,
    error::{Result, signed, unsigned},
};
use domain::{
    ids::{AgentId, RoomId},
    position::Seq,
};

/// The stored state that a run starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStartState {
    /// The room's head.
    pub head: Seq,
    pub is_training_room: bool,
    pub session: Option<ProviderSessionRecord>,
}

/// Stores the session of the agent in the commit's room, or replaces it.
pub(crate) fn put(
    context: &ChangeContext,
    agent_id: AgentId,
    provider: &str,
    session: &ProviderSessionRecord,
) -> Statement {
    Statement::new(
        "INSERT INTO provider_sessions (room_id, agent_id, provider, session_id, heard_seq, spoke_seq, updated_at, \
         answer_seq) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (room_id, agent_id, provider) \
         DO UPDATE SET session_id = excluded.session_id, heard_seq = excluded.heard_seq, \
         spoke_seq = excluded.spoke_seq, updated_at = excluded.updated_at, answer_seq = excluded.answer_seq",
    )
    .with(context.room.0)
    .with(agent_id.0)
    .with(provider)
    .with(without_nul(&session.id))
    .with(signed(session.heard_seq))
    .with(session.spoke_seq.map(signed))
    .with(context.now.as_millis())
    .with(session.answer_seq.map(signed))
}

impl Store {
    /// The caller must have checked the room's owner.
    pub async fn provider_session(
        &self,
        room: RoomId,
        agent: AgentId,
        provider: &str,
    ) -> Result<Option<ProviderSessionRecord>> {
        Ok(self.run_start_state(room, agent, provider).await?.session)
    }

    /// Reads the state that a run starts with. The caller must have checked the room's owner.
    pub async fn run_start_state(&self, room: RoomId, agent: AgentId, provider: &str) -> Result<RunStartState> {
        let row: (i64, bool, Option<String>, Option<i64>, Option<i64>, Option<i64>) =
            reading!(self.database(), |pool| {
                sqlx::query_as(
                    "SELECT j.head, EXISTS (SELECT 1 FROM skill_rooms t WHERE t.room_id = j.room_id), \
                 s.session_id, s.heard_seq, s.spoke_seq, s.answer_seq FROM journals j \
                 LEFT JOIN provider_sessions s ON s.room_id = j.room_id AND s.agent_id = $2 AND s.provider = $3 \
                 WHERE j.room_id = $1",
                )
                .bind(room.0)
                .bind(agent.0)
                .bind(provider)
                .fetch_one(pool)
                .await
            })?;
        let (head, trains_a_skill, id, heard_seq, spoke_seq, answer_seq) = row;
        let seq = |seq: Option<i64>| seq.map(unsigned).transpose();
        let (heard_seq, spoke_seq, answer_seq) = (seq(heard_seq)?, seq(spoke_seq)?, seq(answer_seq)?);
        let session =
            id.zip(heard_seq).map(|(id, heard_seq)| ProviderSessionRecord { id, heard_seq, spoke_seq, answer_seq });
        Ok(RunStartState { head: unsigned(head)?, is_training_room: trains_a_skill, session })
    }
}
