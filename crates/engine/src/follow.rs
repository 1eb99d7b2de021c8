//! Follows a room or one of its runs. Everything that waits for a run's events uses [`EventReader`]: streams, MCP tools,
//! and the commands that wait for a run's end. Only the WebSocket, which shares one notifier among many rooms, has the
//! store's follower itself.

use crate::queries::Queries;
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    position::{Position, Seq},
};
use std::{sync::Arc, time::Duration};
use store::{
    StoreError,
    journal::{Batch, Follower, Frame},
    notify::Notifier,
};
use tokio::time::{Instant, timeout};

/// How often a reader that waits reads the head again: the room may be deleted, or a notification lost.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub enum EventUpdate {
    /// Never empty. For a reader of one run, only its events.
    Events(Vec<Arc<Frame>>),
    /// The next event is large and was not read yet: [`EventReader::next_large`] reads it.
    Large { bytes: usize },
    /// The position is not in this journal; the next events begin at seq 1.
    Reset { head: Seq },
    /// No more events for now.
    CaughtUp,
    /// The run's last event was returned before.
    RunEnded,
}

/// A cursor in a room's journal.
pub struct EventReader {
    follower: Follower,
    run: Option<RunId>,
    has_ended: bool,
}

impl Queries {
    /// Reads the events of a room after a position.
    pub async fn room_events(&self, owner: &Owner, room: RoomId, after: &Position) -> Result<EventReader, StoreError> {
        let follower = self.follow(owner, room, after, Arc::new(Notifier::default())).await?;
        Ok(EventReader { follower, run: None, has_ended: false })
    }
}

impl EventReader {
    /// Reads the events of one run only, up to its end.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Leaves out the events that are stored already.
    pub fn from_now_on(mut self) -> Self {
        self.follower.skip_to_head();
        self
    }

    /// Returns the next events that are stored. Does not wait for new ones.
    pub async fn next(&mut self) -> Result<EventUpdate, StoreError> {
        while !self.has_ended {
            let batch = self.follower.next().await?;
            if let Some(update) = self.update(batch) {
                return Ok(update);
            }
        }
        Ok(EventUpdate::RunEnded)
    }

    /// Reads the event that [`EventUpdate::Large`] was about, and others if that is of another run.
    pub async fn next_large(&mut self) -> Result<EventUpdate, StoreError> {
        let batch = self.follower.next_large().await?;
        match self.update(batch) {
            Some(update) => Ok(update),
            None => self.next().await,
        }
    }

    fn update(&mut self, batch: Batch) -> Option<EventUpdate> {
        Some(match batch {
            Batch::Frames(frames) => {
                let frames = self.select(frames);
                if frames.is_empty() {
                    return None;
                }
                EventUpdate::Events(frames)
            }
            Batch::Large { bytes } => EventUpdate::Large { bytes },
            Batch::Reset { head } => EventUpdate::Reset { head },
            Batch::CaughtUp => EventUpdate::CaughtUp,
        })
    }

    /// Waits for the next events, for a caller that keeps none of them: large ones are read too. Returns `CaughtUp` at the
    /// deadline.
    pub async fn next_before(&mut self, deadline: Instant) -> Result<EventUpdate, StoreError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let update = match self.next().await? {
                EventUpdate::Large { .. } => self.next_large().await?,
                update => update,
            };
            match update {
                EventUpdate::Large { .. } => {}
                EventUpdate::CaughtUp if !left.is_zero() => {
                    if timeout(REFRESH_INTERVAL.min(left), self.notified()).await.is_err() {
                        self.refresh().await?;
                    }
                }
                update => return Ok(update),
            }
        }
    }

    fn select(&mut self, mut frames: Vec<Arc<Frame>>) -> Vec<Arc<Frame>> {
        if self.run.is_some() {
            frames.retain(|frame| frame.run_id == self.run);
            self.has_ended = frames.last().is_some_and(|frame| frame.kind.ends_a_run());
        }
        frames
    }

    /// Waits until there may be new events.
    pub async fn notified(&self) {
        self.follower.notifier().notified().await;
    }

    /// Reads the head from the store again. Fails if the room was deleted.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.follower.refresh().await
    }

    pub fn head(&self) -> Seq {
        self.follower.head()
    }
}
