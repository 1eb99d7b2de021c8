//! Watches one keeper until its domain is empty, and does its work where it cannot.

use super::{
    Ended, Lines,
    cgroup::Leaf,
    leftovers,
    mark::Mark,
    table::Entry,
    wire::{Gone, Report},
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

/// A keeper that was told to kill has this long; a little more than it gives itself. Then it is stuck.
const KEEPER: Duration = Duration::from_millis(1800);
/// From its last word to its end.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub ended: Option<Ended>,
    pub gone: Option<Gone>,
}

pub struct Watch {
    mark: Mark,
    leaf: Option<Leaf>,
    program: Option<Entry>,
    keeper: process::Child,
    reports: Lines,
    progress: Sender<Progress>,
    impatient: Arc<Notify>,
}

impl Watch {
    pub fn new(
        mark: Mark,
        leaf: Option<Leaf>,
        program: Option<Entry>,
        keeper: process::Child,
        reports: Lines,
        impatient: Arc<Notify>,
    ) -> (Self, Receiver<Progress>) {
        let (progress, receiver) = watch::channel(Progress::default());
        (Self { mark, leaf, program, keeper, reports, progress, impatient }, receiver)
    }

    pub async fn run(mut self) {
        let gone = match self.listen().await {
            Some(gone) => gone,
            None => self.take_over().await,
        };
        // One that goes on trying to kill what cannot be killed stays a little longer, and nobody waits for it.
        if gone.left == 0 {
            match timeout(FAREWELL, self.keeper.wait()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a keeper ended unseen"),
                Err(_) => tracing::warn!("a keeper stays though it has nothing to keep"),
            }
        }
        self.progress.send_modify(|progress| {
            progress.ended.get_or_insert(Ended::Unknown);
            progress.gone = Some(gone);
        });
    }

    /// What the keeper says about the end; `None` when it fell silent.
    async fn listen(&mut self) -> Option<Gone> {
        let mut deadline = None;
        loop {
            let line = tokio::select! {
                line = self.reports.next() => line.ok().flatten()?,
                () = over(deadline) => return None,
                () = told_to_end(&self.impatient, &self.progress), if deadline.is_none() => {
                    deadline = Some(Instant::now() + KEEPER);
                    continue;
                }
            };
            match Report::parse(&line)? {
                Report::Ended(ended) => {
                    self.progress.send_modify(|progress| progress.ended = Some(ended));
                    // What the program left behind is being killed already.
                    deadline.get_or_insert(Instant::now() + KEEPER);
                }
                Report::Gone(gone) => return Some(gone),
                Report::Started { .. } | Report::Failed { .. } => return None,
            }
        }
    }

    /// The keeper was killed, or was stopped by a signal that nobody can refuse.
    async fn take_over(&mut self) -> Gone {
        tracing::warn!(program = self.program.map(|program| program.id), "a keeper is gone; ending what it held");
        if let Err(error) = self.keeper.start_kill() {
            tracing::debug!(%error, "the keeper had ended");
        }
        let (mark, leaf, program) = (self.mark.clone(), self.leaf.clone(), self.program);
        let work = tokio::task::spawn_blocking(move || leftovers::end(&mark, leaf.as_ref(), program));
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot end what a keeper held");
            Gone { left: 1, ..Gone::default() }
        })
    }
}

async fn over(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// By an order to kill, or by the end of the handle.
async fn told_to_end(impatient: &Notify, progress: &Sender<Progress>) {
    tokio::select! {
        () = impatient.notified() => {}
        () = progress.closed() => {}
    }
}
