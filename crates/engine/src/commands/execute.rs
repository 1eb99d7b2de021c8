//! Sends one message to one agent, in a new room or in an existing conversation.

use super::{
    post::{CommitPrelude, NewPost, PostResult, PostTarget, check_post},
    rooms::{NewRoom, audit, check_agent_count, new_room_prelude, push_join},
};
use crate::{Engine, EngineError, tape::RoomRules};
use domain::{
    actor::Actor,
    audit::AuditAction,
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
        let (when_busy, mentions) = (execute.when_busy, vec![agent.id]);
        let post = NewPost { when_busy, mentions, ..NewPost::new(execute.message) };
        let (room, prelude) = match execute.conversation {
            Some(room) => {
                let mut room = self.store().room(owner, room).await?;
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
                let new =
                    NewRoom { name, agents: vec![agent.id], project_id: None, policy: RoomPolicy::for_new_room() };
                let (room, prelude) = new_room_prelude(actor, new, std::slice::from_ref(&agent), None);
                // The prefetch asks before the room is stored.
                self.rooms_without_project().add(owner, room.id);
                (room, prelude)
            }
        };
        check_post(&post)?;
        let (agents, has_budgets) = (std::slice::from_ref(&agent), has_budgets?);
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::now() };
        let target = PostTarget { room: room.id, rules, agents, only_mentioned: true, has_budgets, child: None };
        self.post_to(actor, target, post, prelude, attempt).await
    }
}

/// A room name from the first line of the message.
pub(super) fn title(text: &str) -> Option<Name> {
    let line: String = text.trim().lines().next()?.chars().filter(|c| !c.is_control()).take(MAX_CHARS / 2).collect();
    Name::parse(&line).ok()
}
