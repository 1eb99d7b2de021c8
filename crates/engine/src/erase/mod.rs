//! Erases deleted rooms, agents and projects when their grace period is over, or at once if they were purged (invariant 30): their
//! rows in small steps, then their files. Every server does it; a step that another has done is no harm.
//!
//! `files` removes what is on disk, `unstored` what a killed server left of projects that were being started.

mod files;
mod unstored;

use crate::Engine;
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use store::{ErasedObject, Erasure, ErasureStep, StoreError};
use tokio_util::sync::CancellationToken;

/// How often to look for what has become due.
const INTERVAL: Duration = Duration::from_secs(60);
/// How often to look for what killed servers left.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
/// How soon to look again if something due has an unfinished run.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);
/// Between two steps, so that commits of other rooms go first.
const PAUSE: Duration = Duration::from_millis(20);
/// Objects that are read at once.
const AT_ONCE: u32 = 16;
/// How often to try to empty the database's log: readers may be in the way.
const LOG_ATTEMPTS: u32 = 10;

/// The service that erases. One per server.
pub struct Eraser {
    engine: Engine,
    /// What other servers have erased, and whose files were removed here.
    removed_here: HashSet<ErasedObject>,
    last_sweep: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct EraseRound {
    erased: usize,
    waiting: bool,
}

impl Eraser {
    pub fn new(engine: Engine) -> Self {
        Self { engine, removed_here: HashSet::new(), last_sweep: None }
    }

    pub async fn run(mut self, cancel: CancellationToken) {
        loop {
            let waiting = tokio::select! {
                () = cancel.cancelled() => return,
                done = self.erase_due() => match done {
                    Ok(round) => round.waiting,
                    Err(error) => {
                        tracing::warn!(%error, "could not erase what was deleted; retrying");
                        false
                    }
                },
            };
            let pause = if waiting { WAITING_INTERVAL } else { INTERVAL };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.engine.store().deleted().notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn erase_due(&mut self) -> Result<EraseRound, StoreError> {
        let (store, grace) = (self.engine.store().clone(), self.engine.config().erase_after);
        let mut round = EraseRound::default();
        // What cannot be erased now must not hold up what was deleted later.
        let mut skipped = 0;
        loop {
            let due = store.due_erasures(grace, skipped, AT_ONCE).await?;
            if due.is_empty() {
                break;
            }
            for erasure in due {
                match self.erase(&erasure).await {
                    Ok(true) => {
                        round.erased += 1;
                        continue;
                    }
                    Ok(false) => round.waiting = true,
                    Err(error) => tracing::warn!(object = ?erasure.object, %error, "could not erase; retrying"),
                }
                skipped += 1;
            }
        }
        self.remove_files_of_others().await?;
        if self.last_sweep.is_none_or(|last| last.elapsed() >= SWEEP_INTERVAL) {
            self.engine.sweep_unstored_projects().await?;
            self.last_sweep = Some(Instant::now());
        }
        store.delete_ended_tokens(grace).await?;
        if round.erased > 0 {
            while store.free_space().await? {
                tokio::time::sleep(PAUSE).await;
            }
            // What was erased is also in the log, until the log is overwritten.
            for _ in 0..LOG_ATTEMPTS {
                if store.empty_log().await? {
                    break;
                }
                tokio::time::sleep(PAUSE * 10).await;
            }
        }
        Ok(round)
    }

    /// Returns whether it is erased; otherwise it must wait.
    async fn erase(&self, erasure: &Erasure) -> Result<bool, StoreError> {
        let store = self.engine.store();
        let files = store.find_erased_files(erasure).await?;
        match erasure.object {
            ErasedObject::Room(room) => self.engine.forget_trust(&erasure.owner, room).await?,
            ErasedObject::Project(project) => self.engine.forget_project_trust(&erasure.owner, project).await?,
            ErasedObject::Agent(_) => {}
        }
        loop {
            match store.erase_rows(erasure, &files).await? {
                ErasureStep::Waiting => return Ok(false),
                ErasureStep::RowsErased => break,
                ErasureStep::More => tokio::time::sleep(PAUSE).await,
            }
        }
        if !self.engine.remove_erased_files(erasure.object, files).await {
            return Ok(false);
        }
        store.finish_erasure(erasure).await?;
        tracing::info!(object = ?erasure.object, "erased what was deleted");
        Ok(true)
    }

    /// Several servers share a database, and each has a data folder.
    async fn remove_files_of_others(&mut self) -> Result<(), StoreError> {
        for erasure in self.engine.store().finished_erasures().await? {
            if !self.removed_here.contains(&erasure.object) {
                let files = erasure.files.unwrap_or_default();
                if self.engine.remove_erased_files(erasure.object, files).await {
                    self.removed_here.insert(erasure.object);
                }
            }
        }
        Ok(())
    }
}
