//! How clients post a message to a room ([`Engine::post_message`]): the message and the runs that will answer it are stored in one
//! commit.

use super::post_plan::{PostPlan, TapeQuestion};
use crate::{
    Engine, EngineError,
    run::{RunStop, RunsAbove},
    tape::{self, RoomRules},
    traces,
};
use domain::{
    actor::Actor,
    agent::Agent,
    audit::{AuditAction, AuditEntry, AuditedObject},
    budget::BudgetSubjects,
    event::{Interruption, MessagePosted, NewEvent},
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Attachment, Author, MAX_TEXT_BYTES, Message, MessageStatus, Part},
    owner::Owner,
    permission::Permission,
    room::{RoomPolicy, TurnOrder, WhenBusy},
    run_tree::TreePlace,
    signal::{Signal, SignalBody},
    time::Timestamp,
    upload::MAX_FILES,
};
use serde::Serialize;
use store::{
    IdempotentRequest, RunFilter, TapeRecord,
    journal::{Commit, Guard, RowChange, SeqRef, StopRequest},
};

#[derive(Debug, Clone)]
pub struct NewPost {
    pub text: String,
    /// `None` uses the room's policy.
    pub when_busy: Option<WhenBusy>,
    pub attachments: Vec<Attachment>,
    /// Only these agents answer; empty means those that the text names with `@`, or all.
    pub mentions: Vec<AgentId>,
    /// Whether agents answer the message at all.
    pub run: bool,
}

impl NewPost {
    /// A text that the room answers by its policy.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), when_busy: None, attachments: Vec::new(), mentions: Vec::new(), run: true }
    }
}

/// A posted message and the runs that answer it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Posted)]
pub struct PostResult {
    pub message: Message,
    pub runs: Vec<RunRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RunRef {
    pub id: RunId,
    pub agent_id: AgentId,
}

impl Engine {
    pub async fn post_message(
        &self,
        actor: &Actor,
        room: RoomId,
        mut post: NewPost,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<PostResult, EngineError> {
        let owner = actor.require(Permission::Post)?;
        // Concurrently, to reduce the time to first token.
        let (earlier, room_state, has_budgets) = tokio::join!(
            self.earlier_result(actor, attempt),
            self.store().room_with_agents(owner, room),
            self.check_queue_limit(owner)
        );
        if let Some(message) = earlier? {
            return self.repeated_post(actor, &message).await;
        }
        let (policy, mut agents) = room_state?;
        agents.iter_mut().for_each(|agent| policy.member(agent.id).apply_to(&mut agent.spec));
        let is_unknown = |id: &AgentId| !agents.iter().any(|agent| agent.id == *id);
        if let Some((index, unknown)) = post.mentions.iter().enumerate().find(|(_, id)| is_unknown(id)) {
            let detail = format!("mentions: agent {unknown} is not in this room");
            return Err(EngineError::refused(format!("/mentions/{index}"), detail));
        }
        let only_mentioned = !post.mentions.is_empty() || tape::names_restrict(&policy);
        if post.mentions.is_empty() {
            post.mentions = tape::mentions_in(&post.text, &agents);
        }
        check_post(&post)?;
        let members: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
        let rules = RoomRules { policy: &policy, agents: &members, now: Timestamp::now() };
        let has_budgets = has_budgets?;
        let target = PostTarget { room, rules, agents: &agents, only_mentioned, has_budgets, child: None };
        let prelude = CommitPrelude { events: Vec::new(), changes: Vec::new() };
        self.post_to(actor, target, post, prelude, attempt).await
    }

    /// `prelude` comes before the message in the same commit: a new room, an agent that joins.
    pub(super) async fn post_to(
        &self,
        actor: &Actor,
        target: PostTarget<'_>,
        post: NewPost,
        prelude: CommitPrelude,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<PostResult, EngineError> {
        let owner = &actor.workspace;
        let PostTarget { room, rules, agents, only_mentioned, has_budgets, child } = target;
        // A message that starts nothing stops nothing either.
        let when_busy = match post.run {
            true => post.when_busy.unwrap_or(rules.policy.when_busy),
            false => WhenBusy::Enqueue,
        };
        let message_id = MessageId::generate();
        let cells = match post.run {
            true => {
                let seed = tape::seed_of(rules.policy, message_id);
                let last_speaker = self.last_speaker(owner, room, rules.policy).await?;
                tape::first_round(rules, &post.mentions, seed, last_speaker, only_mentioned)
            }
            false => Vec::new(),
        };
        let answers = |agent: &&Agent| cells.iter().any(|cell| cell.agents.contains(&agent.id));
        let planned: Vec<&Agent> = agents.iter().filter(answers).collect();
        let may_spend = async {
            if !has_budgets || planned.is_empty() {
                return Ok(());
            }
            let above = child.map_or(RunsAbove::none(), |child| child.above);
            let agents: Vec<AgentId> = planned.iter().map(|agent| agent.id).chain(above.agents()).collect();
            let rooms: Vec<RoomId> = [room].into_iter().chain(above.rooms()).collect();
            let user = child.map_or_else(|| actor.user_id(), |child| child.place.user_id);
            self.check_budget(owner, BudgetSubjects { user, agents: &agents, rooms: &rooms }).await
        };
        let (attachments, may_spend, may_store) = tokio::join!(
            self.resolve_attachments(owner, &post.attachments),
            may_spend,
            self.check_storage(owner, post.text.len() as u64)
        );
        may_spend?;
        may_store?;
        let attachments = attachments?;
        let calls_a_skill = self.check_skill_call(owner, &post.text, &planned).await?;
        let steerable = match when_busy {
            // A called skill needs a run of its own.
            WhenBusy::Steer if !calls_a_skill => self.steerable_runs(owner, room, &planned).await?,
            WhenBusy::Steer | WhenBusy::Enqueue | WhenBusy::Interrupt | WhenBusy::Reject => Vec::new(),
        };
        let audience = if only_mentioned { post.mentions.clone() } else { Vec::new() };
        let draft = PostDraft {
            actor,
            target,
            question: TapeQuestion { message_id, rules, cells, audience, when_busy },
            author: match child {
                Some(child) => child.author.clone(),
                None => Author::Person { name: actor.name().clone(), user_id: actor.user_id() },
            },
            post: NewPost { attachments, ..post },
            prelude,
            attempt,
        };
        self.store_post(draft, steerable).await
    }

    /// The agent that answered last, for a policy in which agents take turns.
    async fn last_speaker(
        &self,
        owner: &Owner,
        room: RoomId,
        policy: &RoomPolicy,
    ) -> Result<Option<AgentId>, EngineError> {
        if policy.kind != TurnOrder::RoundRobin {
            return Ok(None);
        }
        let filter = RunFilter { room_id: Some(room), limit: 1, ..RunFilter::default() };
        Ok(self.store().runs(owner, &filter).await?.first().map(|run| run.agent_id))
    }

    /// Limits what one workspace can have in the queue. Two posts at the same time may both be accepted at the limit.
    /// Returns whether the workspace has budgets, which the same query reads.
    pub(super) async fn check_queue_limit(&self, workspace: &Owner) -> Result<bool, EngineError> {
        let limit = self.config().unfinished_runs_per_workspace;
        let (unfinished, budgets) = self.store().queue_and_budgets(workspace, limit).await?;
        if unfinished >= limit {
            return Err(EngineError::QueueFull { limit });
        }
        Ok(budgets > 0)
    }

    async fn store_post(&self, draft: PostDraft<'_>, mut steerable: Vec<RunRef>) -> Result<PostResult, EngineError> {
        let PostDraft { actor, attempt, .. } = draft;
        let when_busy = draft.question.when_busy;
        // A new room has no tape yet, and most others have none either: a commit that should know one is rejected.
        let mut tape: Option<TapeRecord> = match draft.target.rules.agents.len() {
            0 | 1 => None,
            _ => self.store().tape(draft.target.room).await?,
        };
        let (message, mut runs, signals, committed) = loop {
            let BuiltPost { commit, mut message, posted_at, runs, first_agent, signals } =
                draft.build(&steerable, tape.as_ref())?;
            match self.commit_and_start(commit, first_agent, (&message, posted_at)).await {
                // A concurrent request with the same key was first: return its result.
                Err(store::StoreError::KeyUsed) => {
                    let message = self.earlier_result(actor, attempt).await?.ok_or(EngineError::KeyConflict)?;
                    return self.repeated_post(actor, &message).await;
                }
                // A run that should take the message has just ended: new runs answer it.
                Err(store::StoreError::Fenced) if !steerable.is_empty() => steerable.clear(),
                // Another message, an end or a command has changed the plan: plan again.
                Err(store::StoreError::TapeChanged) => tape = self.store().tape(draft.target.room).await?,
                done => {
                    let committed = done?;
                    message.seq = committed.first_seq + posted_at as u64;
                    runs.iter().for_each(|run| traces::queued_by_request(run.id));
                    break (message, runs, signals, committed);
                }
            }
        };
        if when_busy == WhenBusy::Interrupt {
            let why = RunStop::Interrupt(Interruption::NewMessage);
            self.active_runs().stop_room(message.room_id, committed.first_seq, why);
            // The worker would do it too; here it is done before the caller gets the response.
            if let Err(error) = self.end_stopped_in_queue().await {
                tracing::warn!(%error, "could not end the interrupted queued runs; the worker will");
            }
        }
        for run in &steerable {
            self.active_runs().wake(run.id);
        }
        if !steerable.is_empty() {
            runs.splice(0..0, self.wait_for_steering(&actor.workspace, &message, signals, steerable).await?);
        }
        Ok(PostResult { message, runs })
    }

    /// The response to a repeated request.
    pub(super) async fn repeated_post(&self, actor: &Actor, message: &str) -> Result<PostResult, EngineError> {
        let owner = &actor.workspace;
        let id: MessageId = message.parse().map_err(|_| EngineError::KeyConflict)?;
        let room = self.store().room_of_message(owner, id).await?;
        let message = self.store().message(owner, room, id).await?;
        let filter = RunFilter { message_id: Some(id), limit: 1000, ..RunFilter::default() };
        let mut runs = self.store().runs(owner, &filter).await?;
        runs.sort_by_key(|run| run.queued_seq);
        let queued = runs.into_iter().map(|run| RunRef { id: run.id, agent_id: run.agent_id });
        let mut runs = self.runs_that_took(owner, &message).await?;
        runs.extend(queued);
        Ok(PostResult { message, runs })
    }
}

/// The room that a message is posted to, with its agents.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostTarget<'a> {
    pub room: RoomId,
    pub rules: RoomRules<'a>,
    /// The agents that may answer.
    pub agents: &'a [Agent],
    /// Whether the agents that the message names are the only ones that answer.
    pub only_mentioned: bool,
    /// Whether the workspace has budgets, which have to be checked.
    pub has_budgets: bool,
    /// For a message of an agent, whose run starts the runs that answer it.
    pub child: Option<ChildPost<'a>>,
}

/// How the runs of an agent's message belong to the tree of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildPost<'a> {
    pub place: TreePlace,
    pub author: &'a Author,
    pub above: &'a RunsAbove,
}

/// Events and changes that come first in a commit.
#[derive(Debug, Clone)]
pub(super) struct CommitPrelude {
    pub events: Vec<NewEvent>,
    pub changes: Vec<RowChange>,
}

/// A checked message that is not stored yet.
struct PostDraft<'a> {
    actor: &'a Actor,
    target: PostTarget<'a>,
    question: TapeQuestion<'a>,
    author: Author,
    post: NewPost,
    prelude: CommitPrelude,
    attempt: Option<&'a IdempotentRequest>,
}

/// A draft with everything that its commit stores.
struct BuiltPost<'a> {
    commit: Commit,
    message: Message,
    /// The index of the message's event in the commit.
    posted_at: usize,
    runs: Vec<RunRef>,
    /// The agent of the first run.
    first_agent: Option<&'a Agent>,
    signals: Vec<Signal>,
}

impl<'a> PostDraft<'a> {
    /// Runs of `steerable` are asked to take the message; the other agents get new runs.
    /// `tape` is what is planned in the room.
    fn build(&self, steerable: &[RunRef], tape: Option<&TapeRecord>) -> Result<BuiltPost<'a>, EngineError> {
        let Self { actor, target, question, author, post, prelude, attempt } = self;
        let TapeQuestion { message_id, when_busy, .. } = *question;
        let (owner, room) = (&actor.workspace, target.room);
        if when_busy == WhenBusy::Reject && tape.is_some() {
            return Err(EngineError::RoomBusy);
        }
        let PostPlan { shown, queued, tape } = match post.run {
            true => question.plan(tape, steerable)?,
            false => PostPlan::default(),
        };
        let runs: Vec<RunRef> = queued.runs().collect();
        // What is planned now and queued later has no place in a tree.
        if target.child.is_some() && runs.is_empty() {
            return Err(EngineError::RoomBusy);
        }
        let CommitPrelude { mut events, mut changes } = prelude.clone();
        if let Some(attempt) = attempt {
            // First, so that a used key stops the commit before any other change.
            let (owner, attempt, result) = (owner.clone(), IdempotentRequest::clone(attempt), message_id.to_string());
            changes.insert(0, RowChange::StoreIdempotencyKey { owner, attempt, result });
        }
        if when_busy == WhenBusy::Interrupt {
            changes.push(RowChange::StopEarlierRuns { stop: StopRequest::Interrupt });
        }
        let posted_at = events.len();
        events.push(NewEvent::new(MessagePosted {
            message_id,
            author: author.clone(),
            text: post.text.clone(),
            when_busy,
            mentions: post.mentions.clone(),
            attachments: post.attachments.clone(),
        }));
        events.extend(shown);
        let message = Message {
            id: message_id,
            room_id: room,
            seq: 0,
            author: author.clone(),
            run_id: None,
            status: MessageStatus::Complete,
            text: post.text.clone(),
            thinking: String::new(),
            parts: vec![Part::Text { text: post.text.clone(), item: None }],
            attachments: post.attachments.clone(),
            created_at: Timestamp::now(),
        };
        let entry = AuditEntry::new(actor, AuditAction::Post, AuditedObject::Message, message_id);
        changes.push(RowChange::Audit(entry.in_room(room)));
        changes.push(RowChange::PutMessage { message: message.clone(), seq: SeqRef::Event(posted_at) });
        let steer = |run: &RunRef| Signal::new(run.id, SignalBody::Steer { message_id });
        let signals: Vec<Signal> = steerable.iter().map(steer).collect();
        changes.extend(signals.iter().map(|signal| RowChange::StoreSignal { signal: signal.clone() }));
        changes.extend(tape);
        changes.extend(queued.changes(owner, target.child.map(|child| child.place), events.len()));
        events.extend(queued.events().iter().cloned());
        let guard = if when_busy == WhenBusy::Reject { Guard::RoomIdle } else { Guard::None };
        let commit = Commit { room_id: room, guard, events, changes };
        let first_agent = runs.first().and_then(|run| target.agents.iter().find(|agent| agent.id == run.agent_id));
        Ok(BuiltPost { commit, message, posted_at, runs, first_agent, signals })
    }
}

pub(super) fn check_post(post: &NewPost) -> Result<(), EngineError> {
    if post.text.trim().is_empty() && post.attachments.is_empty() {
        return Err(EngineError::refused("/text", "text: a message needs a text or an attachment"));
    }
    if post.text.len() > MAX_TEXT_BYTES {
        let detail = format!("text: a message has at most {MAX_TEXT_BYTES} bytes, this one has {}", post.text.len());
        return Err(EngineError::invalid_field("/text", detail));
    }
    if post.attachments.len() > MAX_FILES {
        return Err(EngineError::invalid_field("/attachments", format!("attachments: at most {MAX_FILES}")));
    }
    Ok(())
}
