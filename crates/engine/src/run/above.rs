//! The runs above a run that another run started. It inherits from them: their budgets and limits bound it, and it may use
//! no tool without approval that they may not (invariant 25).

use crate::Engine;
use domain::{
    agent::{Agent, ToolPolicy},
    ids::{AgentId, RoomId, UserId},
    limits::{LimitOverrides, Limits},
    owner::Owner,
    run::Run,
};
use store::StoreError;

/// Empty for the first run of a tree, which is most of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunsAbove {
    /// The nearest first.
    runs: Vec<Run>,
    settings: Vec<(ToolPolicy, LimitOverrides)>,
    user: Option<UserId>,
}

impl RunsAbove {
    pub(crate) fn none() -> &'static Self {
        static NONE: RunsAbove = RunsAbove { runs: Vec::new(), settings: Vec::new(), user: None };
        &NONE
    }

    /// Reads the runs above a run. Without a parent, nothing is read.
    pub(crate) async fn load(engine: &Engine, owner: &Owner, run: &Run) -> Result<Self, StoreError> {
        match run.parent_id {
            None => Ok(Self::default()),
            Some(_) => Self::of(engine, owner, engine.store().run_ancestors(owner, run).await?).await,
        }
    }

    /// The same for a run that `parent` is about to start.
    pub(crate) async fn of_child(engine: &Engine, owner: &Owner, parent: &Run) -> Result<Self, StoreError> {
        let mut runs = vec![parent.clone()];
        runs.extend(engine.store().run_ancestors(owner, parent).await?);
        Self::of(engine, owner, runs).await
    }

    async fn of(engine: &Engine, owner: &Owner, runs: Vec<Run>) -> Result<Self, StoreError> {
        let store = engine.store();
        let mut settings = Vec::new();
        for run in &runs {
            settings.push(match store.agent(owner, run.agent_id).await {
                Ok(Agent { spec, .. }) => (spec.tools, spec.limits),
                // Nothing is allowed by an agent that was deleted; its runs end.
                Err(StoreError::NotFound) => Default::default(),
                Err(error) => return Err(error),
            });
        }
        let user = match runs.last() {
            None => None,
            Some(first) => match store.message(owner, first.room_id, first.message_id).await {
                Ok(message) => message.author.user_id(),
                Err(StoreError::NotFound) => None,
                Err(error) => return Err(error),
            },
        };
        Ok(Self { runs, settings, user })
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentId> {
        self.runs.iter().map(|run| run.agent_id)
    }

    pub(crate) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.runs.iter().map(|run| run.room_id)
    }

    /// The person whose message the tree answers.
    pub(crate) fn user(&self) -> Option<UserId> {
        self.user
    }

    /// The limits of a run with these limits of its own: the lowest of the whole line count.
    pub(super) fn limits(&self, own: Limits) -> Limits {
        self.settings.iter().fold(own, |limits, (_, above)| limits.with(above))
    }

    /// Takes away from a tool policy what the policies above do not allow.
    pub(super) fn restrict(&self, own: &mut ToolPolicy) {
        for (above, _) in &self.settings {
            *own = own.within(above);
        }
    }
}
