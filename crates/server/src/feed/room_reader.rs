//! Reads one room live. It holds only a position and a wake-up, so that ten thousand idle readers cost little and a
//! slow reader does not affect others (invariant 10).

use crate::{App, error::Problem};
use domain::{actor::Actor, ids::RoomId, position::Position};
use std::{pin::Pin, sync::Arc, time::Duration};
use store::{
    journal::{Batch, Follower, Frame},
    notify::Notifier,
};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

pub enum RoomUpdate {
    Frames(Vec<Arc<Frame>>),
    /// Discard everything; the journal is sent again from its first event.
    Reset {
        head: u64,
    },
    Heartbeat {
        head: u64,
    },
    /// The server is stopping; reconnect soon.
    Stopping,
    Failed(Problem),
}

pub struct RoomReader {
    app: App,
    actor: Actor,
    follower: Follower,
    heartbeat_interval: Duration,
    // Both futures are registered once and polled repeatedly, so that a busy reader does not register them each time.
    heartbeat: Pin<Box<Sleep>>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    stopped: bool,
}

impl RoomReader {
    pub async fn open(app: &App, actor: &Actor, room: RoomId, after: &Position) -> Result<Self, store::StoreError> {
        let follower =
            app.engine.queries().follow(&actor.workspace, room, after, Arc::new(Notifier::default())).await?;
        let every = app.config.heartbeat;
        Ok(Self {
            app: app.clone(),
            actor: actor.clone(),
            follower,
            heartbeat_interval: every,
            heartbeat: Box::pin(sleep(every)),
            stopping: Box::pin(app.stopping.clone().cancelled_owned()),
            stopped: false,
        })
    }

    pub async fn next(&mut self) -> RoomUpdate {
        loop {
            match self.follower.next().await {
                Ok(Batch::Frames(frames)) => return RoomUpdate::Frames(frames),
                Ok(Batch::Reset { head }) => return RoomUpdate::Reset { head },
                Ok(Batch::CaughtUp) if self.stopped => return RoomUpdate::Stopping,
                Ok(Batch::CaughtUp) => {}
                Err(error) => return RoomUpdate::Failed(error.into()),
            }
            tokio::select! {
                biased;
                // The last events of runs that the stop interrupted may be in the journal; they are sent first.
                () = &mut self.stopping => self.stopped = true,
                () = &mut self.heartbeat => {
                    self.heartbeat.as_mut().reset(Instant::now() + self.heartbeat_interval);
                    // Boxed, so that an idle reader does not hold space for it.
                    return match Box::pin(self.recheck_access()).await {
                        Ok(()) => RoomUpdate::Heartbeat { head: self.follower.head() },
                        Err(problem) => RoomUpdate::Failed(problem),
                    };
                }
                () = self.follower.notifier().notified() => {}
            }
        }
    }

    /// A stream outlives the checks of its request: the token may be revoked and the room deleted meanwhile.
    async fn recheck_access(&self) -> Result<(), Problem> {
        self.app.authenticator.recheck(&self.actor).await?;
        Ok(self.follower.refresh().await?)
    }
}
