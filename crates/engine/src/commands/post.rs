//! Posting a message: it and the runs that will answer it are one commit.

use crate::{
    Engine, Error,
    run::{Halt, Start},
    tape,
    work::Seated,
};
use domain::{
    agent::Agent,
    event::{Interruption, MessagePosted, NewEvent, RunQueued, TapePlanned},
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Attachment, Author, MAX_TEXT_BYTES, Message, MessageStatus, Part},
    name::Name,
    owner::Owner,
    room::{RoomPolicy, WhenBusy},
    time::Timestamp,
};
use serde::Serialize;
use store::{
    Attempt, RunFilter,
    journal::{Change, Commit, Guard, SeqOf, Stop},
};

#[derive(Debug, Clone)]
pub struct Post {
    pub text: String,
    /// `None`: as the room's policy says.
    pub when_busy: Option<WhenBusy>,
    pub attachments: Vec<Attachment>,
    /// Only these answer; empty means all.
    pub mentions: Vec<AgentId>,
}

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Posted {
    pub message: Message,
    pub runs: Vec<RunRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RunRef {
    pub id: RunId,
    pub agent_id: AgentId,
}

const MAX_ATTACHMENTS: usize = 32;

impl Engine {
    pub async fn post(
        &self,
        owner: &Owner,
        room: RoomId,
        post: Post,
        attempt: Option<&Attempt>,
    ) -> Result<Posted, Error> {
        // Side by side: somebody waits for the first word.
        let (earlier, seating) = tokio::join!(self.earlier(owner, attempt), self.store().seating(owner, room));
        if let Some(message) = earlier? {
            return self.posted_before(owner, &message).await;
        }
        let (policy, seated) = seating?;
        if let Some(stranger) = post.mentions.iter().find(|id| !seated.iter().any(|agent| agent.id == **id)) {
            return Err(Error::Invalid(format!("mentions: agent {stranger} does not sit in this room")));
        }
        let opening = Opening { events: Vec::new(), changes: Vec::new() };
        self.post_in(owner, Stage { room, policy: &policy, seated: &seated }, post, opening, attempt).await
    }

    /// `opening` is what has to happen in the same commit before the message: a new room, someone who joins.
    pub(super) async fn post_in(
        &self,
        owner: &Owner,
        stage: Stage<'_>,
        post: Post,
        opening: Opening,
        attempt: Option<&Attempt>,
    ) -> Result<Posted, Error> {
        check(&post)?;
        let Stage { room, policy, seated } = stage;
        let attachments = self.attached(owner, &post.attachments).await?;
        let when_busy = post.when_busy.unwrap_or(policy.when_busy);
        let planned = tape::plan(seated, &post.mentions);
        let calls_a_skill = self.check_call(owner, &post.text, &planned).await?;
        let under_way = match when_busy {
            // A skill is at hand only in a run of its own.
            WhenBusy::Steer if !calls_a_skill => self.under_way(owner, room, &planned).await?,
            WhenBusy::Steer | WhenBusy::Enqueue | WhenBusy::Interrupt | WhenBusy::Reject => Vec::new(),
        };
        let message_id = MessageId::generate();
        let author = Author::Person { name: person(owner)? };
        let answers_already = |agent: &&&Agent| under_way.iter().any(|run| run.agent_id == agent.id);
        let asked: Vec<&Agent> = planned.iter().filter(|agent| !answers_already(agent)).copied().collect();
        let run = |agent: &&Agent| RunRef { id: RunId::generate(), agent_id: agent.id };
        let mut runs: Vec<RunRef> = asked.iter().map(run).collect();
        let Opening { mut events, mut changes } = opening;
        if let Some(attempt) = attempt {
            // First, so that a used key stops the commit before anything else is done.
            let result = message_id.to_string();
            changes.insert(0, Change::Remember { owner: owner.clone(), attempt: attempt.clone(), result });
        }
        if when_busy == WhenBusy::Interrupt {
            changes.push(Change::StopEarlier { stop: Stop::Interrupt });
        }
        let posted_at = events.len();
        events.push(NewEvent::new(MessagePosted {
            message_id,
            author: author.clone(),
            text: post.text.clone(),
            when_busy,
            mentions: post.mentions,
            attachments: attachments.clone(),
        }));
        if runs.len() > 1 {
            events.push(NewEvent::new(TapePlanned { cells: runs.iter().map(|run| run.agent_id).collect() }));
        }
        let mut message = Message {
            id: message_id,
            room_id: room,
            seq: 0,
            author,
            run_id: None,
            status: MessageStatus::Complete,
            text: post.text.clone(),
            thinking: String::new(),
            parts: vec![Part::Text { text: post.text, item: None }],
            attachments,
            created_at: Timestamp::now(),
        };
        changes.push(Change::PutMessage { message: message.clone(), seq: SeqOf::Event(posted_at) });
        // The first of them can begin at once, if the room is idle.
        let seated = runs.first().zip(asked.first()).and_then(|(run, agent)| {
            let seat = self.handoff().seat(run.id)?;
            let (agent, message) = (Agent::clone(agent), (message.clone(), posted_at));
            let (owner, start) = (owner.clone(), Start::new());
            Some(Seated { seat, owner, run: run.id, agent, start, message, event: events.len() })
        });
        let mut claim = seated.as_ref().map(Seated::claim);
        for run in &runs {
            let seq = SeqOf::Event(events.len());
            events.push(NewEvent::new(RunQueued { message_id }).of_run(run.id, run.agent_id));
            let (run_id, agent_id) = (run.id, run.agent_id);
            let claim = claim.take();
            changes.push(Change::QueueRun { owner: owner.clone(), run_id, agent_id, message_id, seq, claim });
        }
        let guard = if when_busy == WhenBusy::Reject { Guard::RoomIdle } else { Guard::None };
        let committed = match self.commit_and_begin(Commit { room_id: room, guard, events, changes }, seated).await {
            // Someone with the same key was quicker: answer as they were answered.
            Err(store::Error::KeyUsed) => {
                let message = self.earlier(owner, attempt).await?.ok_or(Error::KeyConflict)?;
                return self.posted_before(owner, &message).await;
            }
            done => done?,
        };
        message.seq = committed.first + posted_at as u64;
        if when_busy == WhenBusy::Interrupt {
            let why = Halt::Interrupt(Interruption::NewMessage);
            self.active().halt_room(room, committed.first, why);
            // The worker would do it too; here it is done before the caller hears of it.
            if let Err(error) = self.end_stopped_in_queue().await {
                tracing::warn!(%error, "queued runs were not ended at once; the worker will");
            }
        }
        if !under_way.is_empty() {
            runs.splice(0..0, self.steer(owner, &message, under_way).await?);
        }
        Ok(Posted { message, runs })
    }

    /// The answer to a request that is repeated.
    pub(super) async fn posted_before(&self, owner: &Owner, message: &str) -> Result<Posted, Error> {
        let id: MessageId = message.parse().map_err(|_| Error::KeyConflict)?;
        let room = self.store().room_of_message(owner, id).await?;
        let message = self.store().message(owner, room, id).await?;
        let filter = RunFilter { message_id: Some(id), limit: 1000, ..RunFilter::default() };
        let mut runs = self.store().runs(owner, &filter).await?;
        runs.sort_by_key(|run| run.queued_seq);
        let queued = runs.into_iter().map(|run| RunRef { id: run.id, agent_id: run.agent_id });
        let mut runs = self.took(owner, &message).await?;
        runs.extend(queued);
        Ok(Posted { message, runs })
    }
}

/// Where something is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub room: RoomId,
    pub policy: &'a RoomPolicy,
    pub seated: &'a [Agent],
}

#[derive(Debug)]
pub(super) struct Opening {
    pub events: Vec<NewEvent>,
    pub changes: Vec<Change>,
}

fn person(owner: &Owner) -> Result<Name, Error> {
    Name::parse(owner.as_str()).map_err(|error| Error::Invalid(error.to_string()))
}

fn check(post: &Post) -> Result<(), Error> {
    if post.text.trim().is_empty() && post.attachments.is_empty() {
        return Err(Error::Invalid("text: a message must say something".into()));
    }
    if post.text.len() > MAX_TEXT_BYTES {
        return Err(Error::Invalid(format!(
            "text: a message has at most {MAX_TEXT_BYTES} bytes, this one has {}",
            post.text.len()
        )));
    }
    if post.attachments.len() > MAX_ATTACHMENTS {
        return Err(Error::Invalid(format!("attachments: at most {MAX_ATTACHMENTS}")));
    }
    Ok(())
}
