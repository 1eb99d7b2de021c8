//! An agent's notes, for people: to see what it has saved, to correct it, and to delete it.

use crate::{Engine, EngineError, host_tools::MAX_NOTE_BYTES};
use domain::{
    actor::Actor,
    ids::{AgentId, MemoryId},
    permission::Permission,
};
use store::{IdempotentRequest, MemoryRecord};

impl Engine {
    /// The notes of an agent, newest first.
    pub async fn memories(&self, actor: &Actor, agent: AgentId) -> Result<Vec<MemoryRecord>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.store().memories(owner, agent).await?)
    }

    pub async fn update_memory(
        &self,
        actor: &Actor,
        agent: AgentId,
        id: MemoryId,
        text: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageAgents)?;
        if text.trim().is_empty() || text.len() > MAX_NOTE_BYTES {
            let detail = format!("text: write 1 to {MAX_NOTE_BYTES} bytes; delete the note to forget it");
            return Err(EngineError::InvalidField { pointer: "/text".into(), detail });
        }
        Ok(self.store().update_memory(actor, agent, id, text, attempt).await?)
    }

    pub async fn delete_memory(
        &self,
        actor: &Actor,
        agent: AgentId,
        id: MemoryId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageAgents)?;
        Ok(self.store().delete_memory(actor, agent, id, attempt).await?)
    }
}
