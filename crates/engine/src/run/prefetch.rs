//! Reads what a run needs before its first provider call. Runs concurrently with the commit of the message, so time to
//! first token is the maximum of both, not the sum.

use super::{
    drive::{PreparedWorkspace, prepare_without_skills},
    transcript::MAX_TRANSCRIPT_MESSAGES,
};
use crate::Engine;
use domain::{agent::Agent, ids::RoomId, message::Message, owner::Owner, position::Seq};
use std::time::Duration;
use store::{ProviderSessionRecord, RunStartState, TranscriptRange};
use tokio::time::timeout;

/// The poster waits for the prefetch too, and must not wait long for data that only the run needs.
const PREFETCH_TIMEOUT: Duration = Duration::from_millis(250);

pub(crate) struct Prefetch {
    /// The head of the room's journal, read before anything else.
    pub(super) head: Seq,
    /// `None` if skill files have to be written for this run first.
    pub(super) workspace: Option<PreparedWorkspace>,
    pub(super) session: Option<ProviderSessionRecord>,
    /// The messages that the session has missed.
    pub(super) messages: Vec<Message>,
}

impl Prefetch {
    /// Returns `None` on an error or a timeout. The run then reads everything again and reports the error.
    pub(crate) async fn read(
        engine: &Engine,
        owner: &Owner,
        room: RoomId,
        agent: &Agent,
        message: &str,
    ) -> Option<Self> {
        timeout(PREFETCH_TIMEOUT, Self::try_read(engine, owner, room, agent, message)).await.ok()?
    }

    async fn try_read(engine: &Engine, owner: &Owner, room: RoomId, agent: &Agent, message: &str) -> Option<Self> {
        let store = engine.store();
        let RunStartState { head, is_training_room: trains_a_skill, session } =
            store.run_start_state(room, agent.id, &agent.spec.provider).await.ok()?;
        let messages = async {
            match &session {
                Some(known) => {
                    let range = TranscriptRange { posts_before: head + 1, answers_until: head };
                    store.messages_before_run(owner, room, range, Some(known), MAX_TRANSCRIPT_MESSAGES).await
                }
                None => Ok(Vec::new()),
            }
        };
        let workspace = async {
            if trains_a_skill { None } else { prepare_without_skills(engine, owner, room, agent, message).await }
        };
        let (workspace, messages) = tokio::join!(workspace, messages);
        Some(Self { head, workspace, messages: messages.ok()?, session })
    }

    /// Returns whether nothing was written to the room between the read and the commit whose first event has this seq.
    /// The room was idle, or the run would not have been claimed, so no other run was active either, except those that
    /// start with the same commit.
    pub(crate) fn is_current_at(&self, first: Seq) -> bool {
        first == self.head + 1
    }
}
