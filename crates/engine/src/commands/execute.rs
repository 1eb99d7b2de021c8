//! Sends one message to one agent, in a new room or in an existing conversation.

use super::{
    parent_run::{ParentRun, refuse_child},
    post::{CommitPrelude, NewPost, PostResult, PostTarget, check_post},
    rooms::{NewRoom, RoomOrigin, audit, check_agent_count, new_room_prelude, push_join},
};
use crate::{Engine, EngineError, tape::RoomRules};
use domain::{
    actor::Actor,
    audit::AuditAction,
    calling_agent::CallingAgent,
    ids::{AgentId, RoomId},
    name::{MAX_CHARS, Name},
    permission::Permission,
    room::{RoomPolicy, WhenBusy},
    time::Timestamp,
};
use store::IdempotentRequest;

#[derive(Debug, Clone)]
pub struct ExecuteRequest {
    pub message: String,
    pub conversation: Option<RoomId>,
    pub when_busy: Option<WhenBusy>,
    /// The agent in whose turn the request was sent, if it was: the run becomes a child of its run.
    pub caller: Option<CallingAgent>,
}

impl Engine {
    pub async fn execute(
        &self,
        actor: &Actor,
        agent: AgentId,
        execute: ExecuteRequest,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<PostResult, EngineError> {
        let owner = actor.require(Permission::Post)?;
        if let Some(message) = self.earlier_result(actor, attempt).await? {
            return self.repeated_post(actor, &message).await;
        }
        let (agent, has_budgets) = tokio::join!(self.store().agent(owner, agent), self.check_queue_limit(owner));
        let agent = agent?;
        let parent = match execute.caller {
            Some(caller) => self.calling_run(owner, caller).await?,
            None => None,
        };
        let (when_busy, mentions) = (execute.when_busy, vec![agent.id]);
        let mut post = NewPost { when_busy, mentions, ..NewPost::new(execute.message) };
        let (room, prelude) = match execute.conversation {
            Some(room) => {
                parent.iter().try_for_each(|parent| parent.check_room(room))?;
                let mut room = self.store().room(owner, room).await?;
                if parent.is_some() && when_busy.unwrap_or(room.policy.when_busy) == WhenBusy::Steer {
                    // A child is a run of its own.
                    post.when_busy = Some(WhenBusy::Enqueue);
                }
                let mut prelude = CommitPrelude { events: Vec::new(), changes: Vec::new() };
                if !room.agents.contains(&agent.id) {
                    check_agent_count(room.agents.len() + 1)?;
                    push_join(&agent, &mut prelude.events, &mut prelude.changes);
                    prelude.changes.push(audit(actor, AuditAction::Update, room.id));
                    room.agents.push(agent.id);
                }
                (room, prelude)
            }
            None => {
                self.check_room_limit(owner).await?;
                let name = title(&post.text).unwrap_or_else(|| agent.spec.name.clone());
                let project_id = parent.as_ref().and_then(ParentRun::project_id);
                let new = NewRoom { name, agents: vec![agent.id], project_id, policy: RoomPolicy::for_new_room() };
                let origin = parent.as_ref().map_or(RoomOrigin::Person, |parent| RoomOrigin::Run(parent.id()));
                let (room, prelude) = new_room_prelude(actor, new, std::slice::from_ref(&agent), origin);
                if project_id.is_none() {
                    // The prefetch asks before the room is stored.
                    self.rooms_without_project().add(owner, room.id);
                }
                (room, prelude)
            }
        };
        check_post(&post)?;
        let (agents, has_budgets) = (std::slice::from_ref(&agent), has_budgets?);
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::now() };
        let child = parent.as_ref().map(ParentRun::child_post);
        let target = PostTarget { room: room.id, rules, agents, only_mentioned: true, has_budgets, child };
        let posted = self.post_to(actor, target, post, prelude, attempt).await;
        if parent.is_some() { posted.map_err(refuse_child) } else { posted }
    }
}

/// A room name from the first line of the message.
pub(super) fn title(text: &str) -> Option<Name> {
    let line: String = text.trim().lines().next()?.chars().filter(|c| !c.is_control()).take(MAX_CHARS / 2).collect();
    Name::parse(&line).ok()
}
