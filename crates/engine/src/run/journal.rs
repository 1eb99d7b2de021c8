//! Journal access for one run: every commit is guarded by the run's lease, and is retried with the same event ids while
//! the store is unavailable, so that no event is lost or stored twice.

use crate::{
    tape::EndedTurn,
    turn::{BUDGET_USED_UP, PendingEvent},
};
use domain::{
    agent::Agent,
    budget::{BudgetStatus, BudgetSubjects},
    event::NewEvent,
    ids::{AgentId, RunId},
    owner::Owner,
    position::Seq,
    room::RoomPolicy,
    signal::Signal,
    time::Timestamp,
    usage::Cost,
};
use std::time::Duration;
use store::{
    Store, StoreError, TapeRecord,
    journal::{Commit, Committed, Guard, RowChange, RunEnding},
    queue::Claim,
};
use tokio::time::{Instant, sleep};

pub(crate) struct RunJournal {
    store: Store,
    claim: Claim,
    guard: Guard,
    agent_id: AgentId,
}

/// How long commits are retried while the database is unavailable.
const RETRY_LIMIT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl RunJournal {
    pub(crate) fn new(store: Store, claim: Claim, agent_id: AgentId) -> Self {
        let guard = Guard::Lease { run_id: claim.run_id, fence: claim.fence };
        Self { store, claim, guard, agent_id }
    }

    /// For a run that no worker has claimed.
    pub(crate) fn of_unclaimed(store: Store, claim: Claim, agent_id: AgentId) -> Self {
        let guard = Guard::Unclaimed { run_id: claim.run_id };
        Self { store, claim, guard, agent_id }
    }

    pub(super) fn run_id(&self) -> RunId {
        self.claim.run_id
    }

    pub(super) fn agent_id(&self) -> AgentId {
        self.agent_id
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.claim.owner
    }

    pub(crate) fn event(&self, entry: PendingEvent) -> NewEvent {
        let (body, raw) = entry.into_parts();
        NewEvent::new(body).of_run(self.claim.run_id, self.agent_id).with_raw(raw)
    }

    pub(super) async fn pending_signals(&self) -> Result<Vec<Signal>, StoreError> {
        self.store.pending_signals(self.claim.run_id).await
    }

    pub(super) async fn tape(&self) -> Result<Option<TapeRecord>, StoreError> {
        self.store.tape(self.claim.room_id).await
    }

    /// The policy and the agents of the room. A deleted room has none.
    pub(super) async fn room(&self) -> Result<(RoomPolicy, Vec<Agent>), StoreError> {
        match self.store.room_with_agents(&self.claim.owner, self.claim.room_id).await {
            Err(StoreError::NotFound) => Ok((RoomPolicy::default(), Vec::new())),
            found => found,
        }
    }

    /// The end of the run, before it is known what the agent has said.
    pub(super) fn ended_turn(&self, ending: &RunEnding) -> EndedTurn {
        let (run, agent, status) = (self.claim.run_id, self.agent_id, ending.status);
        let out_of_budget = ending.error.as_ref().is_some_and(|error| error.code == BUDGET_USED_UP);
        EndedTurn { run, agent, status, has_spoken: false, named: Vec::new(), ends_round: false, out_of_budget }
    }

    /// A budget that counts these subjects, now or at the time of the run, and is used up.
    pub(super) async fn used_up_budget(
        &self,
        subjects: BudgetSubjects<'_>,
        queued_at: Timestamp,
        unstored: Cost,
    ) -> Result<Option<BudgetStatus>, StoreError> {
        self.store.check_budget(&self.claim.owner, subjects, &[Timestamp::now(), queued_at], unstored).await
    }

    /// The seqs of people's messages after one seq and up to another, in order.
    pub(crate) async fn person_messages_between(&self, after: Seq, until: Seq) -> Result<Vec<Seq>, StoreError> {
        const MOST: u32 = 1000;
        let Claim { owner, room_id, .. } = &self.claim;
        let seqs = self.store.post_seqs(owner, *room_id, after, until, MOST).await?;
        match seqs.len() < MOST as usize {
            true => Ok(seqs),
            false => Err(StoreError::unreadable("too many messages between the two seqs")),
        }
    }

    /// Calls `changes` again for every attempt.
    pub(crate) async fn commit(
        &self,
        events: Vec<NewEvent>,
        changes: impl Fn() -> Vec<RowChange>,
    ) -> Result<Committed, StoreError> {
        let deadline = Instant::now() + RETRY_LIMIT;
        let mut pause = FIRST_PAUSE;
        loop {
            let commit = Commit {
                room_id: self.claim.room_id,
                guard: self.guard.clone(),
                events: events.clone(),
                changes: changes(),
            };
            match self.store.commit(commit).await {
                Err(StoreError::Unavailable(why)) if Instant::now() < deadline => {
                    tracing::warn!(run = %self.claim.run_id, %why, "the journal cannot be written; retrying");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                done => return done,
            }
        }
    }
}
