//! Keeps the search index up to date in the background: the rooms that got messages on this server shortly after, and at the
//! start, and then from time to time, whatever was missed, such as the messages of an earlier version.

use crate::Engine;
use domain::ids::RoomId;
use std::time::Duration;
use store::{IndexStep, StoreError};
use tokio_util::sync::CancellationToken;

/// How long new messages are collected before they are indexed together.
const COLLECT: Duration = Duration::from_millis(500);
/// Between two steps, so that commits go first.
const PAUSE: Duration = Duration::from_millis(20);
/// How often all rooms are looked at: those of servers that have stopped before they indexed them.
const LOOK_AT_ALL: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(5);

/// The service that fills the search index. One per server.
pub struct SearchIndexer {
    engine: Engine,
}

impl SearchIndexer {
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    pub async fn run(self, cancel: CancellationToken) {
        let mut looks_at_all = true;
        loop {
            // Not dropped in the middle: a statement would go on and hold the database after the server has stopped.
            let indexed = self.index(looks_at_all, &cancel).await;
            looks_at_all = false;
            if let Err(error) = indexed {
                tracing::warn!(%error, "could not index messages for the search; retrying");
                looks_at_all = true;
                if tokio::time::timeout(RETRY, cancel.cancelled()).await.is_ok() {
                    return;
                }
                continue;
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.engine.store().messages_added() => {}
                () = tokio::time::sleep(LOOK_AT_ALL) => looks_at_all = true,
            }
            if tokio::time::timeout(COLLECT, cancel.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    /// Returns soon after it was canceled: each step is short.
    async fn index(&self, looks_at_all: bool, cancel: &CancellationToken) -> Result<(), StoreError> {
        let store = self.engine.store();
        match store.take_changed_rooms() {
            Some(rooms) => self.index_rooms(&rooms, cancel).await?,
            None => return self.index_all(cancel).await,
        }
        if looks_at_all { self.index_all(cancel).await } else { Ok(()) }
    }

    async fn index_all(&self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let mut after = Some(RoomId(uuid::Uuid::nil()));
        while let Some(from) = after {
            if cancel.is_cancelled() {
                break;
            }
            let (rooms, next) = self.engine.store().unindexed_rooms(from).await?;
            self.index_rooms(&rooms, cancel).await?;
            after = next;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn index_rooms(&self, rooms: &[RoomId], cancel: &CancellationToken) -> Result<(), StoreError> {
        for room in rooms {
            while !cancel.is_cancelled() && self.engine.store().index_messages(*room).await? == IndexStep::More {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}
