//! Recovery of the runs of a crashed server (orphan runs): their stored events become a partial answer, and they end as interrupted. Runs that were
//! stopped while they were queued end in the same way.
//!
//! The worker in `work` finds the runs to recover: at the start, and when the lease of another worker expires.

use crate::{
    Engine,
    run::{RunEnd, RunJournal},
    turn::TurnStopReason,
};
use domain::event::Interruption;
use providers::{TurnEnd, TurnOutcome};
use store::{StoreError, journal::StopRequest, queue::Claim};
use tokio::task::JoinSet;

/// How many runs of the queue end side by side.
const ENDED_AT_ONCE: usize = 64;

impl Engine {
    /// Recovers a run whose server crashed: folds its stored events into a partial answer and ends it as interrupted. The run is not repeated: it
    /// may have called tools (invariant 12).
    pub(crate) async fn recover_run(&self, claim: &Claim) -> Result<(), StoreError> {
        self.end_without_driver(claim, Interruption::Crash).await
    }

    pub(super) async fn end_without_driver(&self, claim: &Claim, why: Interruption) -> Result<(), StoreError> {
        let run = self.store().run(&claim.owner, claim.run_id).await?;
        let events = self.store().run_events(claim.room_id, claim.run_id, claim.queued_seq).await?;
        let journal = RunJournal::new(self.store().clone(), claim.clone(), run.agent_id);
        let name = match self.store().agent(&claim.owner, run.agent_id).await {
            Ok(agent) => Some(agent.spec.name),
            Err(StoreError::NotFound) => None,
            Err(error) => return Err(error),
        };
        let (stop, stopped) = (TurnStopReason::Interrupted(why), TurnOutcome::from_end(TurnEnd::Stopped));
        let end = RunEnd::without_driver(&journal, &run, &events, name, Some(stop), stopped)?;
        match journal.end(end).await {
            Ok(()) => {
                tracing::info!(run = %run.id, ?why, "ended a run without a driver");
                metrics::counter!("greenroom_runs_recovered_total").increment(1);
                Ok(())
            }
            // Another worker has already ended it.
            Err(StoreError::Fenced) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends runs that were stopped before a worker claimed them.
    pub(crate) async fn end_stopped_in_queue(&self) -> Result<(), StoreError> {
        let mut claims = self.store().stopped_before_claim().await?.into_iter();
        let mut ending = JoinSet::new();
        loop {
            // Side by side, because commits that arrive together are stored together: a queue may have thousands.
            while ending.len() < ENDED_AT_ONCE
                && let Some(claim) = claims.next()
            {
                let engine = self.clone();
                ending.spawn(async move { engine.end_in_queue(claim).await });
            }
            match ending.join_next().await {
                Some(Ok(ended)) => ended?,
                Some(Err(failed)) => return Err(StoreError::unavailable(failed.to_string())),
                None => return Ok(()),
            }
        }
    }

    async fn end_in_queue(&self, claim: Claim) -> Result<(), StoreError> {
        let run = self.store().run(&claim.owner, claim.run_id).await?;
        let why = match claim.stop {
            Some(StopRequest::Cancel) | None => TurnStopReason::Cancelled,
            Some(StopRequest::Interrupt) => TurnStopReason::Interrupted(Interruption::NewMessage),
        };
        let journal = RunJournal::of_unclaimed(self.store().clone(), claim, run.agent_id);
        let stopped = TurnOutcome::from_end(TurnEnd::Stopped);
        let end = RunEnd::without_driver(&journal, &run, &[], None, Some(why), stopped)?;
        match journal.end(end).await {
            Ok(()) | Err(StoreError::Fenced) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
