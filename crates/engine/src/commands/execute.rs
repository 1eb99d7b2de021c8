//! One shot: a message to one agent, in a room of its own or in a conversation that goes on.

use super::{
    post::{Opening, Post, Posted, Stage},
    rooms::{NewRoom, join, opening},
};
use crate::{Engine, Error};
use domain::{
    ids::{AgentId, RoomId},
    name::{MAX_CHARS, Name},
    owner::Owner,
    room::{RoomPolicy, WhenBusy},
};
use store::Attempt;

#[derive(Debug, Clone)]
pub struct Execute {
    pub message: String,
    pub conversation: Option<RoomId>,
    pub when_busy: Option<WhenBusy>,
}

impl Engine {
    pub async fn execute(
        &self,
        owner: &Owner,
        agent: AgentId,
        execute: Execute,
        attempt: Option<&Attempt>,
    ) -> Result<Posted, Error> {
        if let Some(message) = self.earlier(owner, attempt).await? {
            return self.posted_before(owner, &message).await;
        }
        let agent = self.store().agent(owner, agent).await?;
        let post = Post {
            text: execute.message,
            when_busy: execute.when_busy,
            attachments: Vec::new(),
            mentions: vec![agent.id],
        };
        let (room, opening) = match execute.conversation {
            Some(room) => {
                let room = self.store().room(owner, room).await?;
                let mut opening = Opening { events: Vec::new(), changes: Vec::new() };
                if !room.agents.contains(&agent.id) {
                    join(&agent, &mut opening.events, &mut opening.changes);
                }
                (room, opening)
            }
            None => {
                let name = title(&post.text).unwrap_or_else(|| agent.spec.name.clone());
                let new = NewRoom { name, agents: vec![agent.id], project_id: None, policy: RoomPolicy::default() };
                opening(owner, new, std::slice::from_ref(&agent))
            }
        };
        let stage = Stage { room: room.id, policy: &room.policy, seated: std::slice::from_ref(&agent) };
        self.post_in(owner, stage, post, opening, attempt).await
    }
}

/// The first line, short enough for a list of rooms.
fn title(text: &str) -> Option<Name> {
    let line: String = text.trim().lines().next()?.chars().filter(|c| !c.is_control()).take(MAX_CHARS / 2).collect();
    Name::parse(&line).ok()
}
