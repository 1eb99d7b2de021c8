//! Save first, emit second. One writer per store: it takes whatever arrived while the last transaction was committing,
//! commits it as one, then shows it and answers. Nothing waits for a timer; a lone token is committed at once.

use super::{
    commit::{Change, Commit, Committed},
    frame::Frame,
    memory::Memory,
    plan::{Applied, Plan, Subjects},
    postgres, sqlite,
    watch::List,
};
use crate::{
    Error,
    database::{Database, in_postgres},
    open::Store,
};
use domain::time::Timestamp;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How much one transaction takes at most: bounds its memory and how long the next one waits.
const GROUP_COMMITS: usize = 1024;
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// For how long commits that fail are tried again; those behind them wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// A database that takes longer than this for one transaction hangs.
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Request {
    pub commit: Commit,
    pub reply: oneshot::Sender<Result<Committed, Error>>,
}

pub(crate) struct Writer {
    store: Store,
    requests: mpsc::Receiver<Request>,
    memory: Memory,
}

/// Commits that are saved together, and who waits for them.
struct Group {
    commits: Vec<Commit>,
    replies: Vec<oneshot::Sender<Result<Committed, Error>>>,
    /// A single commit that has failed before.
    retried: bool,
}

impl Writer {
    pub(crate) fn new(store: Store, requests: mpsc::Receiver<Request>) -> Self {
        let memory = Memory::of(store.is_sole_user());
        Self { store, requests, memory }
    }

    /// Runs until cancelled; what was handed in before that is still committed.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        loop {
            let first = tokio::select! {
                // A flood of requests must not keep it from hearing.
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

    fn gather(&mut self, first: Request) -> Group {
        let mut bytes = size(&first.commit);
        let mut group = Group { commits: vec![first.commit], replies: vec![first.reply], retried: false };
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

    /// One commit that the database refuses must not take its neighbours with it, and a connection that broke is worth
    /// another try: what fails is tried again in halves, earlier ones first. A failure may hide a success; whatever
    /// was stored is recognised by its event ids.
    async fn commit(&mut self, group: Group) {
        let started = Instant::now();
        let mut groups = vec![group];
        while let Some(mut group) = groups.pop() {
            match self.save(&group.commits).await {
                Ok(applied) => self.answer(group, applied),
                Err(error) if group.retried || started.elapsed() >= PATIENCE => {
                    tracing::warn!(%error, commits = group.commits.len(), "commits failed");
                    for reply in group.replies {
                        drop(reply.send(Err(error.duplicate())));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, commits = group.commits.len(), "a commit failed; trying again in parts");
                    if let Some(later) = group.split() {
                        groups.push(later);
                    }
                    groups.push(group);
                }
            }
        }
    }

    fn answer(&self, group: Group, applied: Applied) {
        self.show(applied.events);
        for (room, head) in applied.known {
            self.store.tails().stored(room, head);
        }
        if group.commits.iter().zip(&applied.outcomes).any(|(commit, outcome)| is_for_a_worker(commit, outcome)) {
            self.store.queue_bell().notify_one();
        }
        self.tell_watchers(&group.commits);
        for (outcome, reply) in applied.outcomes.into_iter().zip(group.replies) {
            // Nobody waits any more: the commit stands all the same.
            drop(reply.send(outcome));
        }
    }

    async fn save(&mut self, commits: &[Commit]) -> Result<Applied, Error> {
        let started = Instant::now();
        let now = Timestamp::now();
        let applied = tokio::time::timeout(DEADLINE, self.apply(commits, now))
            .await
            .map_err(|_| Error::Unavailable(format!("no answer within {} s", DEADLINE.as_secs())))??;
        metrics::histogram!("greenroom_commit_seconds").record(started.elapsed().as_secs_f64());
        metrics::histogram!("greenroom_commit_group_size").record(commits.len() as f64);
        Ok(applied)
    }

    async fn apply(&mut self, commits: &[Commit], now: Timestamp) -> Result<Applied, Error> {
        let subjects = Subjects::of(commits);
        match self.store.clone().database() {
            Database::Sqlite { write, meddled, .. } => {
                let mut transaction = sqlite::Transaction::on(write).await?;
                let meddled = meddled.load(Ordering::Relaxed);
                let (mut facts, is_all) = self.memory.recall(&subjects, meddled);
                if !is_all {
                    facts.learn(transaction.look(&subjects).await?);
                }
                let plan = Plan::of(commits, facts, now)?;
                self.leak_before_commit(&plan.applied);
                transaction.commit(&plan).await?;
                self.memory.keep(plan.facts, meddled);
                Ok(plan.applied)
            }
            Database::Postgres(pool) => Ok(in_postgres!(pool, "BEGIN", |transaction| {
                let plan = Plan::of(commits, postgres::look(&mut transaction, &subjects).await?, now)?;
                postgres::store(&mut transaction, &plan).await?;
                self.leak_before_commit(&plan.applied);
                plan.applied
            })),
        }
    }

    fn show(&self, events: std::collections::BTreeMap<domain::ids::RoomId, Vec<domain::event::Event>>) {
        for (room, events) in events {
            metrics::counter!("greenroom_events_total").increment(events.len() as u64);
            let frames = events.iter().map(|event| Frame::new(self.store.epoch(), event)).collect();
            self.store.tails().publish(room, frames);
        }
    }

    fn tell_watchers(&self, commits: &[Commit]) {
        let watches = self.store.watches();
        watches.moved(commits.iter().map(|commit| commit.room_id));
        for change in commits.iter().flat_map(|commit| &commit.changes) {
            if let Change::CreateRoom { owner, .. } = change {
                watches.listed(owner, List::Rooms);
            }
        }
    }

    /// The bug that the crash harness must be able to catch: showing before saving. Built only for that proof.
    #[cfg(feature = "planted-bugs")]
    fn leak_before_commit(&self, applied: &Applied) {
        if self.store.planted() == Some(crate::Planted::EmitBeforeCommit) {
            self.show(applied.events.clone());
        }
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "the other build of it needs self")]
    fn leak_before_commit(&self, _: &Applied) {}
}

impl Group {
    /// Cuts off the later half; a single commit is as small as it gets and has one more try.
    fn split(&mut self) -> Option<Self> {
        if self.commits.len() == 1 {
            self.retried = true;
            return None;
        }
        let half = self.commits.len() / 2;
        Some(Self { commits: self.commits.split_off(half), replies: self.replies.split_off(half), retried: false })
    }
}

/// Something waits to be claimed, to be ended, or has made way for the next.
fn is_for_a_worker(commit: &Commit, outcome: &Result<Committed, Error>) -> bool {
    let Ok(committed) = outcome else { return false };
    commit.changes.iter().any(|change| match change {
        Change::QueueRun { .. } => committed.claimed.is_none(),
        Change::StopEarlier { .. } | Change::EndRun { .. } => true,
        _ => false,
    })
}

fn size(commit: &Commit) -> usize {
    commit.events.iter().map(|event| event.data.len() + event.raw.as_ref().map_or(0, String::len) + 256).sum()
}
