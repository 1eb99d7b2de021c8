//! What clients are told unasked: that a room or a run they subscribed to has moved, and that a list is another one. The
//! journal and the catalog ring; here it is looked at what they ring for. Sessions and `subscriptions/listen` are served by
//! the same loop, which knows the difference only by how it tells.

use crate::{
    handler::{Asking, House},
    logging,
    resources::Address,
};
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    room::Room,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{Peer, SubscriptionContext, SubscriptionSendError, SubscriptionSink},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::journal::Moved;
use tokio::{sync::Notify, task::JoinSet, time::sleep};

const MAX_TARGETS: usize = 256;
/// A room that streams moves a hundred times a second; who is told that often reads nothing else.
const BREATH: Duration = Duration::from_millis(150);
/// The bell of another server's rooms does not ring here.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// What is subscribed to.
#[derive(Clone, Debug)]
pub struct Target {
    uri: String,
    room: RoomId,
    /// How far the room was when it was subscribed to: what is beyond that is news.
    head: u64,
    run: Option<Watched>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    id: RunId,
    /// It was under way when it was subscribed to: of any other there will be no news.
    is_live: bool,
}

impl Target {
    pub async fn find(asking: &Asking<'_>, uri: &str) -> Result<Self, ErrorData> {
        let store = asking.house.engine.store();
        let found = match Address::parse(uri) {
            Some(Address::Room(id)) => store.room(&asking.owner, id).await.map(|room| (room, None)),
            Some(Address::Run(id)) => Self::of_run(asking, id).await,
            _ => {
                let why = "rooms and runs can be subscribed to: greenroom://rooms/{id} and greenroom://runs/{id}";
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        let (room, run) = found.map_err(|error| match error {
            store::Error::NotFound => ErrorData::resource_not_found(format!("there is no {uri}"), None),
            error => ErrorData::internal_error(error.to_string(), None),
        })?;
        Ok(Self { uri: uri.to_owned(), room: room.id, head: room.head, run })
    }

    async fn of_run(asking: &Asking<'_>, id: RunId) -> Result<(Room, Option<Watched>), store::Error> {
        let (store, owner) = (asking.house.engine.store(), &asking.owner);
        // The head before the status: what happens in between is told once too often rather than not at all.
        let room = store.room(owner, store.run(owner, id).await?.room_id).await?;
        let is_live = !store.run(owner, id).await?.status.is_terminal();
        Ok((room, Some(Watched { id, is_live })))
    }
}

/// What is watched now, and the bell that says that it is something else.
#[derive(Default)]
struct Wanted {
    targets: Mutex<BTreeMap<String, Target>>,
    changed: Notify,
}

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Target>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's watch. Ends when it is dropped.
pub struct Watching {
    wanted: Arc<Wanted>,
    _task: JoinSet<()>,
}

impl Watching {
    pub fn begin(house: Arc<House>, owner: Owner, peer: Peer<RoleServer>) -> Self {
        let wanted = Arc::new(Wanted::default());
        let mut task = JoinSet::new();
        let mut watcher = Watcher::new(&house, owner, Arc::clone(&wanted));
        task.spawn(house.watchers.track_future(async move {
            // A peer that cannot be told is gone, and this with it.
            drop(watcher.run(&peer).await);
        }));
        Self { wanted, _task: task }
    }

    pub fn add(&self, target: Target) -> Result<(), ErrorData> {
        let mut targets = self.wanted.lock();
        if targets.len() >= MAX_TARGETS && !targets.contains_key(&target.uri) {
            let why = format!("at most {MAX_TARGETS} resources at once; unsubscribe from some");
            return Err(ErrorData::invalid_params(why, None));
        }
        targets.insert(target.uri.clone(), target);
        drop(targets);
        self.wanted.changed.notify_one();
        Ok(())
    }

    pub fn remove(&self, uri: &str) {
        self.wanted.lock().remove(uri);
        self.wanted.changed.notify_one();
    }
}

/// What of a filter can be watched here. Whether it is there is looked at later, with the owner.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let can = |uri: &&String| matches!(Address::parse(uri), Some(Address::Room(_) | Address::Run(_)));
        uris.iter().filter(can).take(MAX_TARGETS).cloned().collect()
    });
    accepted
}

/// Until the client leaves or the server stops.
pub async fn listen(asking: &Asking<'_>, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let wanted = Arc::new(Wanted::default());
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        // One that is gone is no reason to tell nothing of the others.
        match Target::find(asking, uri).await {
            Ok(target) => drop(wanted.lock().insert(uri.clone(), target)),
            Err(error) => tracing::debug!(%error, "a subscription to what is not there"),
        }
    }
    let mut watcher = Watcher::new(asking.house, asking.owner.clone(), wanted);
    tokio::select! {
        // Not being able to tell is the same as nobody listening.
        _ = watcher.run(context.sink()) => {}
        () = context.cancelled() => {}
    }
    Ok(())
}

/// Nobody can be told any more.
struct Gone;

/// How the news are told.
trait Tell {
    fn updated(&self, uri: &str) -> impl Future<Output = Result<(), Gone>> + Send;
    fn tools(&self) -> impl Future<Output = Result<(), Gone>> + Send;
    fn prompts(&self) -> impl Future<Output = Result<(), Gone>> + Send;
    fn resources(&self) -> impl Future<Output = Result<(), Gone>> + Send;
    fn stopping(&self) -> impl Future<Output = Result<(), Gone>> + Send;
}

impl Tell for Peer<RoleServer> {
    async fn updated(&self, uri: &str) -> Result<(), Gone> {
        self.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.map_err(|_| Gone)
    }

    async fn tools(&self) -> Result<(), Gone> {
        self.notify_tool_list_changed().await.map_err(|_| Gone)
    }

    async fn prompts(&self) -> Result<(), Gone> {
        self.notify_prompt_list_changed().await.map_err(|_| Gone)
    }

    async fn resources(&self) -> Result<(), Gone> {
        self.notify_resource_list_changed().await.map_err(|_| Gone)
    }

    async fn stopping(&self) -> Result<(), Gone> {
        let data = json!({"reason": "the server is stopping", "code": "server_stopping"});
        logging::notice(self, "greenroom", data).await;
        Ok(())
    }
}

impl Tell for SubscriptionSink {
    async fn updated(&self, uri: &str) -> Result<(), Gone> {
        told(self.notify_resource_updated(uri).await)
    }

    async fn tools(&self) -> Result<(), Gone> {
        told(self.notify_tool_list_changed().await)
    }

    async fn prompts(&self) -> Result<(), Gone> {
        told(self.notify_prompt_list_changed().await)
    }

    async fn resources(&self) -> Result<(), Gone> {
        told(self.notify_resource_list_changed().await)
    }

    /// The result that ends the request says it.
    async fn stopping(&self) -> Result<(), Gone> {
        Ok(())
    }
}

/// What the client did not ask for is not sent, and that is no failure.
fn told(sent: Result<(), SubscriptionSendError>) -> Result<(), Gone> {
    match sent {
        Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => Ok(()),
        Err(_) => Err(Gone),
    }
}

struct Watcher {
    house: Arc<House>,
    owner: Owner,
    wanted: Arc<Wanted>,
    watch: store::journal::Watch,
    /// How far each room was when it was last told of.
    heads: HashMap<RoomId, u64>,
    /// Runs whose end was told of.
    ended: HashSet<RunId>,
}

impl Watcher {
    fn new(house: &Arc<House>, owner: Owner, wanted: Arc<Wanted>) -> Self {
        let watch = house.engine.store().watch(&owner);
        Self { house: Arc::clone(house), owner, wanted, watch, heads: HashMap::new(), ended: HashSet::new() }
    }

    async fn run(&mut self, tell: &impl Tell) -> Result<(), Gone> {
        let house = Arc::clone(&self.house);
        self.learn();
        let mut look_again = true;
        loop {
            let mut moved = self.watch.take();
            if look_again {
                moved.rooms.extend(self.heads.keys());
            }
            if self.news(moved, tell).await? {
                sleep(BREATH).await;
            }
            look_again = tokio::select! {
                () = self.watch.rung() => false,
                // What has happened in what is new here since it was asked for is news already.
                () = self.wanted.changed.notified() => {
                    self.learn();
                    true
                }
                () = sleep(LOOK_AGAIN), if !self.heads.is_empty() => true,
                () = house.stopping.cancelled() => return tell.stopping().await,
            };
        }
    }

    /// Watches what is wanted now.
    fn learn(&mut self) {
        let targets: Vec<Target> = self.wanted.lock().values().cloned().collect();
        let rooms: BTreeSet<RoomId> = targets.iter().map(|target| target.room).collect();
        self.watch.set(rooms.clone());
        self.heads.retain(|room, _| rooms.contains(room));
        for target in &targets {
            self.heads.entry(target.room).or_insert(target.head);
        }
        let runs: HashSet<RunId> = targets.iter().filter_map(|target| target.run).map(|run| run.id).collect();
        self.ended.retain(|run| runs.contains(run));
    }

    /// Whether there was anything to tell.
    async fn news(&mut self, moved: Moved, tell: &impl Tell) -> Result<bool, Gone> {
        let mut any = moved.agents || moved.skills || moved.list;
        if moved.agents {
            tell.tools().await?;
        }
        if moved.skills {
            tell.prompts().await?;
        }
        if moved.skills || moved.list {
            tell.resources().await?;
        }
        for room in moved.rooms {
            let head = match self.house.engine.store().room(&self.owner, room).await {
                Ok(found) => found.head,
                // It is gone: that is news once.
                Err(store::Error::NotFound) => u64::MAX,
                Err(error) => {
                    tracing::debug!(%error, "a watched room could not be read; the next look will");
                    continue;
                }
            };
            let before = self.heads.insert(room, head);
            if before == Some(head) {
                continue;
            }
            for uri in self.touched(room).await {
                any = true;
                tell.updated(&uri).await?;
            }
        }
        Ok(any)
    }

    /// What is subscribed to in a room that moved.
    async fn touched(&mut self, room: RoomId) -> Vec<String> {
        let here: Vec<Target> = self.wanted.lock().values().filter(|target| target.room == room).cloned().collect();
        let mut uris = Vec::with_capacity(here.len());
        for target in here {
            if let Some(Watched { id, is_live }) = target.run {
                if !is_live || self.ended.contains(&id) {
                    continue;
                }
                // Runs of a room are one after another: while this one is under way, what happens is mostly its doing.
                match self.house.engine.store().run(&self.owner, id).await {
                    Ok(run) if run.status.is_terminal() => drop(self.ended.insert(id)),
                    Ok(_) => {}
                    Err(_) => continue,
                }
            }
            uris.push(target.uri);
        }
        uris
    }
}
