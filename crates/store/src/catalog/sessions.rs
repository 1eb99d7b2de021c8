//! Provider sessions: the provider's own conversation id per room × agent × provider, for resuming.

use crate::{Store, database::reading, error::Result};
use domain::ids::{AgentId, RoomId};

impl Store {
    /// The room must have been checked against its owner.
    pub async fn provider_session(&self, room: RoomId, agent: AgentId, provider: &str) -> Result<Option<String>> {
        let session: Option<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT session_id FROM provider_sessions WHERE room_id = $1 AND agent_id = $2 AND provider = $3",
            )
            .bind(room.0)
            .bind(agent.0)
            .bind(provider)
            .fetch_optional(pool)
            .await
        })?;
        Ok(session)
    }
}
