//! The append: how events get into the journal. Append to the store first, publish second (invariant 1).
//!
//! Group commit: one writer per store takes all commits that arrived during the last transaction, appends them as one
//! group, then publishes and acknowledges them. There is no timer: a single commit is appended at once. `plan` decides
//! without the database what to append; `sqlite` and `postgres` append it.

use super::{
    fact_cache::FactCache,
    frame::Frame,
    plan::{AppliedGroup, CommitPlan, CommitSubjects},
    postgres, sqlite,
};
use crate::{
    StoreError,
    commit::{Commit, Committed, RowChange},
    database::{Database, in_postgres},
    notify::{OwnerList, Topic},
    open::Store,
};
use domain::{event::Event, ids::RoomId, position::Seq, time::Timestamp};
use std::{
    collections::BTreeMap,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Limits of one transaction: they bound its memory and the waiting time of the next one.
const GROUP_COMMITS: usize = 1024;
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// How long failed commits are retried; later commits wait.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// The timeout of one transaction.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct CommitRequest {
    pub commit: Commit,
    pub reply: oneshot::Sender<Result<Committed, StoreError>>,
}

pub(crate) struct JournalWriter {
    store: Store,
    requests: mpsc::Receiver<CommitRequest>,
    fact_cache: FactCache,
}

/// Commits that are stored together, and the senders of their replies.
struct CommitGroup {
    commits: Vec<Commit>,
    replies: Vec<oneshot::Sender<Result<Committed, StoreError>>>,
    /// Whether this is a single commit that has failed before.
    retried: bool,
}

impl JournalWriter {
    pub(crate) fn new(store: Store, requests: mpsc::Receiver<CommitRequest>) -> Self {
        let fact_cache = FactCache::new(store.is_only_server());
        Self { store, requests, fact_cache }
    }

    /// Runs until cancelled; commits that were submitted before are still stored.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        loop {
            let first = tokio::select! {
                // Many requests must not delay the cancellation.
                biased;
                () = cancel.cancelled(), if !self.requests.is_closed() => {
                    self.requests.close();
                    continue;
                }
                request = self.requests.recv() => request,
            };
            let Some(first) = first else { return };
            let group = self.gather(first);
            self.commit(group).await;
        }
    }

    fn gather(&mut self, first: CommitRequest) -> CommitGroup {
        let mut bytes = size(&first.commit);
        let mut group = CommitGroup { commits: vec![first.commit], replies: vec![first.reply], retried: false };
        while group.commits.len() < GROUP_COMMITS && bytes < GROUP_BYTES {
            let Ok(request) = self.requests.try_recv() else {
                break;
            };
            bytes += size(&request.commit);
            group.commits.push(request.commit);
            group.replies.push(request.reply);
        }
        group
    }

    /// One commit that the database rejects must not fail the others, and a broken connection is worth a retry: a
    /// failed group is retried in halves, earlier commits first. A failure may hide a success; commits that were stored
    /// are recognized by their event ids.
    async fn commit(&mut self, group: CommitGroup) {
        let started = Instant::now();
        let mut groups = vec![group];
        while let Some(mut group) = groups.pop() {
            match self.append(&group.commits).await {
                Ok(applied) => self.acknowledge(group, applied),
                Err(error) if group.retried || started.elapsed() >= RETRY_TIME => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        commits = group.commits.len(),
                        "commits failed"
                    );
                    for reply in group.replies {
                        drop(reply.send(Err(error.duplicate())));
                    }
                }
                Err(error) => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        commits = group.commits.len(),
                        "commits failed; retrying in halves"
                    );
                    if let Some(later) = group.split() {
                        groups.push(later);
                    }
                    groups.push(group);
                }
            }
        }
    }

    fn acknowledge(&self, group: CommitGroup, applied: AppliedGroup) {
        self.publish(applied.events, applied.heads);
        for (commit, outcome) in group.commits.iter().zip(&applied.outcomes) {
            self.notify(commit, outcome);
        }
        for (outcome, reply) in applied.outcomes.into_iter().zip(group.replies) {
            // The caller may no longer wait; the commit is stored anyway.
            drop(reply.send(outcome));
        }
    }

    /// Appends a group within the time limit. Nobody has seen its events when this returns.
    async fn append(&mut self, commits: &[Commit]) -> Result<AppliedGroup, StoreError> {
        let started = Instant::now();
        let now = Timestamp::now();
        let applied = tokio::time::timeout(COMMIT_TIMEOUT, self.append_in_transaction(commits, now))
            .await
            .map_err(|_| StoreError::unavailable(format!("no reply within {} s", COMMIT_TIMEOUT.as_secs())))??;
        metrics::histogram!("greenroom_commit_seconds").record(started.elapsed().as_secs_f64());
        metrics::histogram!("greenroom_commit_group_size").record(commits.len() as f64);
        Ok(applied)
    }

    async fn append_in_transaction(&mut self, commits: &[Commit], now: Timestamp) -> Result<AppliedGroup, StoreError> {
        let subjects = CommitSubjects::from_commits(commits);
        match self.store.clone().database() {
            Database::Sqlite { write, external_writes, .. } => {
                let mut transaction = sqlite::JournalTransaction::acquire(write).await?;
                let external_writes = external_writes.load(Ordering::Relaxed);
                let (mut facts, is_complete) = self.fact_cache.take(&subjects, external_writes);
                if !is_complete {
                    facts.merge(transaction.load_facts(&subjects).await?);
                }
                let plan = CommitPlan::build(commits, facts, now)?;
                self.plant_early_publish(&plan.applied);
                transaction.commit(&plan).await?;
                self.fact_cache.put_back(plan.facts, external_writes);
                Ok(plan.applied)
            }
            Database::Postgres(pool) => Ok(in_postgres!(pool, "BEGIN", |transaction| {
                let plan = CommitPlan::build(commits, postgres::load_facts(&mut transaction, &subjects).await?, now)?;
                postgres::store(&mut transaction, &plan).await?;
                self.plant_early_publish(&plan.applied);
                plan.applied
            })),
        }
    }

    /// Adds the events to the tails first: a reader that is notified finds them there.
    fn publish(&self, events: BTreeMap<RoomId, Vec<Event>>, heads: BTreeMap<RoomId, Seq>) {
        for (room, events) in events {
            metrics::counter!("greenroom_events_total").increment(events.len() as u64);
            let frames = events.iter().map(|event| Frame::new(self.store.epoch(), event)).collect();
            self.store.tails().publish(room, frames);
        }
        for (id, head) in heads {
            self.store.notify_hub().publish(Topic::Room { id, head });
        }
    }

    fn notify(&self, commit: &Commit, outcome: &Result<Committed, StoreError>) {
        let Ok(committed) = outcome else { return };
        if wakes_workers(commit, committed) {
            self.store.notify_queue();
        }
        for change in &commit.changes {
            match change {
                RowChange::CreateRoom { owner, .. }
                | RowChange::UpdateRoom { owner, .. }
                | RowChange::PlaceRoom { owner, .. } => {
                    self.store.list_changed(owner, OwnerList::Rooms);
                }
                RowChange::PutMessage { .. } | RowChange::PutAnswer { .. } => {
                    self.store.changed_rooms().add(commit.room_id);
                }
                RowChange::StoreSignal { signal } => self.store.notify_run(signal.run_id),
                // The end of a run settles its signals.
                RowChange::SettleSignal { run_id, .. } | RowChange::EndRun { run_id, .. } => {
                    self.store.notify_settled(*run_id);
                }
                _ => {}
            }
        }
    }

    /// The bug that the crash harness must detect: publishing before storing. Built only for that test.
    #[cfg(feature = "test-hooks")]
    fn plant_early_publish(&self, applied: &AppliedGroup) {
        if self.store.planted() == Some(crate::PlantedBug::EmitBeforeCommit) {
            self.publish(applied.events.clone(), applied.heads.clone());
        }
    }

    #[cfg(not(feature = "test-hooks"))]
    #[expect(clippy::unused_self, reason = "the build with the feature needs self")]
    fn plant_early_publish(&self, _: &AppliedGroup) {}
}

impl CommitGroup {
    /// Splits off the later half; a single commit gets one more try.
    fn split(&mut self) -> Option<Self> {
        if self.commits.len() == 1 {
            self.retried = true;
            return None;
        }
        let half = self.commits.len() / 2;
        Some(Self { commits: self.commits.split_off(half), replies: self.replies.split_off(half), retried: false })
    }
}

/// Returns whether a worker has something to do: a run waits to be claimed or ended, or a run has ended.
fn wakes_workers(commit: &Commit, committed: &Committed) -> bool {
    let mut claimed_cell = None;
    commit.changes.iter().any(|change| match change {
        RowChange::QueueRun { cell, claim: Some(_), .. } if committed.claimed_fence.is_some() => {
            claimed_cell = Some(*cell);
            false
        }
        // A later cell waits for the one that has just started.
        RowChange::QueueRun { cell, .. } => claimed_cell.is_none_or(|claimed| claimed == *cell),
        RowChange::StopEarlierRuns { .. } | RowChange::EndRun { .. } => true,
        _ => false,
    })
}

fn size(commit: &Commit) -> usize {
    commit.events.iter().map(|event| event.stored_bytes() + 256).sum()
}
