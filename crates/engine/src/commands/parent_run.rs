//! The run above a run that an agent starts: where the new run belongs in the tree, and what it inherits (invariant 25).

use super::post::ChildPost;
use crate::{Engine, EngineError, run::RunsAbove};
use domain::{
    calling_agent::CallingAgent,
    ids::{ProjectId, RoomId, RunId},
    message::Author,
    owner::Owner,
    run::Run,
    run_tree::TreePlace,
};

pub(super) struct ParentRun {
    id: RunId,
    place: TreePlace,
    above: RunsAbove,
    author: Author,
    project_id: Option<ProjectId>,
}

impl ParentRun {
    pub(super) fn id(&self) -> RunId {
        self.id
    }

    /// The project of its room, in which a child works too.
    pub(super) fn project_id(&self) -> Option<ProjectId> {
        self.project_id
    }

    pub(super) fn child_post(&self) -> ChildPost<'_> {
        ChildPost { place: self.place, author: &self.author, above: &self.above }
    }

    /// A run in the room of a run above would wait for that run, which waits for it.
    pub(super) fn check_room(&self, room: RoomId) -> Result<(), EngineError> {
        match self.above.rooms().any(|above| above == room) {
            true => Err(EngineError::Conflict(
                "an agent cannot start a run in a room where it is answering; start it in a new room".to_owned(),
            )),
            false => Ok(()),
        }
    }
}

impl Engine {
    /// Fails if the tree of the run is as deep as it may be.
    pub(super) async fn parent_run(&self, owner: &Owner, run: &Run) -> Result<ParentRun, EngineError> {
        let above = RunsAbove::of_child(self, owner, run).await?;
        let place = run.place_of_child(above.user()).map_err(|limit| EngineError::Conflict(limit.to_string()))?;
        let store = self.store();
        let (room, agent) = tokio::join!(store.room(owner, run.room_id), store.agent(owner, run.agent_id));
        let agent = agent?;
        let author = Author::Agent { id: agent.id, name: agent.spec.name };
        Ok(ParentRun { id: run.id, place, above, author, project_id: room?.project_id })
    }

    /// Finds the run of an agent that calls with a person's token. `None` if it has no turn, or is of another server: then
    /// the person has sent the request.
    pub(super) async fn calling_run(
        &self,
        owner: &Owner,
        caller: CallingAgent,
    ) -> Result<Option<ParentRun>, EngineError> {
        let held = self.store().held_runs(owner, caller.room_id).await?;
        match held.into_iter().find(|(_, agent)| *agent == caller.agent_id) {
            Some((run, _)) => {
                let run = self.store().run(owner, run).await?;
                Ok(Some(self.parent_run(owner, &run).await?))
            }
            None => Ok(None),
        }
    }
}

/// What a run is told that cannot have children any more.
pub(super) fn refuse_child(error: EngineError) -> EngineError {
    match error {
        EngineError::RunEnded => EngineError::Conflict("this run has to stop, so it cannot start another one".into()),
        error => error,
    }
}
