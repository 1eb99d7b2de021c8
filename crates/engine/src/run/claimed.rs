//! A claimed run with the data that its driver needs. A run that was claimed in the commit that queued it brings the
//! data with it; any other is read from the store.

use super::{ActiveRun, Prefetch, RunEnd, RunJournal, StoredStart};
use crate::{Engine, work::TakenSlot};
use domain::{
    agent::Agent,
    message::Message,
    run::{Run, RunError},
};
use providers::{TurnEnd, TurnOutcome};
use store::{StoreError, queue::Claim};

pub(crate) struct ClaimedRun {
    pub claim: Claim,
    pub run: Run,
    pub agent: Agent,
    /// The message that the run answers.
    pub message: Message,
    /// `None` if the start is not stored yet.
    pub started: Option<StoredStart>,
    pub prefetch: Option<Prefetch>,
    /// Held until the run has ended.
    pub slot: TakenSlot,
    pub active: ActiveRun,
}

impl ClaimedRun {
    /// Reads a run that was claimed from the queue. Ends the run and returns `None` if its agent was deleted.
    pub(super) async fn load(
        engine: &Engine,
        claim: Claim,
        slot: TakenSlot,
        active: ActiveRun,
    ) -> Result<Option<Self>, StoreError> {
        let store = engine.store();
        let run = store.run(&claim.owner, claim.run_id).await?;
        // Concurrently, to reduce the time to first token.
        let agent = store.agent(&claim.owner, run.agent_id);
        match tokio::join!(agent, store.message(&claim.owner, run.room_id, run.message_id)) {
            (Err(StoreError::NotFound), _) => {
                let journal = RunJournal::new(store.clone(), claim, run.agent_id);
                let error = RunError::new("agent_deleted", "the agent was deleted");
                let outcome = TurnOutcome::from_end(TurnEnd::Failed(error));
                journal.end(RunEnd::without_driver(&journal, &run, &[], None, None, outcome)?).await?;
                Ok(None)
            }
            (agent, message) => {
                let (agent, message) = (agent?, message?);
                Ok(Some(Self { claim, run, agent, message, started: None, prefetch: None, slot, active }))
            }
        }
    }

    pub(super) fn journal(&self, engine: &Engine) -> RunJournal {
        RunJournal::new(engine.store().clone(), self.claim.clone(), self.agent.id)
    }
}
