//! What a reader of one room is told next. Holds a position and a wake-up and nothing else, so ten thousand idle
//! readers cost little and a slow one costs nobody anything (invariant 10).

use crate::{App, error::Problem};
use domain::{ids::RoomId, owner::Principal, position::Position};
use std::{pin::Pin, sync::Arc, time::Duration};
use store::journal::{Batch, Bell, Follower, Frame};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

pub enum Next {
    Frames(Vec<Arc<Frame>>),
    /// Forget everything; the journal comes again from its first event.
    Reset {
        head: u64,
    },
    Heartbeat {
        head: u64,
    },
    /// The server stops; come back soon.
    Stopping,
    Failed(Problem),
}

pub struct Live {
    app: App,
    principal: Principal,
    follower: Follower,
    every: Duration,
    // Registered once and polled again and again: a reader that wakes a thousand times a second registers nothing anew.
    heartbeat: Pin<Box<Sleep>>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    stopped: bool,
}

impl Live {
    pub async fn open(app: &App, principal: &Principal, room: RoomId, after: &Position) -> Result<Self, store::Error> {
        let follower = app.engine.store().follow(&principal.owner, room, after, Arc::new(Bell::default())).await?;
        let every = app.config.heartbeat;
        Ok(Self {
            app: app.clone(),
            principal: principal.clone(),
            follower,
            every,
            heartbeat: Box::pin(sleep(every)),
            stopping: Box::pin(app.stopping.clone().cancelled_owned()),
            stopped: false,
        })
    }

    pub async fn next(&mut self) -> Next {
        loop {
            match self.follower.next().await {
                Ok(Batch::Frames(frames)) => return Next::Frames(frames),
                Ok(Batch::Reset { head }) => return Next::Reset { head },
                Ok(Batch::CaughtUp) if self.stopped => return Next::Stopping,
                Ok(Batch::CaughtUp) => {}
                Err(error) => return Next::Failed(error.into()),
            }
            tokio::select! {
                biased;
                // The end of a run that was interrupted for the stop may have come meanwhile: it is shown first.
                () = &mut self.stopping => self.stopped = true,
                () = &mut self.heartbeat => {
                    self.heartbeat.as_mut().reset(Instant::now() + self.every);
                    return match self.look_again().await {
                        Ok(()) => Next::Heartbeat { head: self.follower.head() },
                        Err(problem) => Next::Failed(problem),
                    };
                }
                () = self.follower.bell().rung() => {}
            }
        }
    }

    /// A stream outlives the checks at its door: a token may be revoked and a room deleted meanwhile.
    async fn look_again(&self) -> Result<(), Problem> {
        self.app.bearer.recheck(&self.principal).await?;
        Ok(self.follower.look_again().await?)
    }
}
