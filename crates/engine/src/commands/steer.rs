//! Steering: a message for an answer in progress. The message and the signals to the runs are stored in one commit; if a
//! provider refuses the message, its run queues another run for it, so that it is always answered.

use super::post::RunRef;
use crate::{Engine, EngineError};
use domain::{
    agent::Agent,
    event::{EventBody, EventType},
    ids::{AgentId, MessageId, RoomId},
    message::Message,
    owner::Owner,
    position::Position,
    room::WhenBusy,
    signal::{Signal, SignalOutcome},
};
use std::time::Duration;
use store::RunFilter;
use tokio::time::Instant;

/// How long a poster waits for the outcome: longer than a provider may take to reply.
const STEER_TIMEOUT: Duration = Duration::from_secs(15);
/// How many pages of events a repeated request searches for the outcome of the first.
const MAX_PAGES: usize = 20;
const PAGE_SIZE: u32 = 500;

impl Engine {
    /// The runs that may take a message for these agents; empty if the room is idle.
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
            let provider = self.provider_of(owner, &agent.spec.provider).await?;
            if !provider.is_some_and(|provider| provider.capabilities().steer) {
                return Err(EngineError::Unsupported(format!(
                    "{} cannot be steered during an answer: its provider {} does not support it; use interrupt or \
                     enqueue",
                    agent.spec.name, agent.spec.provider
                )));
            }
        }
        let mut runs: Vec<RunRef> = Vec::new();
        for (id, agent_id) in self.store().held_runs(owner, room).await? {
            let is_new = !runs.iter().any(|run| run.agent_id == agent_id);
            if is_new && planned.iter().any(|agent| agent.id == agent_id) {
                runs.push(RunRef { id, agent_id });
            }
        }
        Ok(runs)
    }

    /// Waits for the signals that were stored with a message. Returns the runs that answer it: those that took it, and
    /// those that were queued instead. A run that has not replied in time counts as taking it: it will take it or
    /// queue another run, and if its server is dead, recovery does.
    pub(super) async fn wait_for_steering(
        &self,
        owner: &Owner,
        message: &Message,
        signals: Vec<Signal>,
        runs: Vec<RunRef>,
    ) -> Result<Vec<RunRef>, EngineError> {
        let deadline = Instant::now() + STEER_TIMEOUT;
        let mut answering = Vec::with_capacity(runs.len());
        for (signal, run) in signals.iter().zip(runs) {
            let outcome = self.wait_for_outcome(signal, deadline.saturating_duration_since(Instant::now())).await?;
            answering.push(match outcome {
                Some(SignalOutcome::Queued) => self.run_of(owner, message.id, run.agent_id).await?.unwrap_or(run),
                _ => run,
            });
        }
        Ok(answering)
    }

    /// The run of an agent that was queued for a message.
    async fn run_of(
        &self,
        owner: &Owner,
        message: MessageId,
        agent_id: AgentId,
    ) -> Result<Option<RunRef>, EngineError> {
        let filter =
            RunFilter { message_id: Some(message), agent_id: Some(agent_id), limit: 1, ..RunFilter::default() };
        let found = self.store().runs(owner, &filter).await?;
        Ok(found.first().map(|run| RunRef { id: run.id, agent_id }))
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
