//! Save first, emit second. One writer per store: it takes whatever arrived while the last transaction was committing,
//! commits it as one, then shows it and answers. Nothing waits for a timer; a lone token is committed at once.

use super::{
    apply::{self, Applied},
    commit::{Commit, Committed},
    frame::Frame,
};
use crate::{Error, database::Database, open::Store};
use domain::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How much one transaction takes at most: bounds its memory and how long the next one waits.
const GROUP_COMMITS: usize = 1024;
const GROUP_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Request {
    pub commit: Commit,
    pub reply: oneshot::Sender<Result<Committed, Error>>,
}

pub(crate) struct Writer {
    pub store: Store,
    pub requests: mpsc::Receiver<Request>,
}

impl Writer {
    /// Runs until cancelled; what was handed in before that is still committed.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let mut waiting = Vec::new();
        loop {
            tokio::select! {
                biased;
                request = self.requests.recv() => match request {
                    Some(request) => waiting.push(request),
                    None => return,
                },
                () = cancel.cancelled() => {
                    self.requests.close();
                    while let Some(request) = self.requests.recv().await {
                        self.commit(vec![request]).await;
                    }
                    return;
                }
            }
            let mut bytes = size(&waiting[0].commit);
            while waiting.len() < GROUP_COMMITS && bytes < GROUP_BYTES {
                let Ok(request) = self.requests.try_recv() else {
                    break;
                };
                bytes += size(&request.commit);
                waiting.push(request);
            }
            self.commit(std::mem::take(&mut waiting)).await;
        }
    }

    async fn commit(&self, requests: Vec<Request>) {
        let (commits, replies): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .map(|request| (request.commit, request.reply))
            .unzip();
        match self.save(&commits).await {
            Ok((applied, now)) => {
                self.show(applied.events);
                self.ring(&commits);
                for (outcome, reply) in applied.outcomes.into_iter().zip(replies) {
                    // Nobody waits any more: the commit stands all the same.
                    drop(reply.send(outcome.map(|first| Committed { first, at: now })));
                }
            }
            Err(error) if commits.len() == 1 => {
                tracing::warn!(%error, "a commit failed");
                for reply in replies {
                    drop(reply.send(Err(error.duplicate())));
                }
            }
            Err(error) => {
                // One commit that the database refuses must not take its neighbours with it.
                tracing::warn!(%error, commits = commits.len(), "a group commit failed; trying its parts one by one");
                for (commit, reply) in commits.into_iter().zip(replies) {
                    Box::pin(self.commit(vec![Request { commit, reply }])).await;
                }
            }
        }
    }

    async fn save(&self, commits: &[Commit]) -> Result<(Applied, Timestamp), Error> {
        let started = std::time::Instant::now();
        let now = Timestamp::now();
        let applied = match self.store.database() {
            Database::Sqlite { write, .. } => {
                let mut transaction = write.begin_with("BEGIN IMMEDIATE").await?;
                let applied = apply::group(&mut *transaction, commits, now).await?;
                self.leak_before_commit(&applied);
                transaction.commit().await?;
                applied
            }
            Database::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                let applied = apply::group(&mut *transaction, commits, now).await?;
                self.leak_before_commit(&applied);
                transaction.commit().await?;
                applied
            }
        };
        metrics::histogram!("greenroom_commit_seconds").record(started.elapsed().as_secs_f64());
        metrics::histogram!("greenroom_commit_group_size").record(commits.len() as f64);
        Ok((applied, now))
    }

    fn show(
        &self,
        events: std::collections::BTreeMap<domain::ids::RoomId, Vec<domain::event::Event>>,
    ) {
        for (room, events) in events {
            metrics::counter!("greenroom_events_total").increment(events.len() as u64);
            let frames = events
                .iter()
                .map(|event| Frame::new(self.store.epoch(), event))
                .collect();
            self.store.tails().publish(room, frames);
        }
    }

    fn ring(&self, commits: &[Commit]) {
        if commits.iter().any(|commit| !commit.changes.is_empty()) {
            self.store.queue_bell().notify_one();
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

fn size(commit: &Commit) -> usize {
    commit
        .events
        .iter()
        .map(|event| event.data.len() + event.raw.as_ref().map_or(0, String::len) + 256)
        .sum()
}
