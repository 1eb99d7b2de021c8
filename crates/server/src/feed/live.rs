//! What a reader of one room is told next. Holds a position and a wake-up and nothing else, so ten thousand idle
//! readers cost little and a slow one costs nobody anything (invariant 10).

use crate::App;
use domain::{ids::RoomId, owner::Owner, position::Position};
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
    Failed(store::Error),
}

pub struct Live {
    follower: Follower,
    every: Duration,
    // Registered once and polled again and again: a reader that wakes a thousand times a second registers nothing anew.
    heartbeat: Pin<Box<Sleep>>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    stopped: bool,
}

impl Live {
    pub async fn open(app: &App, owner: &Owner, room: RoomId, after: &Position) -> Result<Self, store::Error> {
        let follower = app.engine.store().follow(owner, room, after, Arc::new(Bell::default())).await?;
        let every = app.config.heartbeat;
        Ok(Self {
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
                Err(error) => return Next::Failed(error),
            }
            tokio::select! {
                biased;
                // The end of a run that was interrupted for the stop may have come meanwhile: it is shown first.
                () = &mut self.stopping => self.stopped = true,
                () = &mut self.heartbeat => {
                    self.heartbeat.as_mut().reset(Instant::now() + self.every);
                    return match self.follower.look_elsewhere().await {
                        Ok(()) => Next::Heartbeat { head: self.follower.head() },
                        Err(error) => Next::Failed(error),
                    };
                }
                () = self.follower.bell().rung() => {}
            }
        }
    }
}
