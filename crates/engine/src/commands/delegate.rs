//! Runs that an agent starts for another agent: a task becomes a message in a new room, and its answer goes back to the run
//! that asked. The new run is a child of that run (invariant 25).

use super::{
    disconnect::OnDisconnect,
    execute::title,
    parent_run::refuse_child,
    post::{NewPost, PostTarget, check_post},
    rooms::{NewRoom, RoomOrigin, new_room_prelude},
};
use crate::{Engine, EngineError, follow::EventUpdate, tape::RoomRules};
use domain::{
    actor::{Actor, Credential},
    agent::Agent,
    event::EventBody,
    fold::Answer,
    ids::{RoomId, RunId},
    owner::Owner,
    position::Position,
    room::RoomPolicy,
    run::RunStatus,
    run_tree::ChildRun,
    time::Timestamp,
};
use std::{future::Future, time::Duration};
use store::StoreError;
use tokio::time::Instant;

/// How many names an error lists.
const MAX_LISTED_AGENTS: usize = 50;
/// How long to wait for events before looking again whether the child still has to run.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(15);

/// What an agent asks of another one.
pub(crate) struct ChildTask {
    /// Its name or id.
    pub agent: String,
    pub text: String,
    /// Only agents of this room can be asked.
    pub only_members_of: Option<RoomId>,
}

pub(crate) struct ChildAnswer {
    pub text: String,
    /// False if the run failed or was stopped; `text` says so.
    pub is_complete: bool,
}

/// Hears of a child while it runs.
pub(crate) trait ChildProgress: Send {
    fn started(&mut self, child: ChildRun) -> impl Future<Output = ()> + Send;
    /// A piece of its text; may be empty.
    fn progress(&mut self, text: &str) -> impl Future<Output = ()> + Send;
}

impl Engine {
    /// Starts a run of another agent as a child of `parent`, waits for its end and returns its answer. If the future is
    /// dropped, the child is cancelled.
    pub(crate) async fn run_child(
        &self,
        actor: &Actor,
        parent: RunId,
        task: ChildTask,
        progress: &mut impl ChildProgress,
    ) -> Result<ChildAnswer, EngineError> {
        let child = self.start_child(actor, parent, task).await?;
        // Also when the agent cancels the call: nobody reads the answer then.
        let mut guard = self.cancel_on_disconnect(actor, child.run_id, OnDisconnect::Cancel);
        progress.started(child.clone()).await;
        let answer = self.follow_child(&actor.workspace, &child, progress).await?;
        guard.disarm();
        Ok(answer)
    }

    async fn start_child(&self, actor: &Actor, parent: RunId, task: ChildTask) -> Result<ChildRun, EngineError> {
        // An agent has no role; what it may do is decided here: start runs below its own run, and none elsewhere.
        if actor.credential != Credential::Agent(parent) {
            return Err(EngineError::Conflict("only the agent of a run can start runs below it".to_owned()));
        }
        let owner = &actor.workspace;
        let parent = self.parent_run(owner, &self.store().run(owner, parent).await?).await?;
        let agent = self.agent_for_task(owner, &task).await?;
        let has_budgets = self.check_queue_limit(owner).await?;
        self.check_room_limit(owner).await?;
        let post = NewPost { mentions: vec![agent.id], ..NewPost::new(task.text) };
        check_post(&post)?;
        let name = title(&post.text).unwrap_or_else(|| agent.spec.name.clone());
        let project_id = parent.project_id();
        let new = NewRoom { name, agents: vec![agent.id], project_id, policy: RoomPolicy::for_new_room() };
        let (room, prelude) = new_room_prelude(actor, new, std::slice::from_ref(&agent), RoomOrigin::Run(parent.id()));
        if project_id.is_none() {
            // The prefetch asks before the room is stored.
            self.rooms_without_project().add(owner, room.id);
        }
        let agents = std::slice::from_ref(&agent);
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::now() };
        let child = Some(parent.child_post());
        let target = PostTarget { room: room.id, rules, agents, only_mentioned: true, has_budgets, child };
        let posted = self.post_to(actor, target, post, prelude, None).await.map_err(refuse_child)?;
        let run = posted.runs.first().ok_or_else(|| EngineError::Conflict("no run was started".to_owned()))?;
        Ok(ChildRun { run_id: run.id, room_id: room.id, agent_id: agent.id, agent_name: agent.spec.name })
    }

    async fn agent_for_task(&self, owner: &Owner, task: &ChildTask) -> Result<Agent, EngineError> {
        let mut agents = match task.only_members_of {
            Some(room) => self.store().room_with_agents(owner, room).await?.1,
            None => self.store().agents(owner).await?,
        };
        let is_it = |agent: &Agent| agent.spec.name.as_str() == task.agent || agent.id.to_string() == task.agent;
        match agents.iter().position(is_it) {
            Some(at) => Ok(agents.swap_remove(at)),
            None => {
                let names: Vec<&str> =
                    agents.iter().take(MAX_LISTED_AGENTS).map(|agent| agent.spec.name.as_str()).collect();
                let names = names.join(", ");
                Err(EngineError::Invalid(format!("agent: there is no agent {:?} here; there are: {names}", task.agent)))
            }
        }
    }

    async fn follow_child(
        &self,
        owner: &Owner,
        child: &ChildRun,
        progress: &mut impl ChildProgress,
    ) -> Result<ChildAnswer, EngineError> {
        let queries = self.queries();
        let mut events = queries.room_events(owner, child.room_id, &Position::START).await?.of_run(child.run_id);
        let mut answer = Answer::default();
        loop {
            match events.next_before(Instant::now() + FOLLOW_INTERVAL).await? {
                EventUpdate::Events(frames) => {
                    let mut said = String::new();
                    for body in frames.iter().filter_map(|frame| frame.body()) {
                        answer.apply(&body);
                        if let EventBody::ContentDelta(delta) = body {
                            said.push_str(&delta.delta);
                        }
                    }
                    progress.progress(&said).await;
                }
                EventUpdate::RunEnded => break,
                // A child that waits for a person, or for a slot, is still at work.
                EventUpdate::CaughtUp => progress.progress("").await,
                EventUpdate::Large { .. } | EventUpdate::Reset { .. } => {}
            }
        }
        let run = match self.store().run(owner, child.run_id).await {
            Err(StoreError::NotFound) => {
                return Err(EngineError::Conflict("the room of the task was deleted".to_owned()));
            }
            run => run?,
        };
        let (text, _) = answer.texts();
        let name = &child.agent_name;
        let text = match (run.status, run.error) {
            (RunStatus::Completed, _) if text.is_empty() => format!("{name} has ended its turn without an answer."),
            (RunStatus::Completed, _) => text,
            (_, Some(error)) => format!("{name} failed: {}\n\n{text}", error.message),
            (status, None) => format!("{name} was stopped ({status}).\n\n{text}"),
        };
        Ok(ChildAnswer { text, is_complete: run.status == RunStatus::Completed })
    }
}
