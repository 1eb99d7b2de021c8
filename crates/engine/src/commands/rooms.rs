//! Making rooms, and who sits in them.

use super::post::Opening;
use crate::{Engine, Error};
use domain::{
    agent::Agent,
    event::{NewEvent, ParticipantJoined, ParticipantLeft},
    ids::{AgentId, ProjectId, RoomId},
    name::Name,
    owner::Owner,
    room::{MAX_AGENTS, Room, RoomPolicy},
    time::Timestamp,
};
use store::{
    Attempt,
    journal::{Change, Commit, Guard},
};

#[derive(Debug, Clone)]
pub struct NewRoom {
    pub name: Name,
    pub agents: Vec<AgentId>,
    pub project_id: Option<ProjectId>,
    pub policy: RoomPolicy,
}

impl Engine {
    pub async fn create_room(&self, owner: &Owner, new: NewRoom, attempt: Option<&Attempt>) -> Result<Room, Error> {
        if let Some(room) = self.earlier(owner, attempt).await? {
            return Ok(self.store().room(owner, room.parse().map_err(|_| Error::KeyConflict)?).await?);
        }
        let agents = self.find_agents(owner, &new.agents).await?;
        let (room, opening) = opening(owner, new, &agents);
        let Opening { events, mut changes } = opening;
        if let Some(attempt) = attempt {
            let result = room.id.to_string();
            changes.insert(0, Change::Remember { owner: owner.clone(), attempt: attempt.clone(), result });
        }
        match self.store().commit(Commit { room_id: room.id, guard: Guard::None, events, changes }).await {
            Ok(_) => {
                self.prepare(owner, room.id, &agents.iter().collect::<Vec<_>>()).await;
                Ok(self.store().room(owner, room.id).await?)
            }
            Err(store::Error::KeyUsed) => match self.earlier(owner, attempt).await? {
                Some(room) => Ok(self.store().room(owner, room.parse().map_err(|_| Error::KeyConflict)?).await?),
                None => Err(Error::KeyConflict),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Seats exactly these agents, in this order of joining for those who are new.
    pub async fn seat(&self, owner: &Owner, room: RoomId, agents: &[AgentId]) -> Result<Room, Error> {
        let room = self.store().room(owner, room).await?;
        let wanted = self.find_agents(owner, agents).await?;
        let (mut events, mut changes) = (Vec::new(), Vec::new());
        for &agent_id in room.agents.iter().filter(|id| !agents.contains(id)) {
            events.push(NewEvent::new(ParticipantLeft { agent_id }));
            changes.push(Change::Leave { agent_id });
        }
        let joining: Vec<&Agent> = wanted.iter().filter(|agent| !room.agents.contains(&agent.id)).collect();
        joining.iter().for_each(|agent| join(agent, &mut events, &mut changes));
        if !changes.is_empty() {
            self.store().commit(Commit { room_id: room.id, guard: Guard::None, events, changes }).await?;
            self.prepare(owner, room.id, &joining).await;
        }
        Ok(self.store().room(owner, room.id).await?)
    }

    /// Stops what runs in it first.
    pub async fn delete_room(&self, owner: &Owner, room: RoomId, attempt: Option<&Attempt>) -> Result<(), Error> {
        self.cancel_room(owner, room).await?;
        Ok(self.store().delete_room(owner, room, attempt).await?)
    }

    pub(super) async fn find_agents(&self, owner: &Owner, ids: &[AgentId]) -> Result<Vec<Agent>, Error> {
        if ids.len() > MAX_AGENTS {
            return Err(Error::Invalid(format!("agents: a room seats at most {MAX_AGENTS}")));
        }
        let mut agents: Vec<Agent> = Vec::with_capacity(ids.len());
        for &id in ids {
            if agents.iter().any(|agent| agent.id == id) {
                return Err(Error::Invalid(format!("agents: {id} is named twice")));
            }
            match self.store().agent(owner, id).await {
                Ok(agent) => agents.push(agent),
                Err(store::Error::NotFound) => {
                    return Err(Error::Invalid(format!("agents: there is no agent {id}; see GET /api/agents")));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(agents)
    }
}

pub(super) fn join(agent: &Agent, events: &mut Vec<NewEvent>, changes: &mut Vec<Change>) {
    events.push(NewEvent::new(ParticipantJoined { agent_id: agent.id, name: agent.spec.name.clone() }));
    changes.push(Change::Join { agent_id: agent.id });
}

/// A new room with its first participants, as the beginning of a commit.
pub(super) fn opening(owner: &Owner, new: NewRoom, agents: &[Agent]) -> (Room, Opening) {
    let now = Timestamp::now();
    let room = Room {
        id: RoomId::generate(),
        name: new.name,
        agents: new.agents,
        project_id: new.project_id,
        policy: new.policy,
        head: 0,
        created_at: now,
        updated_at: now,
    };
    let mut events = Vec::new();
    let mut changes = vec![Change::CreateRoom { owner: owner.clone(), room: room.clone() }];
    for agent in agents {
        join(agent, &mut events, &mut changes);
    }
    (room, Opening { events, changes })
}
