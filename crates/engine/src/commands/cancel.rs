//! Cancelling: it returns when the work has really stopped, and says what that took.

use crate::{Engine, Error, run::Halt};
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    position::Position,
    run::{Receipt, Run, RunStatus},
};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use store::journal::{Bell, Stop};
use tokio::time::{Instant, timeout};

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Stopped {
    pub id: RunId,
    pub status: RunStatus,
    pub receipt: Receipt,
}

/// Longer than a provider's grace: what has not stopped by then is worth an error.
const PATIENCE: Duration = Duration::from_secs(30);
/// The bell of another server's room may not ring here.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Engine {
    /// A run that has ended already is answered with how it ended.
    pub async fn cancel_run(&self, owner: &Owner, run: RunId) -> Result<Stopped, Error> {
        let run = self.store().run(owner, run).await?;
        if !run.status.is_terminal() {
            self.ask_to_cancel(&[run.id]).await?;
        }
        self.wait_for_end(owner, run.id, PATIENCE).await.map(stopped)
    }

    /// Everything that runs or waits in the room.
    pub async fn cancel_room(&self, owner: &Owner, room: RoomId) -> Result<Vec<Stopped>, Error> {
        let room = self.store().room(owner, room).await?;
        let runs = self.store().unfinished(owner, room.id).await?;
        self.ask_to_cancel(&runs).await?;
        let mut all = Vec::with_capacity(runs.len());
        for run in runs {
            all.push(stopped(self.wait_for_end(owner, run, PATIENCE).await?));
        }
        Ok(all)
    }

    async fn ask_to_cancel(&self, runs: &[RunId]) -> Result<(), Error> {
        if runs.is_empty() {
            return Ok(());
        }
        self.store().ask_to_stop(runs, Stop::Cancel).await?;
        for run in runs {
            self.active().halt(*run, Halt::Cancel);
        }
        Ok(self.end_stopped_in_queue().await?)
    }

    /// Waits until the run has its terminal event.
    pub async fn wait_for_end(&self, owner: &Owner, run: RunId, patience: Duration) -> Result<Run, Error> {
        let deadline = Instant::now() + patience;
        let bell = Arc::new(Bell::default());
        let room = self.store().run(owner, run).await?.room_id;
        // Listening before looking: an end in between is not missed.
        let _follower = self.store().follow(owner, room, &Position::START, bell.clone()).await?;
        loop {
            let run = self.store().run(owner, run).await?;
            if run.status.is_terminal() {
                return Ok(run);
            }
            if Instant::now() >= deadline {
                return Err(Error::Unavailable(format!(
                    "the run was asked to stop but has not within {} s; it is {}",
                    patience.as_secs(),
                    run.status
                )));
            }
            // Either the room moved or it is time to look anyway.
            drop(timeout(LOOK_AGAIN, bell.rung()).await);
        }
    }
}

fn stopped(run: Run) -> Stopped {
    Stopped { id: run.id, status: run.status, receipt: run.receipt.unwrap_or_default() }
}
