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
        Ok(self.head_and_session(room, agent, provider).await?.1)
    }

    /// With how far the room had come at that moment.
    pub async fn head_and_session(
        &self,
        room: RoomId,
        agent: AgentId,
        provider: &str,
    ) -> Result<(Seq, Option<ProviderSession>)> {
        let row: (i64, Option<String>, Option<i64>, Option<i64>) = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT j.head, s.session_id, s.heard_seq, s.spoke_seq FROM journals j \
                 LEFT JOIN provider_sessions s ON s.room_id = j.room_id AND s.agent_id = $2 AND s.provider = $3 \
                 WHERE j.room_id = $1",
            )
            .bind(room.0)
            .bind(agent.0)
            .bind(provider)
            .fetch_one(pool)
            .await
        })?;
        let (head, id, heard_seq, spoke_seq) = row;
        let (heard_seq, spoke_seq) = (heard_seq.map(unsigned).transpose()?, spoke_seq.map(unsigned).transpose()?);
        let session = id.zip(heard_seq).map(|(id, heard_seq)| ProviderSession { id, heard_seq, spoke_seq });
        Ok((unsigned(head)?, session))
    }
}
