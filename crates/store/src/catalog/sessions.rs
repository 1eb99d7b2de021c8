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

/// What a turn of an agent in a room begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footing {
    /// How far the room had come.
    pub head: Seq,
    pub trains_a_skill: bool,
    pub session: Option<ProviderSession>,
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
        Ok(self.footing(room, agent, provider).await?.session)
    }

    /// The same for the room.
    pub async fn footing(&self, room: RoomId, agent: AgentId, provider: &str) -> Result<Footing> {
        let row: (i64, bool, Option<String>, Option<i64>, Option<i64>) = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT j.head, EXISTS (SELECT 1 FROM skill_rooms t WHERE t.room_id = j.room_id), \
                 s.session_id, s.heard_seq, s.spoke_seq FROM journals j \
                 LEFT JOIN provider_sessions s ON s.room_id = j.room_id AND s.agent_id = $2 AND s.provider = $3 \
                 WHERE j.room_id = $1",
            )
            .bind(room.0)
            .bind(agent.0)
            .bind(provider)
            .fetch_one(pool)
            .await
        })?;
        let (head, trains_a_skill, id, heard_seq, spoke_seq) = row;
        let (heard_seq, spoke_seq) = (heard_seq.map(unsigned).transpose()?, spoke_seq.map(unsigned).transpose()?);
        let session = id.zip(heard_seq).map(|(id, heard_seq)| ProviderSession { id, heard_seq, spoke_seq });
        Ok(Footing { head: unsigned(head)?, trains_a_skill, session })
    }
}
