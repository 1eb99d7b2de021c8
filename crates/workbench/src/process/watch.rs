//! Watches one keeper until its domain is empty, and cleans up itself if the keeper cannot.

use super::{
    OutputLines, ProgramExit,
    cgroup::LeafCgroup,
    domain_id::KillDomainId,
    keeper_protocol::{CleanupOutcome, KeeperReport},
    leftovers,
    process_table::ProcessEntry,
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    process,
    sync::{
        Notify,
        watch::{self, Receiver, Sender},
    },
    time::{Instant, sleep_until, timeout},
};

/// A keeper that takes longer to kill its domain is stuck. A little more than the keeper's own timeout.
const KEEPER_TIMEOUT: Duration = Duration::from_millis(1800);
/// From the keeper's last report to its exit.
const KEEPER_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub struct DomainProgress {
    pub exit: Option<ProgramExit>,
    pub cleanup: Option<CleanupOutcome>,
}

pub struct KeeperWatch {
    domain: KillDomainId,
    leaf: Option<LeafCgroup>,
    program: Option<ProcessEntry>,
    keeper: process::Child,
    reports: OutputLines,
    progress: Sender<DomainProgress>,
    stop_requested: Arc<Notify>,
}

impl KeeperWatch {
    pub fn new(
        domain: KillDomainId,
        leaf: Option<LeafCgroup>,
        program: Option<ProcessEntry>,
        keeper: process::Child,
        reports: OutputLines,
        stop_requested: Arc<Notify>,
    ) -> (Self, Receiver<DomainProgress>) {
        let (progress, receiver) = watch::channel(DomainProgress::default());
        (Self { domain, leaf, program, keeper, reports, progress, stop_requested }, receiver)
    }

    pub async fn run(mut self) {
        let cleanup = match self.read_reports().await {
            Some(cleanup) => cleanup,
            None => self.take_over().await,
        };
        // A keeper that keeps trying to kill the remaining processes lives longer; do not wait for it.
        if cleanup.remaining == 0 {
            match timeout(KEEPER_EXIT_TIMEOUT, self.keeper.wait()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "could not wait for a keeper"),
                Err(_) => tracing::warn!("a keeper did not exit although its domain is empty"),
            }
        }
        self.progress.send_modify(|progress| {
            progress.exit.get_or_insert(ProgramExit::Unknown);
            progress.cleanup = Some(cleanup);
        });
    }

    /// Reads reports until the cleanup outcome; `None` when the keeper stopped reporting.
    async fn read_reports(&mut self) -> Option<CleanupOutcome> {
        let mut deadline = None;
        loop {
            let line = tokio::select! {
                line = self.reports.next() => line.ok().flatten()?,
                () = deadline_passed(deadline) => return None,
                () = wait_for_stop_request(&self.stop_requested, &self.progress), if deadline.is_none() => {
                    deadline = Some(Instant::now() + KEEPER_TIMEOUT);
                    continue;
                }
            };
            match KeeperReport::parse(&line)? {
                KeeperReport::Ended(ended) => {
                    self.progress.send_modify(|progress| progress.exit = Some(ended));
                    // The keeper is already killing the remaining processes.
                    deadline.get_or_insert(Instant::now() + KEEPER_TIMEOUT);
                }
                KeeperReport::CleanedUp(cleanup) => return Some(cleanup),
                KeeperReport::Started { .. } | KeeperReport::Failed { .. } => return None,
            }
        }
    }

    /// The keeper was killed, or suspended by SIGSTOP.
    async fn take_over(&mut self) -> CleanupOutcome {
        tracing::warn!(program = self.program.map(|program| program.id), "a keeper has died; ending its processes");
        if let Err(error) = self.keeper.start_kill() {
            tracing::debug!(%error, "the keeper had already ended");
        }
        let (domain, leaf, program) = (self.domain.clone(), self.leaf.clone(), self.program);
        let work = tokio::task::spawn_blocking(move || leftovers::end_domain(&domain, leaf.as_ref(), program));
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not end the processes of a keeper");
            CleanupOutcome { remaining: 1, ..CleanupOutcome::default() }
        })
    }
}

async fn deadline_passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Waits for a stop, or for the handle to be dropped.
async fn wait_for_stop_request(stop_requested: &Notify, progress: &Sender<DomainProgress>) {
    tokio::select! {
        () = stop_requested.notified() => {}
        () = progress.closed() => {}
    }
}
