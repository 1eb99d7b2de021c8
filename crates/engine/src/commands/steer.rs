//! Steering: a message for an answer in progress. It is stored first and then offered to the provider; if the provider
//! refuses it, the message gets a run of its own, so that it is always answered.

use super::post::RunRef;
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    agent::Agent,
    event::{EventBody, EventType, NewEvent, RunQueued},
    ids::{RoomId, RunId},
    message::Message,
    owner::Owner,
    position::Position,
    room::WhenBusy,
};
use std::time::Duration;
use store::journal::{Commit, Guard, RowChange, SeqRef};
use tokio::time::{Instant, sleep};

/// How long commits are retried while the database is unavailable.
const RETRY_LIMIT: Duration = Duration::from_secs(30);
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// How many pages of events a repeated request searches for the outcome of the first.
const MAX_PAGES: usize = 20;
const PAGE_SIZE: u32 = 500;

impl Engine {
    /// The runs on this server that may take a message for these agents; empty if the room is idle.
    pub(super) async fn steerable_runs(
        &self,
        owner: &Owner,
        room: RoomId,
        planned: &[&Agent],
    ) -> Result<Vec<RunRef>, EngineError> {
        let unfinished = self.store().unfinished_runs(owner, room).await?;
        if unfinished.is_empty() {
            return Ok(Vec::new());
        }
        for agent in planned {
            let provider = self.providers().get(&agent.spec.provider);
            if !provider.is_some_and(|provider| provider.capabilities().steer) {
                return Err(EngineError::Unsupported(format!(
                    "{} cannot be steered during an answer: its provider {} does not support it; use interrupt or \
                     enqueue",
                    agent.spec.name, agent.spec.provider
                )));
            }
        }
        let mut runs: Vec<RunRef> = Vec::new();
        for id in unfinished.into_iter().filter(|id| self.active_runs().contains(*id)) {
            let agent_id = self.store().run(owner, id).await?.agent_id;
            let is_new = !runs.iter().any(|run| run.agent_id == agent_id);
            if is_new && planned.iter().any(|agent| agent.id == agent_id) {
                runs.push(RunRef { id, agent_id });
            }
        }
        Ok(runs)
    }

    /// Sends a stored message to these runs. Returns the runs that answer it: these, or new ones.
    pub(super) async fn steer(
        &self,
        actor: &Actor,
        message: &Message,
        runs: Vec<RunRef>,
    ) -> Result<Vec<RunRef>, EngineError> {
        let owner = &actor.workspace;
        let (engine, owner, message) = (self.clone(), owner.clone(), message.clone());
        // In a task of its own: a client that disconnects must not leave its message without an answer.
        let task = self.background_tasks().spawn(async move {
            let mut answering = Vec::with_capacity(runs.len());
            let workspace = engine.config().folders.workspace(message.room_id);
            // If an attachment fails, the run that is queued instead reports the error.
            let text = engine.place_attachments(&owner, &workspace, &message).await.ok();
            for run in runs {
                let taken = match &text {
                    Some(text) => engine.active_runs().steer(run.id, message.id, message.seq, text.clone()).await,
                    None => false,
                };
                answering.push(if taken { run } else { engine.queue_run_for(&owner, &message, run).await? });
            }
            Ok(answering)
        });
        task.await.unwrap_or_else(|error| Err(EngineError::Unavailable(error.to_string())))
    }

    /// Queues a run for a message that no provider took.
    async fn queue_run_for(&self, owner: &Owner, message: &Message, run: RunRef) -> Result<RunRef, EngineError> {
        let (run_id, agent_id, message_id) = (RunId::generate(), run.agent_id, message.id);
        let event = NewEvent::new(RunQueued { message_id }).of_run(run_id, agent_id);
        let deadline = Instant::now() + RETRY_LIMIT;
        loop {
            let seq = SeqRef::Event(0);
            let commit = Commit {
                room_id: message.room_id,
                guard: Guard::None,
                // The same event id on every attempt: an event that was stored although the response got lost is not
                // stored twice.
                events: vec![event.clone()],
                changes: vec![RowChange::QueueRun {
                    owner: owner.clone(),
                    run_id,
                    agent_id,
                    message_id,
                    seq,
                    claim: None,
                }],
            };
            match self.store().commit(commit).await {
                Err(store::StoreError::Unavailable(why)) if Instant::now() < deadline => {
                    tracing::warn!(message = %message_id, %why, "cannot queue a run for a message; retrying");
                    sleep(RETRY_DELAY).await;
                }
                done => return Ok(done.map(|_| RunRef { id: run_id, agent_id })?),
            }
        }
    }

    /// The runs that took a message into their answer, from the journal.
    pub(super) async fn runs_that_took(&self, owner: &Owner, message: &Message) -> Result<Vec<RunRef>, EngineError> {
        let (mut runs, mut seq) = (Vec::new(), message.seq.saturating_sub(1));
        for nth in 0..MAX_PAGES {
            let position = Position { epoch: None, seq };
            // The first event tells whether the message was posted to steer at all.
            let limit = if nth == 0 { 1 } else { PAGE_SIZE };
            let page = self.store().page(owner, message.room_id, &position, limit, false).await?;
            for event in &page.events {
                let kinds = [EventType::MessagePosted, EventType::Status];
                if !kinds.contains(&event.kind) {
                    continue;
                }
                match (event.body().map_err(store::StoreError::from)?, event.run_id, event.agent_id) {
                    (EventBody::MessagePosted(posted), ..)
                        if posted.message_id == message.id && posted.when_busy != WhenBusy::Steer =>
                    {
                        return Ok(runs);
                    }
                    (EventBody::Status(status), Some(id), Some(agent_id)) if status.message_id == Some(message.id) => {
                        runs.push(RunRef { id, agent_id });
                    }
                    _ => {}
                }
            }
            match page.events.last() {
                Some(last) if last.seq < page.head => seq = last.seq,
                _ => break,
            }
        }
        Ok(runs)
    }
}
