//! Creates, updates and deletes rooms.

use super::{agents::ChosenModel, post::CommitPrelude};
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    agent::Agent,
    audit::{AuditAction, AuditEntry, AuditedObject},
    event::{NewEvent, ParticipantJoined, ParticipantLeft},
    ids::{AgentId, ProjectId, RoomId, RunId},
    name::Name,
    owner::Owner,
    permission::Permission,
    project::SpaceKey,
    room::{ForkedFrom, MAX_AGENTS, PolicyError, Room, RoomPlacementPatch, RoomPolicy},
    run_tree::MAX_TREE_DEPTH,
    time::Timestamp,
};
use serde_json::{Value, json};
use store::{
    IdempotentRequest,
    journal::{Commit, Guard, RowChange},
};

#[derive(Debug, Clone)]
pub struct NewRoom {
    pub name: Name,
    pub agents: Vec<AgentId>,
    pub project_id: Option<ProjectId>,
    pub policy: RoomPolicy,
}

/// What to change in a room; `None` keeps it.
#[derive(Debug, Clone, Default)]
pub struct RoomPatch {
    pub name: Option<Name>,
    /// A merge patch for the policy, see [`RoomPolicy::merged`].
    pub policy: Option<Value>,
    /// The new list of participants.
    pub agents: Option<Vec<AgentId>>,
    pub placement: RoomPlacementPatch,
}

impl Engine {
    pub async fn create_room(
        &self,
        actor: &Actor,
        new: NewRoom,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Room, EngineError> {
        let owner = actor.require(Permission::Post)?;
        if let Some(room) = self.earlier_result(actor, attempt).await? {
            return Ok(self.store().room(owner, room.parse().map_err(|_| EngineError::KeyConflict)?).await?);
        }
        self.check_room_limit(owner).await?;
        self.check_project_of_room(owner, new.project_id).await?;
        let agents = self.find_agents(owner, &new.agents).await?;
        new.policy.check_agents(&new.agents).map_err(foreign_agent)?;
        self.check_chosen_models(owner, &RoomPolicy::default(), &new.policy, &agents).await?;
        let (room, prelude) = new_room_prelude(actor, new, &agents, RoomOrigin::Person);
        self.store_room(actor, room, prelude, &agents, attempt).await
    }

    /// Stores a new room; a request that is repeated gets the room of the first one.
    pub(super) async fn store_room(
        &self,
        actor: &Actor,
        room: Room,
        prelude: CommitPrelude,
        agents: &[Agent],
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Room, EngineError> {
        let owner = &actor.workspace;
        let CommitPrelude { events, mut changes } = prelude;
        if let Some(attempt) = attempt {
            let result = room.id.to_string();
            changes
                .insert(0, RowChange::StoreIdempotencyKey { owner: owner.clone(), attempt: attempt.clone(), result });
        }
        match self.store().commit(Commit { room_id: room.id, guard: Guard::None, events, changes }).await {
            Ok(_) => {
                if room.project_id.is_none() {
                    self.rooms_without_project().add(owner, room.id);
                }
                self.prepare_agents(owner, room.id, &agents.iter().collect::<Vec<_>>()).await;
                Ok(self.store().room(owner, room.id).await?)
            }
            Err(store::StoreError::KeyUsed) => match self.earlier_result(actor, attempt).await? {
                Some(room) => Ok(self.store().room(owner, room.parse().map_err(|_| EngineError::KeyConflict)?).await?),
                None => Err(EngineError::KeyConflict),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a room and its participants in one commit; new agents join in the given order.
    pub async fn update_room(
        &self,
        actor: &Actor,
        id: RoomId,
        patch: RoomPatch,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Post)?;
        let room = self.store().room(owner, id).await?;
        let RoomPatch { name, policy, agents, placement } = patch;
        // Pinning or archiving a room is no activity of it.
        let is_only_placed = !placement.is_empty() && name.is_none() && policy.is_none() && agents.is_none();
        let wanted = match &agents {
            Some(agents) => Some(self.find_agents(owner, agents).await?),
            None => None,
        };
        let (mut events, mut changes) = (Vec::new(), Vec::new());
        if let Some(attempt) = attempt {
            let (owner, attempt, result) = (owner.clone(), attempt.clone(), id.to_string());
            changes.push(RowChange::StoreIdempotencyKey { owner, attempt, result });
        }
        let members: Vec<AgentId> = agents.clone().unwrap_or_else(|| room.agents.clone());
        let policy = changed_policy(&room.policy, policy, &members)?;
        if let Some(policy) = &policy {
            let members = self.find_agents(owner, &members).await?;
            self.check_chosen_models(owner, &room.policy, policy, &members).await?;
        }
        changes.push(match &policy {
            Some(policy) => audit_detail(actor, id, json!({"policy": policy})),
            None => audit(actor, AuditAction::Update, id),
        });
        if !placement.is_empty() {
            changes.push(RowChange::PlaceRoom { owner: owner.clone(), patch: placement });
        }
        if !is_only_placed {
            changes.push(RowChange::UpdateRoom { owner: owner.clone(), name, policy });
        }
        let is_wanted = |id: &AgentId| agents.as_ref().is_none_or(|agents| agents.contains(id));
        for &agent_id in room.agents.iter().filter(|id| !is_wanted(id)) {
            events.push(NewEvent::new(ParticipantLeft { agent_id }));
            changes.push(RowChange::Leave { agent_id });
        }
        let joining: Vec<&Agent> = wanted.iter().flatten().filter(|agent| !room.agents.contains(&agent.id)).collect();
        joining.iter().for_each(|agent| push_join(agent, &mut events, &mut changes));
        self.store().commit(Commit { room_id: id, guard: Guard::None, events, changes }).await?;
        self.prepare_agents(owner, id, &joining).await;
        Ok(())
    }

    /// Deletes a room after cancelling its runs, and the rooms that they have opened for other agents.
    pub async fn delete_room(
        &self,
        actor: &Actor,
        room: RoomId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::Post)?;
        self.cancel_room(actor, room).await?;
        // Before their parent: a request that is repeated after a crash finds them again.
        for below in self.rooms_below(&actor.workspace, room).await? {
            match self.store().delete_room(actor, below, None).await {
                Ok(()) | Err(store::StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
            self.config().projects.sandboxes.stop(SpaceKey::Room(below)).await;
        }
        self.store().delete_room(actor, room, attempt).await?;
        self.config().projects.sandboxes.stop(SpaceKey::Room(room)).await;
        Ok(())
    }

    /// The rooms that were opened by runs of a room, and by runs in those rooms; the deepest first.
    async fn rooms_below(&self, owner: &Owner, room: RoomId) -> Result<Vec<RoomId>, EngineError> {
        let (mut all, mut level) = (Vec::new(), vec![room]);
        for _ in 0..MAX_TREE_DEPTH {
            let mut below = Vec::new();
            for room in level {
                below.extend(self.store().rooms_of_children(owner, room).await?);
            }
            all.splice(0..0, below.iter().copied());
            level = below;
        }
        Ok(all)
    }

    /// Deletes a room after cancelling its runs, and erases it without the grace period. It may be deleted already.
    pub async fn purge_room(
        &self,
        actor: &Actor,
        room: RoomId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::Purge)?;
        match self.cancel_room(actor, room).await {
            Ok(_) | Err(EngineError::NotFound) => {}
            Err(error) => return Err(error),
        }
        for below in self.rooms_below(&actor.workspace, room).await? {
            self.store().purge_room(actor, below, None).await?;
            self.config().projects.sandboxes.stop(SpaceKey::Room(below)).await;
        }
        self.store().purge_room(actor, room, attempt).await?;
        self.config().projects.sandboxes.stop(SpaceKey::Room(room)).await;
        Ok(())
    }

    /// Checks the models that a policy newly chooses for agents as if the agents chose them themselves.
    async fn check_chosen_models(
        &self,
        owner: &Owner,
        before: &RoomPolicy,
        after: &RoomPolicy,
        agents: &[Agent],
    ) -> Result<(), EngineError> {
        for agent in agents {
            let (old, settings) = (before.member(agent.id), after.member(agent.id));
            if settings.chooses_model() && (&old.model, old.thinking) != (&settings.model, settings.thinking) {
                self.check_chosen_model(owner, ChosenModel { agent, settings: &settings }).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn find_agents(&self, owner: &Owner, ids: &[AgentId]) -> Result<Vec<Agent>, EngineError> {
        check_agent_count(ids.len())?;
        let mut agents: Vec<Agent> = Vec::with_capacity(ids.len());
        for (index, &id) in ids.iter().enumerate() {
            let pointer = || format!("/agents/{index}");
            if agents.iter().any(|agent| agent.id == id) {
                return Err(EngineError::refused(pointer(), format!("agents: {id} is listed twice")));
            }
            match self.store().agent(owner, id).await {
                Ok(agent) => agents.push(agent),
                Err(store::StoreError::NotFound) => {
                    let detail = format!("agents: agent {id} does not exist; see GET /api/agents");
                    return Err(EngineError::refused(pointer(), detail));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(agents)
    }
}

/// The policy after a change, if it is another one. Settings of agents that leave are forgotten.
fn changed_policy(
    current: &RoomPolicy,
    patch: Option<Value>,
    members: &[AgentId],
) -> Result<Option<RoomPolicy>, EngineError> {
    let mut policy = current.clone();
    policy.retain_agents(members);
    if let Some(patch) = patch {
        policy = policy.merged(patch).map_err(invalid_policy)?;
        policy.check_agents(members).map_err(foreign_agent)?;
    }
    Ok((policy != *current).then_some(policy))
}

pub(super) fn invalid_policy(error: PolicyError) -> EngineError {
    EngineError::invalid_field("/policy", error.to_string())
}

/// A policy that names an agent that is not in the room.
pub(super) fn foreign_agent(error: PolicyError) -> EngineError {
    EngineError::refused("/policy", error.to_string())
}

/// Who changed a room, as a change of the same commit.
pub(super) fn audit(actor: &Actor, action: AuditAction, room: RoomId) -> RowChange {
    RowChange::Audit(AuditEntry::new(actor, action, AuditedObject::Room, room).in_room(room))
}

/// The same, with what was changed.
pub(super) fn audit_detail(actor: &Actor, room: RoomId, detail: Value) -> RowChange {
    let entry = AuditEntry::new(actor, AuditAction::Update, AuditedObject::Room, room).in_room(room);
    RowChange::Audit(AuditEntry { detail: Some(detail), ..entry })
}

pub(super) fn check_agent_count(agents: usize) -> Result<(), EngineError> {
    match agents > MAX_AGENTS {
        true => Err(EngineError::invalid_field("/agents", format!("agents: a room has at most {MAX_AGENTS}"))),
        false => Ok(()),
    }
}

pub(super) fn push_join(agent: &Agent, events: &mut Vec<NewEvent>, changes: &mut Vec<RowChange>) {
    events.push(NewEvent::new(ParticipantJoined { agent_id: agent.id, name: agent.spec.name.clone() }));
    changes.push(RowChange::Join { agent_id: agent.id });
}

/// How a room came to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum RoomOrigin {
    /// A person opened it.
    Person,
    /// The run opened it for a child.
    Run(RunId),
    /// It was branched off.
    Fork(ForkedFrom),
}

/// A new room and its first participants, as the first events and changes of a commit.
pub(super) fn new_room_prelude(
    actor: &Actor,
    new: NewRoom,
    agents: &[Agent],
    origin: RoomOrigin,
) -> (Room, CommitPrelude) {
    let (parent_run_id, forked_from) = match origin {
        RoomOrigin::Person => (None, None),
        RoomOrigin::Run(run) => (Some(run), None),
        RoomOrigin::Fork(from) => (None, Some(from)),
    };
    let (now, id) = (Timestamp::now(), RoomId::generate());
    // The last bytes of an id are random.
    let [.., a, b, c, d] = *id.0.as_bytes();
    let seed = if new.policy.seed == 0 { u32::from_be_bytes([a, b, c, d]) } else { new.policy.seed };
    let room = Room {
        id,
        name: new.name,
        agents: new.agents,
        project_id: new.project_id,
        parent_run_id,
        forked_from,
        policy: RoomPolicy { seed, ..new.policy },
        head: 0,
        created_at: now,
        updated_at: now,
    };
    let mut events = Vec::new();
    let mut changes = vec![
        RowChange::CreateRoom { owner: actor.workspace.clone(), room: room.clone() },
        audit(actor, AuditAction::Create, room.id),
    ];
    for agent in agents {
        push_join(agent, &mut events, &mut changes);
    }
    (room, CommitPrelude { events, changes })
}
