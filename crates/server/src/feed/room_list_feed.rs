//! Sends changes in an owner's list of rooms to a connection that watches it. The journal's wake-ups say which rooms
//! changed. Summaries are read only when they are sent, so that a room with a thousand events a second is sent at most
//! twice a second, with its newest state.

use domain::{ids::RoomId, owner::Owner, room::RoomSummary};
use engine::Queries;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};
use store::{StoreError, notify::OwnerWatch};
use tokio::time::{Instant, sleep_until};

/// Only the newest rooms are watched.
const MAX_ROOMS: u32 = 1000;
/// Minimum time between two updates.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Up to this many rooms are read one by one; for more, reading the list is cheaper.
const MAX_SINGLE_READS: usize = 16;
const MAX_LISTINGS: usize = 4;

pub struct RoomListFeed {
    queries: Queries,
    owner: Owner,
    watch: OwnerWatch,
    /// A hash of the summary that the client has of each room. A hash, because rooms and connections may be many.
    sent_hashes: BTreeMap<RoomId, u64>,
    not_before: Option<Instant>,
    /// The last check failed, so the next one checks all rooms.
    stale: bool,
}

pub enum RoomListChange {
    Updated(Box<RoomSummary>),
    Deleted(RoomId),
}

impl RoomListFeed {
    /// Starts watching, and returns the current list.
    pub async fn open(queries: &Queries, owner: &Owner) -> Result<(Self, Vec<RoomSummary>), StoreError> {
        let (queries, owner, watch) = (queries.clone(), owner.clone(), queries.watch(owner));
        let mut feed = Self { queries, owner, watch, sent_hashes: BTreeMap::new(), not_before: None, stale: false };
        let rooms = feed.list().await?;
        feed.sent_hashes = rooms.iter().map(|summary| (summary.room.id, hash(summary))).collect();
        Ok((feed, rooms))
    }

    /// Waits until there may be changes and the next update may be sent.
    pub async fn wait(&mut self) {
        if let Some(at) = self.not_before {
            sleep_until(at).await;
        }
        self.watch.changed().await;
    }

    /// The changes that the client does not have yet. With `all`, every room is checked: writes of another server cause
    /// no wake-up here.
    pub async fn changes(&mut self, all: bool) -> Result<Vec<RoomListChange>, StoreError> {
        self.not_before = Some(Instant::now() + MIN_INTERVAL);
        let changed = self.watch.take_changes();
        let checked = if all || self.stale || changed.room_list || changed.rooms.len() > MAX_SINGLE_READS {
            self.check_all().await
        } else {
            self.check_rooms(changed.rooms).await
        };
        self.stale = checked.is_err();
        checked
    }

    async fn check_all(&mut self) -> Result<Vec<RoomListChange>, StoreError> {
        let rooms = self.list().await?;
        let listed: BTreeSet<RoomId> = rooms.iter().map(|summary| summary.room.id).collect();
        let missing: BTreeSet<RoomId> = self.sent_hashes.keys().filter(|id| !listed.contains(id)).copied().collect();
        // No longer among the newest, or deleted.
        let mut changes = self.check_rooms(missing).await?;
        self.sent_hashes.retain(|id, _| listed.contains(id));
        changes.extend(rooms.into_iter().filter_map(|summary| self.change_for(summary)));
        Ok(changes)
    }

    async fn check_rooms(&mut self, rooms: BTreeSet<RoomId>) -> Result<Vec<RoomListChange>, StoreError> {
        let mut changes = Vec::new();
        for room in rooms {
            match self.queries.room_summary(&self.owner, room).await {
                Ok(summary) => changes.extend(self.change_for(summary)),
                Err(StoreError::NotFound) => {
                    changes.extend(self.sent_hashes.remove(&room).map(|_| RoomListChange::Deleted(room)))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(changes)
    }

    fn change_for(&mut self, summary: RoomSummary) -> Option<RoomListChange> {
        let hash = hash(&summary);
        let known = self.sent_hashes.insert(summary.room.id, hash);
        (known != Some(hash)).then(|| RoomListChange::Updated(Box::new(summary)))
    }

    /// Reads the list. Each room in it was watched before it was read, so that no change is missed.
    async fn list(&mut self) -> Result<Vec<RoomSummary>, StoreError> {
        let mut rooms = Vec::new();
        // If rooms are created faster than they are listed, the list stays incomplete; later rooms cause a wake-up.
        for _ in 0..MAX_LISTINGS {
            rooms = self.queries.rooms(&self.owner, MAX_ROOMS).await?;
            let listed: BTreeSet<RoomId> = rooms.iter().map(|summary| summary.room.id).collect();
            let watched = listed.is_subset(self.watch.rooms());
            self.watch.set_rooms(listed);
            if watched {
                break;
            }
        }
        Ok(rooms)
    }
}

fn hash(summary: &RoomSummary) -> u64 {
    let mut hasher = DefaultHasher::new();
    // Plain data with string keys always serializes.
    serde_json::to_string(summary).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
