//! All rooms of an owner, as a list shows them, for a connection that watches it. The journal's own wake-ups say which rooms
//! moved; what is told is read from the store when there is time to tell it, so that a room that moves a thousand times a
//! second is told of twice, at its newest.

use domain::{ids::RoomId, owner::Owner, room::RoomSummary};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};
use store::{Error, Store, journal::Watch};
use tokio::time::{Instant, sleep_until};

/// The newest so many; others are not watched.
const MAX_ROOMS: u32 = 1000;
/// Between one telling and the next.
const PACE: Duration = Duration::from_millis(500);
/// Up to so many rooms are read one by one; for more, the list is cheaper.
const FEW: usize = 16;
const MAX_LISTINGS: usize = 4;

pub struct Roster {
    store: Store,
    owner: Owner,
    watch: Watch,
    /// What the client knows of each room: a hash, for the rooms may be many and the connections too.
    told: BTreeMap<RoomId, u64>,
    not_before: Option<Instant>,
    /// The last look failed: the next one looks at everything.
    stale: bool,
}

pub enum News {
    Room(Box<RoomSummary>),
    Gone(RoomId),
}

impl Roster {
    /// With what there is now.
    pub async fn open(store: &Store, owner: &Owner) -> Result<(Self, Vec<RoomSummary>), Error> {
        let (store, owner, watch) = (store.clone(), owner.clone(), store.watch(owner));
        let mut roster = Self { store, owner, watch, told: BTreeMap::new(), not_before: None, stale: false };
        let rooms = roster.list().await?;
        roster.told = rooms.iter().map(|summary| (summary.room.id, hash(summary))).collect();
        Ok((roster, rooms))
    }

    /// Returns when there may be news and it is time to tell it.
    pub async fn due(&mut self) {
        if let Some(at) = self.not_before {
            sleep_until(at).await;
        }
        self.watch.rung().await;
    }

    /// What the client does not know yet. With `all`, of every room, whether it was heard of or not: another server's
    /// writes ring no bell here.
    pub async fn news(&mut self, all: bool) -> Result<Vec<News>, Error> {
        self.not_before = Some(Instant::now() + PACE);
        let moved = self.watch.take();
        let looked = if all || self.stale || moved.list || moved.rooms.len() > FEW {
            self.look_at_all().await
        } else {
            self.look_at(moved.rooms).await
        };
        self.stale = looked.is_err();
        looked
    }

    async fn look_at_all(&mut self) -> Result<Vec<News>, Error> {
        let rooms = self.list().await?;
        let listed: BTreeSet<RoomId> = rooms.iter().map(|summary| summary.room.id).collect();
        let missing: BTreeSet<RoomId> = self.told.keys().filter(|id| !listed.contains(id)).copied().collect();
        // Not among the newest any more, or gone.
        let mut news = self.look_at(missing).await?;
        self.told.retain(|id, _| listed.contains(id));
        news.extend(rooms.into_iter().filter_map(|summary| self.told_anew(summary)));
        Ok(news)
    }

    async fn look_at(&mut self, rooms: BTreeSet<RoomId>) -> Result<Vec<News>, Error> {
        let mut news = Vec::new();
        for room in rooms {
            match self.store.room_summary(&self.owner, room).await {
                Ok(summary) => news.extend(self.told_anew(summary)),
                Err(Error::NotFound) => news.extend(self.told.remove(&room).map(|_| News::Gone(room))),
                Err(error) => return Err(error),
            }
        }
        Ok(news)
    }

    fn told_anew(&mut self, summary: RoomSummary) -> Option<News> {
        let hash = hash(&summary);
        let known = self.told.insert(summary.room.id, hash);
        (known != Some(hash)).then(|| News::Room(Box::new(summary)))
    }

    /// The list, with each room in it watched since before it was read.
    async fn list(&mut self) -> Result<Vec<RoomSummary>, Error> {
        let mut rooms = Vec::new();
        // While rooms are made faster than they are listed, the list is never whole; those that follow ring the bell.
        for _ in 0..MAX_LISTINGS {
            rooms = self.store.rooms(&self.owner, MAX_ROOMS).await?;
            let listed: BTreeSet<RoomId> = rooms.iter().map(|summary| summary.room.id).collect();
            let watched = listed.is_subset(self.watch.rooms());
            self.watch.set(listed);
            if watched {
                break;
            }
        }
        Ok(rooms)
    }
}

fn hash(summary: &RoomSummary) -> u64 {
    let mut hasher = DefaultHasher::new();
    // Plain data with string keys: there is nothing in it that could fail.
    serde_json::to_string(summary).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
