//! A run's own way into the journal: every commit carries its lease, and a store that is unavailable for a moment is
//! tried again with the same event ids, so that nothing is lost or doubled.

use crate::turn::Entry;
use domain::{
    event::NewEvent,
    message::{Author, Message},
    position::Seq,
};
use std::time::Duration;
use store::{
    Error, Store,
    journal::{Change, Commit, Committed, Guard},
    queue::Claim,
};
use tokio::time::{Instant, sleep};

pub(crate) struct Ledger {
    store: Store,
    claim: Claim,
    agent_id: domain::ids::AgentId,
}

/// How long a run holds its breath while the database cannot be written.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Ledger {
    pub(crate) fn new(store: Store, claim: Claim, agent_id: domain::ids::AgentId) -> Self {
        Self { store, claim, agent_id }
    }

    pub(crate) fn event(&self, entry: Entry) -> NewEvent {
        let (body, raw) = entry.raw();
        NewEvent::new(body).of_run(self.claim.run_id, self.agent_id).with_raw(raw)
    }

    /// The seqs of what people said after one seq and up to another, in order.
    pub(crate) async fn people_between(&self, after: Seq, until: Seq) -> Result<Vec<Seq>, Error> {
        const MOST: u32 = 1000;
        let Claim { owner, room_id, .. } = &self.claim;
        let history = self.store.history(owner, *room_id, after, Some(until + 1), MOST).await?;
        if history.messages.len() >= MOST as usize {
            return Err(Error::Unreadable("too much was said meanwhile".into()));
        }
        let of_people = |message: &&Message| matches!(message.author, Author::Person { .. });
        Ok(history.messages.iter().filter(of_people).map(|message| message.seq).collect())
    }

    /// `changes` is called anew for every try.
    pub(crate) async fn commit(
        &self,
        events: Vec<NewEvent>,
        changes: impl Fn() -> Vec<Change>,
    ) -> Result<Committed, Error> {
        let give_up = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let commit = Commit {
                room_id: self.claim.room_id,
                guard: Guard::Lease { run_id: self.claim.run_id, fence: self.claim.fence },
                events: events.clone(),
                changes: changes(),
            };
            match self.store.commit(commit).await {
                Err(Error::Unavailable(why)) if Instant::now() < give_up => {
                    tracing::warn!(run = %self.claim.run_id, %why, "the journal cannot be written; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                done => return done,
            }
        }
    }
}
