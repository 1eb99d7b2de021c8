//! Reads one room, or one of its runs, live. It holds only a position and a wake-up, so that ten thousand idle readers cost little and a
//! slow reader does not affect others (invariant 10).

use super::sse::MAX_SILENCE;
use crate::{
    App,
    auth::access_changes::AccessWatch,
    error::Problem,
    shares::{MemoryPermit, StreamPermit},
};
use bytes::Bytes;
use domain::{
    actor::Actor,
    ids::{RoomId, RunId},
    position::Position,
};
use engine::{EventReader, EventUpdate};
use std::{pin::Pin, sync::Arc, time::Duration};
use store::journal::Frame;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

pub enum RoomUpdate {
    Frames(FrameBatch),
    /// Discard everything; the journal is sent again from its first event.
    Reset {
        head: u64,
    },
    Heartbeat {
        head: u64,
    },
    /// The run's last event was sent before.
    RunEnded,
    /// The server is stopping; reconnect soon.
    Stopping,
    Failed(Problem),
}

/// Frames, with the memory that a large one takes until it is sent.
pub struct FrameBatch {
    pub frames: Vec<Arc<Frame>>,
    pub memory: Option<MemoryPermit>,
}

impl FrameBatch {
    /// Bytes that were made from these frames. They are counted like the frames.
    pub fn hold(memory: Option<MemoryPermit>, bytes: Bytes) -> Bytes {
        match memory {
            Some(memory) => memory.hold(bytes),
            None => bytes,
        }
    }
}

pub struct RoomReader {
    app: App,
    actor: Actor,
    events: EventReader,
    heartbeat_interval: Duration,
    // Both futures are registered once and polled repeatedly, so that a busy reader does not register them each time.
    heartbeat: Pin<Box<Sleep>>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    stopped: bool,
    access: AccessWatch,
    permit: StreamPermit,
}

impl RoomReader {
    pub async fn open(
        app: &App,
        actor: &Actor,
        permit: StreamPermit,
        room: RoomId,
        after: &Position,
    ) -> Result<Self, store::StoreError> {
        let events = app.engine.queries().room_events(&actor.workspace, room, after).await?;
        let every = app.config.heartbeat.min(MAX_SILENCE);
        Ok(Self {
            app: app.clone(),
            actor: actor.clone(),
            events,
            heartbeat_interval: every,
            heartbeat: Box::pin(sleep(every)),
            stopping: Box::pin(app.stopping.clone().cancelled_owned()),
            stopped: false,
            access: app.access_changes.watch(),
            permit,
        })
    }

    /// Reads the events of one run only, up to its end.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.events = self.events.of_run(run);
        self
    }

    pub async fn next(&mut self) -> RoomUpdate {
        loop {
            // Also for a stream that never catches up: it does not reach the heartbeat below.
            let is_due = self.heartbeat.deadline() + self.heartbeat_interval <= Instant::now();
            if (self.access.take() || is_due)
                && let Err(problem) = Box::pin(self.recheck_access()).await
            {
                return RoomUpdate::Failed(problem);
            }
            if is_due {
                self.heartbeat.as_mut().reset(Instant::now() + self.heartbeat_interval);
            }
            match self.events.next().await {
                Ok(EventUpdate::Events(frames)) => {
                    return RoomUpdate::Frames(FrameBatch { frames, memory: None });
                }
                // Boxed, because few events are large.
                Ok(EventUpdate::Large { bytes }) => match Box::pin(self.next_large(bytes)).await {
                    Ok(Some(update)) => return update,
                    Ok(None) => continue,
                    Err(problem) => return RoomUpdate::Failed(problem),
                },
                Ok(EventUpdate::Reset { head }) => return RoomUpdate::Reset { head },
                Ok(EventUpdate::RunEnded) => return RoomUpdate::RunEnded,
                Ok(EventUpdate::CaughtUp) if self.stopped => return RoomUpdate::Stopping,
                Ok(EventUpdate::CaughtUp) => {}
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
                        Ok(()) => RoomUpdate::Heartbeat { head: self.events.head() },
                        Err(problem) => RoomUpdate::Failed(problem),
                    };
                }
                () = self.events.notified() => {}
                // Checked at the beginning of the loop.
                () = self.access.wait() => {}
            }
        }
    }

    /// Memory first: what waits for it holds nothing. `None` if the event was of another run.
    async fn next_large(&mut self, bytes: usize) -> Result<Option<RoomUpdate>, Problem> {
        let memory = Some(self.permit.take_memory(bytes).await?);
        Ok(match self.events.next_large().await? {
            EventUpdate::Events(frames) => Some(RoomUpdate::Frames(FrameBatch { frames, memory })),
            EventUpdate::Reset { head } => Some(RoomUpdate::Reset { head }),
            EventUpdate::RunEnded => Some(RoomUpdate::RunEnded),
            EventUpdate::Large { .. } | EventUpdate::CaughtUp => None,
        })
    }

    /// A stream outlives the checks of its request: the token may be revoked and the room deleted meanwhile.
    async fn recheck_access(&self) -> Result<(), Problem> {
        self.app.authenticator.recheck(&self.actor).await?;
        Ok(self.events.refresh().await?)
    }
}
