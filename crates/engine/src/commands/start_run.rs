//! A message and its answer as two requests: a message that no agent answers yet, and a run that answers the newest
//! message of a room.

use super::{
    post::{CommitPrelude, NewPost, PostTarget, RunRef, check_post},
    rooms::{audit, check_agent_count, push_join},
};
use crate::{Engine, EngineError, tape::RoomRules, traces};
use domain::{
    actor::Actor,
    agent::Agent,
    audit::{AuditAction, AuditEntry, AuditedObject},
    budget::BudgetSubjects,
    event::{NewEvent, RunQueued},
    ids::{AgentId, RoomId, RunId},
    message::{Author, Message},
    owner::Owner,
    permission::Permission,
    room::Room,
    time::Timestamp,
};
use store::{
    IdempotentRequest,
    journal::{Commit, Guard, RowChange, SeqRef},
};

/// How many messages are searched for one that a person posted.
const SEARCHED_MESSAGES: u32 = 200;

impl Engine {
    /// Stores a message that starts no run.
    pub async fn add_message(
        &self,
        actor: &Actor,
        room: RoomId,
        text: String,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Message, EngineError> {
        let owner = actor.require(Permission::Post)?;
        if let Some(message) = self.earlier_result(actor, attempt).await? {
            return Ok(self.repeated_post(actor, &message).await?.message);
        }
        let room = self.store().room(owner, room).await?;
        let post = NewPost { run: false, ..NewPost::new(text) };
        check_post(&post)?;
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::now() };
        let target =
            PostTarget { room: room.id, rules, agents: &[], only_mentioned: false, has_budgets: false, child: None };
        let prelude = CommitPrelude { events: Vec::new(), changes: Vec::new() };
        Ok(self.post_to(actor, target, post, prelude, attempt).await?.message)
    }

    /// Starts a run that answers the newest message of the caller. Without an agent it is one of the room, or the first of
    /// the workspace; it joins the room if it is not in it.
    pub async fn start_run(
        &self,
        actor: &Actor,
        room: RoomId,
        agent: Option<AgentId>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<RunRef, EngineError> {
        let owner = actor.require(Permission::Post)?;
        if let Some(run) = self.earlier_result(actor, attempt).await? {
            return self.earlier_run(owner, &run).await;
        }
        let room = self.store().room(owner, room).await?;
        let agent = self.agent_to_start(owner, &room, agent).await?;
        let history = self.store().history(owner, room.id, 0, None, SEARCHED_MESSAGES).await?;
        // A run is charged to the author of the message that it answers.
        let is_post = |message: &&Message| {
            matches!(message.author, Author::Person { .. }) && message.author.user_id() == actor.user_id()
        };
        let Some(message) = history.messages.iter().rev().find(is_post) else {
            return Err(EngineError::Conflict("the room has no message of yours to answer; add one first".to_owned()));
        };
        if self.check_queue_limit(owner).await? {
            let subjects = BudgetSubjects { user: actor.user_id(), agents: &[agent.id], rooms: &[room.id] };
            self.check_budget(owner, subjects).await?;
        }
        let run = RunRef { id: RunId::generate(), agent_id: agent.id };
        let (mut events, mut changes) = (Vec::new(), Vec::new());
        if let Some(attempt) = attempt {
            let (owner, attempt, result) = (owner.clone(), attempt.clone(), run.id.to_string());
            changes.push(RowChange::StoreIdempotencyKey { owner, attempt, result });
        }
        if !room.agents.contains(&agent.id) {
            check_agent_count(room.agents.len() + 1)?;
            push_join(&agent, &mut events, &mut changes);
            changes.push(audit(actor, AuditAction::Update, room.id));
        }
        let entry = AuditEntry::new(actor, AuditAction::Create, AuditedObject::Run, run.id);
        changes.push(RowChange::Audit(entry.in_room(room.id)));
        let seq = SeqRef::Event(events.len());
        events.push(NewEvent::new(RunQueued { message_id: message.id }).of_run(run.id, run.agent_id));
        changes.push(RowChange::QueueRun {
            owner: owner.clone(),
            run_id: run.id,
            agent_id: run.agent_id,
            message_id: message.id,
            place: None,
            seq,
            cell: seq,
            claim: None,
        });
        match self.store().commit(Commit { room_id: room.id, guard: Guard::None, events, changes }).await {
            // A concurrent request with the same key was first: return its result.
            Err(store::StoreError::KeyUsed) => {
                let run = self.earlier_result(actor, attempt).await?.ok_or(EngineError::KeyConflict)?;
                self.earlier_run(owner, &run).await
            }
            stored => {
                stored?;
                traces::queued_by_request(run.id);
                Ok(run)
            }
        }
    }

    async fn agent_to_start(&self, owner: &Owner, room: &Room, agent: Option<AgentId>) -> Result<Agent, EngineError> {
        if let Some(id) = agent.or_else(|| room.agents.first().copied()) {
            return Ok(self.store().agent(owner, id).await?);
        }
        let first = self.store().agents(owner).await?.into_iter().next();
        first.ok_or_else(|| EngineError::Conflict("there is no agent yet; create one first".to_owned()))
    }

    async fn earlier_run(&self, owner: &Owner, id: &str) -> Result<RunRef, EngineError> {
        let run = self.store().run(owner, id.parse().map_err(|_| EngineError::KeyConflict)?).await?;
        Ok(RunRef { id: run.id, agent_id: run.agent_id })
    }
}
