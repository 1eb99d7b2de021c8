//! A message for an answer that is under way. It is stored first; then the provider is asked whether it takes it, and
//! where it does not, the message gets a run of its own, so that it is answered in any case.

use super::post::RunRef;
use crate::{Engine, Error};
use domain::{
    agent::Agent,
    event::{EventBody, EventType, NewEvent, RunQueued},
    ids::{RoomId, RunId},
    message::Message,
    owner::Owner,
    position::Position,
    room::WhenBusy,
};
use std::time::Duration;
use store::journal::{Change, Commit, Guard, SeqOf};
use tokio::time::{Instant, sleep};

/// How long a message waits for a database that cannot be written for a moment.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);
/// How far a repeated request looks for what became of the first.
const PAGES: usize = 20;
const PAGE: u32 = 500;

impl Engine {
    /// The runs on this server that may take a message for these agents. None when the room is idle.
    pub(super) async fn under_way(
        &self,
        owner: &Owner,
        room: RoomId,
        planned: &[&Agent],
    ) -> Result<Vec<RunRef>, Error> {
        let unfinished = self.store().unfinished(owner, room).await?;
        if unfinished.is_empty() {
            return Ok(Vec::new());
        }
        for agent in planned {
            let provider = self.providers().get(&agent.spec.provider);
            if !provider.is_some_and(|provider| provider.capabilities().steer) {
                return Err(Error::Unsupported(format!(
                    "{} cannot be steered while an answer is under way: its provider {} takes no messages then; use \
                     interrupt or enqueue",
                    agent.spec.name, agent.spec.provider
                )));
            }
        }
        let mut runs: Vec<RunRef> = Vec::new();
        for id in unfinished.into_iter().filter(|id| self.active().has(*id)) {
            let agent_id = self.store().run(owner, id).await?.agent_id;
            let is_new = !runs.iter().any(|run| run.agent_id == agent_id);
            if is_new && planned.iter().any(|agent| agent.id == agent_id) {
                runs.push(RunRef { id, agent_id });
            }
        }
        Ok(runs)
    }

    /// Hands a message that is stored to these runs. Returns the runs that answer it: they, or new ones.
    pub(super) async fn steer(
        &self,
        owner: &Owner,
        message: &Message,
        runs: Vec<RunRef>,
    ) -> Result<Vec<RunRef>, Error> {
        let (engine, owner, message) = (self.clone(), owner.clone(), message.clone());
        // Apart from the request: a client that goes away must not leave its message without an answer.
        let chore = self.chores().spawn(async move {
            let mut answering = Vec::with_capacity(runs.len());
            let workplace = engine.config().folders.workplace(message.room_id);
            // What cannot be handed over is told by the run that is queued for it instead.
            let text = engine.hand_over(&owner, &workplace, &message).await.ok();
            for run in runs {
                let taken = match &text {
                    Some(text) => engine.active().steer(run.id, message.id, message.seq, text.clone()).await,
                    None => false,
                };
                answering.push(if taken { run } else { engine.queue_for(&owner, &message, run).await? });
            }
            Ok(answering)
        });
        chore.await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
    }

    /// A run of its own for a message that nobody took.
    async fn queue_for(&self, owner: &Owner, message: &Message, run: RunRef) -> Result<RunRef, Error> {
        let (run_id, agent_id, message_id) = (RunId::generate(), run.agent_id, message.id);
        let event = NewEvent::new(RunQueued { message_id }).of_run(run_id, agent_id);
        let give_up = Instant::now() + PATIENCE;
        loop {
            let seq = SeqOf::Event(0);
            let commit = Commit {
                room_id: message.room_id,
                guard: Guard::None,
                // The same event every time: what was stored although the answer got lost is not stored twice.
                events: vec![event.clone()],
                changes: vec![Change::QueueRun {
                    owner: owner.clone(),
                    run_id,
                    agent_id,
                    message_id,
                    seq,
                    claim: None,
                }],
            };
            match self.store().commit(commit).await {
                Err(store::Error::Unavailable(why)) if Instant::now() < give_up => {
                    tracing::warn!(message = %message_id, %why, "cannot queue a run for a message; trying again");
                    sleep(PAUSE).await;
                }
                done => return Ok(done.map(|_| RunRef { id: run_id, agent_id })?),
            }
        }
    }

    /// The runs that took a message into their answer, as the journal tells it.
    pub(super) async fn took(&self, owner: &Owner, message: &Message) -> Result<Vec<RunRef>, Error> {
        let (mut runs, mut seq) = (Vec::new(), message.seq.saturating_sub(1));
        for nth in 0..PAGES {
            let position = Position { epoch: None, seq };
            // The first event says whether there is anything to look for.
            let limit = if nth == 0 { 1 } else { PAGE };
            let page = self.store().page(owner, message.room_id, &position, limit, false).await?;
            for event in &page.events {
                let kinds = [EventType::MessagePosted, EventType::Status];
                if !kinds.contains(&event.kind) {
                    continue;
                }
                match (event.body().map_err(store::Error::from)?, event.run_id, event.agent_id) {
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
