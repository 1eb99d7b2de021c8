//! Provider sessions: the provider's own conversation per room × agent × provider, for resuming, and how much of the room
//! it knows.

use crate::{
    Store,
    database::reading,
    error::{Result, unsigned},
};
use domain::{
    ids::{AgentId, RoomId},
    position::Seq,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSession {
    pub id: String,
    /// What people said in the room up to here has been told to it.
    pub heard_seq: Seq,
    /// It knows what agents answered up to here, itself among them.
    pub spoke_seq: Option<Seq>,
}

impl ProviderSession {
    /// One that knows nothing yet. PostgreSQL's text holds no NUL, so none is in an id from its beginning: what is
    /// stored and what the provider says next time can be compared.
    pub fn new(id: &str) -> Self {
        Self { id: id.replace('\0', ""), heard_seq: 0, spoke_seq: None }
    }
}

impl Store {
    /// The room must have been checked against its owner.
    pub async fn provider_session(
        &self,
        room: RoomId,
        agent: AgentId,
        provider: &str,
    ) -> Result<Option<ProviderSession>> {
        let row: Option<(String, i64, Option<i64>)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT session_id, heard_seq, spoke_seq FROM provider_sessions \
                 WHERE room_id = $1 AND agent_id = $2 AND provider = $3",
            )
            .bind(room.0)
            .bind(agent.0)
            .bind(provider)
            .fetch_optional(pool)
            .await
        })?;
        let Some((id, heard_seq, spoke_seq)) = row else { return Ok(None) };
        let spoke_seq = spoke_seq.map(unsigned).transpose()?;
        Ok(Some(ProviderSession { id, heard_seq: unsigned(heard_seq)?, spoke_seq }))
    }
}
