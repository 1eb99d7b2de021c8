//! Notifies clients of changes: of rooms and runs that they subscribed to, and of lists. The store signals a change;
//! this module finds out what changed. Sessions and `subscriptions/listen` share one loop and differ only in their
//! `ChangeNotifier`.

use crate::{
    handler::{HandlerShared, McpRequestContext},
    logging,
    resources::ResourceAddress,
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
use store::notify::WatchedChanges;
use tokio::{sync::Notify, task::JoinSet, time::sleep};

const MAX_SUBSCRIPTIONS: usize = 256;
/// A streaming room changes a hundred times a second; clients are notified less often.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(150);
/// Commits by other servers cause no local notification, so the store is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// A resource with a subscription.
#[derive(Clone, Debug)]
pub struct SubscribedResource {
    uri: String,
    room: RoomId,
    /// The room's head at the time of the subscription: later events are changes.
    head: u64,
    run: Option<SubscribedRun>,
}

#[derive(Clone, Copy, Debug)]
struct SubscribedRun {
    id: RunId,
    /// Whether the run was unfinished at the time of the subscription; a finished run does not change.
    is_live: bool,
}

impl SubscribedResource {
    pub async fn find(ctx: &McpRequestContext<'_>, uri: &str) -> Result<Self, ErrorData> {
        let queries = ctx.shared.engine.queries();
        let found = match ResourceAddress::parse(uri) {
            Some(ResourceAddress::Room(id)) => queries.room(&ctx.actor.workspace, id).await.map(|room| (room, None)),
            Some(ResourceAddress::Run(id)) => Self::of_run(ctx, id).await,
            _ => {
                let why = "only rooms and runs can be subscribed to: greenroom://rooms/{id} and greenroom://runs/{id}";
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        let (room, run) = found.map_err(|error| match error {
            store::StoreError::NotFound => ErrorData::resource_not_found(format!("{uri} not found"), None),
            error => ErrorData::internal_error(error.to_string(), None),
        })?;
        Ok(Self { uri: uri.to_owned(), room: room.id, head: room.head, run })
    }

    async fn of_run(
        ctx: &McpRequestContext<'_>,
        id: RunId,
    ) -> Result<(Room, Option<SubscribedRun>), store::StoreError> {
        let (queries, owner) = (ctx.shared.engine.queries(), &ctx.actor.workspace);
        // Reads the head before the status: a change in between is reported twice rather than never.
        let room = queries.room(owner, queries.run(owner, id).await?.room_id).await?;
        let is_live = !queries.run(owner, id).await?.status.is_terminal();
        Ok((room, Some(SubscribedRun { id, is_live })))
    }
}

/// The current subscriptions, and a signal that they changed.
#[derive(Default)]
struct Subscriptions {
    targets: Mutex<BTreeMap<String, SubscribedResource>>,
    changed: Notify,
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SubscribedResource>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The change watcher of a session. Ends when dropped.
pub struct SessionWatch {
    subscriptions: Arc<Subscriptions>,
    _task: JoinSet<()>,
}

impl SessionWatch {
    pub fn start(shared: Arc<HandlerShared>, owner: Owner, peer: Peer<RoleServer>) -> Self {
        let subscriptions = Arc::new(Subscriptions::default());
        let mut task = JoinSet::new();
        let mut watcher = SubscriptionWatcher::new(&shared, owner, Arc::clone(&subscriptions));
        task.spawn(shared.watchers.track_future(async move {
            // An error means that the client is gone.
            drop(watcher.run(&peer).await);
        }));
        Self { subscriptions, _task: task }
    }

    pub fn add(&self, target: SubscribedResource) -> Result<(), ErrorData> {
        let mut targets = self.subscriptions.lock();
        if targets.len() >= MAX_SUBSCRIPTIONS && !targets.contains_key(&target.uri) {
            let why = format!("at most {MAX_SUBSCRIPTIONS} subscriptions are allowed; unsubscribe from some");
            return Err(ErrorData::invalid_params(why, None));
        }
        targets.insert(target.uri.clone(), target);
        drop(targets);
        self.subscriptions.changed.notify_one();
        Ok(())
    }

    pub fn remove(&self, uri: &str) {
        self.subscriptions.lock().remove(uri);
        self.subscriptions.changed.notify_one();
    }
}

/// Returns the part of a filter that is supported. Whether the resources exist is checked later, with the owner.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let can = |uri: &&String| {
            matches!(ResourceAddress::parse(uri), Some(ResourceAddress::Room(_) | ResourceAddress::Run(_)))
        };
        uris.iter().filter(can).take(MAX_SUBSCRIPTIONS).cloned().collect()
    });
    accepted
}

/// Sends notifications until the client leaves or the server stops.
pub async fn listen(ctx: &McpRequestContext<'_>, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let subscriptions = Arc::new(Subscriptions::default());
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        // A missing resource does not affect the other subscriptions.
        match SubscribedResource::find(ctx, uri).await {
            Ok(target) => drop(subscriptions.lock().insert(uri.clone(), target)),
            Err(error) => tracing::debug!(%error, "a subscribed resource was not found"),
        }
    }
    let mut watcher = SubscriptionWatcher::new(ctx.shared, ctx.actor.workspace.clone(), subscriptions);
    tokio::select! {
        // A failed notification means that the client is gone.
        _ = watcher.run(context.sink()) => {}
        () = context.cancelled() => {}
    }
    Ok(())
}

/// The client can no longer be reached.
struct ClientGone;

/// Sends change notifications to a client.
trait ChangeNotifier {
    fn resource_updated(&self, uri: &str) -> impl Future<Output = Result<(), ClientGone>> + Send;
    fn tools_changed(&self) -> impl Future<Output = Result<(), ClientGone>> + Send;
    fn prompts_changed(&self) -> impl Future<Output = Result<(), ClientGone>> + Send;
    fn resources_changed(&self) -> impl Future<Output = Result<(), ClientGone>> + Send;
    fn server_stopping(&self) -> impl Future<Output = Result<(), ClientGone>> + Send;
}

impl ChangeNotifier for Peer<RoleServer> {
    async fn resource_updated(&self, uri: &str) -> Result<(), ClientGone> {
        self.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.map_err(|_| ClientGone)
    }

    async fn tools_changed(&self) -> Result<(), ClientGone> {
        self.notify_tool_list_changed().await.map_err(|_| ClientGone)
    }

    async fn prompts_changed(&self) -> Result<(), ClientGone> {
        self.notify_prompt_list_changed().await.map_err(|_| ClientGone)
    }

    async fn resources_changed(&self) -> Result<(), ClientGone> {
        self.notify_resource_list_changed().await.map_err(|_| ClientGone)
    }

    async fn server_stopping(&self) -> Result<(), ClientGone> {
        let data = json!({"reason": "the server is stopping", "code": "server_stopping"});
        logging::notice(self, "greenroom", data).await;
        Ok(())
    }
}

impl ChangeNotifier for SubscriptionSink {
    async fn resource_updated(&self, uri: &str) -> Result<(), ClientGone> {
        ignore_unaccepted(self.notify_resource_updated(uri).await)
    }

    async fn tools_changed(&self) -> Result<(), ClientGone> {
        ignore_unaccepted(self.notify_tool_list_changed().await)
    }

    async fn prompts_changed(&self) -> Result<(), ClientGone> {
        ignore_unaccepted(self.notify_prompt_list_changed().await)
    }

    async fn resources_changed(&self) -> Result<(), ClientGone> {
        ignore_unaccepted(self.notify_resource_list_changed().await)
    }

    /// The result of the request tells the client.
    async fn server_stopping(&self) -> Result<(), ClientGone> {
        Ok(())
    }
}

/// A notification that the client did not subscribe to is not sent, which is not an error.
fn ignore_unaccepted(sent: Result<(), SubscriptionSendError>) -> Result<(), ClientGone> {
    match sent {
        Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => Ok(()),
        Err(_) => Err(ClientGone),
    }
}

struct SubscriptionWatcher {
    shared: Arc<HandlerShared>,
    owner: Owner,
    subscriptions: Arc<Subscriptions>,
    watch: store::notify::OwnerWatch,
    /// The head of each room at its last notification.
    heads: HashMap<RoomId, u64>,
    /// Runs whose end was reported.
    ended: HashSet<RunId>,
}

impl SubscriptionWatcher {
    fn new(shared: &Arc<HandlerShared>, owner: Owner, subscriptions: Arc<Subscriptions>) -> Self {
        let watch = shared.engine.queries().watch(&owner);
        Self { shared: Arc::clone(shared), owner, subscriptions, watch, heads: HashMap::new(), ended: HashSet::new() }
    }

    async fn run(&mut self, notifier: &impl ChangeNotifier) -> Result<(), ClientGone> {
        let shared = Arc::clone(&self.shared);
        self.refresh_subscriptions();
        let mut look_again = true;
        loop {
            let mut moved = self.watch.take_changes();
            if look_again {
                moved.rooms.extend(self.heads.keys());
            }
            if self.notify_changes(moved, notifier).await? {
                sleep(NOTIFY_INTERVAL).await;
            }
            look_again = tokio::select! {
                () = self.watch.changed() => false,
                // Events since the subscription count as changes.
                () = self.subscriptions.changed.notified() => {
                    self.refresh_subscriptions();
                    true
                }
                () = sleep(POLL_INTERVAL), if !self.heads.is_empty() => true,
                () = shared.stopping.cancelled() => return notifier.server_stopping().await,
            };
        }
    }

    /// Watches the rooms of the current subscriptions.
    fn refresh_subscriptions(&mut self) {
        let targets: Vec<SubscribedResource> = self.subscriptions.lock().values().cloned().collect();
        let rooms: BTreeSet<RoomId> = targets.iter().map(|target| target.room).collect();
        self.watch.set_rooms(rooms.clone());
        self.heads.retain(|room, _| rooms.contains(room));
        for target in &targets {
            self.heads.entry(target.room).or_insert(target.head);
        }
        let runs: HashSet<RunId> = targets.iter().filter_map(|target| target.run).map(|run| run.id).collect();
        self.ended.retain(|run| runs.contains(run));
    }

    /// Returns whether any notification was sent.
    async fn notify_changes(
        &mut self,
        moved: WatchedChanges,
        notifier: &impl ChangeNotifier,
    ) -> Result<bool, ClientGone> {
        let mut sent_any = moved.agents || moved.skills || moved.room_list;
        if moved.agents {
            notifier.tools_changed().await?;
        }
        if moved.skills {
            notifier.prompts_changed().await?;
        }
        if moved.skills || moved.room_list {
            notifier.resources_changed().await?;
        }
        for room in moved.rooms {
            let head = match self.shared.engine.queries().room(&self.owner, room).await {
                Ok(found) => found.head,
                // A deleted room is reported once.
                Err(store::StoreError::NotFound) => u64::MAX,
                Err(error) => {
                    tracing::debug!(%error, "could not read a watched room; trying again later");
                    continue;
                }
            };
            let before = self.heads.insert(room, head);
            if before == Some(head) {
                continue;
            }
            for uri in self.changed_uris(room).await {
                sent_any = true;
                notifier.resource_updated(&uri).await?;
            }
        }
        Ok(sent_any)
    }

    /// Returns the subscribed URIs of a room that changed.
    async fn changed_uris(&mut self, room: RoomId) -> Vec<String> {
        let here: Vec<SubscribedResource> =
            self.subscriptions.lock().values().filter(|target| target.room == room).cloned().collect();
        let mut uris = Vec::with_capacity(here.len());
        for target in here {
            if let Some(SubscribedRun { id, is_live }) = target.run {
                if !is_live || self.ended.contains(&id) {
                    continue;
                }
                // Runs of a room are sequential: while this run is unfinished, changes of the room are mostly its own.
                match self.shared.engine.queries().run(&self.owner, id).await {
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
