//! What a run needs to know before it can ask its provider anything, read while the message that it answers is being stored:
//! who waits for the first word waits for the longer of the two, not for both.

use super::{
    drive::{Ready, unskilled},
    told::MESSAGES,
};
use crate::Engine;
use domain::{agent::Agent, ids::RoomId, message::Message, owner::Owner, position::Seq};
use std::time::Duration;
use store::{Footing, ProviderSession};
use tokio::time::timeout;

/// Whoever posts waits for this too, and must not wait for a disk or a database that only the run needs.
const LONGEST: Duration = Duration::from_millis(250);

pub(crate) struct Ahead {
    /// How far the room had come before anything else was read.
    head: Seq,
    /// `None`: something has to be written for this run first.
    pub(super) ready: Option<Ready>,
    pub(super) session: Option<ProviderSession>,
    /// What that session does not know yet.
    pub(super) said: Vec<Message>,
}

impl Ahead {
    /// `None` where something is in the way, or takes long. The run itself will come upon it, and say so.
    pub(crate) async fn read(
        engine: &Engine,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        message: &str,
    ) -> Option<Self> {
        timeout(LONGEST, Self::try_read(engine, owner, room, agent, message)).await.ok()?
    }

    async fn try_read(engine: &Engine, owner: &Owner, room: RoomId, agent: &Agent, message: &str) -> Option<Self> {
        let store = engine.store();
        let provider = engine.providers().get(&agent.spec.provider)?;
        let Footing { head, trains_a_skill, session } = store.footing(room, agent.id, provider.name()).await.ok()?;
        let said = async {
            match &session {
                Some(known) => store.said_before(owner, room, head + 1, Some(known), MESSAGES).await,
                None => Ok(Vec::new()),
            }
        };
        let ready = async { if trains_a_skill { None } else { unskilled(engine, owner, room, agent, message).await } };
        let (ready, said) = tokio::join!(ready, said);
        Some(Self { head, ready, said: said.ok()?, session })
    }

    /// Nothing has happened in the room between what was read and the commit whose first event has this seq. The room was
    /// idle then, or the run would not have begun, so no other run has worked there either.
    pub(crate) fn holds_at(&self, first: Seq) -> bool {
        first == self.head + 1
    }
}
