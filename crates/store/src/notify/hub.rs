//! The subscribers of this server, by topic.

use super::{
    Notifier, Topic, lock,
    outbox::NotifyOutbox,
    watch::{OwnerWatchState, RunSignalState},
};
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    position::Seq,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct NotifyHub {
    /// Rooms with a subscriber.
    rooms: Mutex<HashMap<RoomId, Arc<RoomTopic>>>,
    owners: Mutex<HashMap<Owner, Vec<Arc<OwnerWatchState>>>>,
    run_watches: Mutex<Vec<Arc<RunSignalState>>>,
    /// Runs with a sender that waits for the outcome of a signal.
    settled_watches: Mutex<HashMap<RunId, Vec<Arc<Notifier>>>>,
    queue: Arc<Notify>,
    /// What to send to the other servers, if there can be any.
    outbox: Option<NotifyOutbox>,
}

/// A room that is followed or watched on this server.
#[derive(Debug, Default)]
pub(crate) struct RoomTopic {
    /// The newest seq known to be stored.
    head: AtomicU64,
    subscribers: Mutex<Vec<RoomSubscriber>>,
}

#[derive(Debug, Clone)]
pub(super) enum RoomSubscriber {
    Reader(Arc<Notifier>),
    Watch(Arc<OwnerWatchState>),
}

impl RoomSubscriber {
    fn notify(&self, room: RoomId) {
        match self {
            Self::Reader(notifier) => notifier.notify(),
            Self::Watch(state) => state.room_changed(room),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reader(one), Self::Reader(two)) => Arc::ptr_eq(one, two),
            (Self::Watch(one), Self::Watch(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl RoomTopic {
    pub(crate) fn head(&self) -> Seq {
        self.head.load(Ordering::Acquire)
    }

    /// Records that the room has events up to `head`. Returns whether that is new.
    pub(crate) fn raise_head(&self, head: Seq) -> bool {
        self.head.fetch_max(head, Ordering::AcqRel) < head
    }

    fn notify(&self, room: RoomId) {
        lock(&self.subscribers).iter().for_each(|subscriber| subscriber.notify(room));
    }
}

impl NotifyHub {
    /// A hub of one of several servers. What is published goes to the outbox too.
    pub(crate) fn with_outbox() -> Self {
        Self { outbox: Some(NotifyOutbox::default()), ..Self::default() }
    }

    /// Reports a change of this server. Call it after the commit, never inside its transaction.
    pub(crate) fn publish(&self, topic: Topic) {
        self.deliver(&topic);
        if let Some(outbox) = &self.outbox {
            outbox.add(topic);
        }
    }

    /// Wakes the subscribers of this server.
    pub(super) fn deliver(&self, topic: &Topic) {
        match topic {
            Topic::Room { id, head } => {
                if let Some(topic) = self.room(*id) {
                    topic.raise_head(*head);
                    topic.notify(*id);
                }
            }
            Topic::Queue => self.queue.notify_one(),
            Topic::List { owner, list } => {
                for state in lock(&self.owners).get(owner).into_iter().flatten() {
                    state.list_changed(*list);
                }
            }
            Topic::Run(run) => lock(&self.run_watches).iter().for_each(|state| state.run_changed(*run)),
            Topic::Settled(run) => {
                lock(&self.settled_watches).get(run).into_iter().flatten().for_each(|notifier| notifier.notify());
            }
        }
    }

    /// Wakes the subscribers of a room if its head has moved: they were not notified of it.
    pub(super) fn raise_head(&self, room: RoomId, head: Seq) {
        if let Some(topic) = self.room(room).filter(|topic| topic.raise_head(head)) {
            topic.notify(room);
        }
    }

    /// Wakes the worker and the senders of signals: runs may have been queued, and signals stored or settled, without a
    /// notification.
    pub(super) fn wake_worker_and_senders(&self) {
        self.queue.notify_one();
        lock(&self.run_watches).iter().for_each(|state| state.any_run_changed());
        lock(&self.settled_watches).values().flatten().for_each(|notifier| notifier.notify());
    }

    fn room(&self, room: RoomId) -> Option<Arc<RoomTopic>> {
        lock(&self.rooms).get(&room).cloned()
    }

    /// The rooms with a subscriber.
    pub(super) fn rooms(&self) -> Vec<RoomId> {
        lock(&self.rooms).keys().copied().collect()
    }

    /// The owners whose lists are watched.
    pub(super) fn owners(&self) -> Vec<Owner> {
        lock(&self.owners).keys().cloned().collect()
    }

    pub(super) fn queue(&self) -> &Arc<Notify> {
        &self.queue
    }

    pub(super) fn outbox(&self) -> Option<&NotifyOutbox> {
        self.outbox.as_ref()
    }

    pub(crate) fn subscribe_reader(&self, room: RoomId, notifier: &Arc<Notifier>) -> Arc<RoomTopic> {
        self.subscribe(room, RoomSubscriber::Reader(Arc::clone(notifier)))
    }

    pub(crate) fn unsubscribe_reader(&self, room: RoomId, notifier: &Arc<Notifier>) {
        self.unsubscribe(room, &RoomSubscriber::Reader(Arc::clone(notifier)));
    }

    pub(super) fn subscribe(&self, room: RoomId, subscriber: RoomSubscriber) -> Arc<RoomTopic> {
        let mut rooms = lock(&self.rooms);
        let topic = rooms.entry(room).or_default();
        lock(&topic.subscribers).push(subscriber);
        Arc::clone(topic)
    }

    /// Removes one subscription, and a room without any, so that the map does not grow.
    pub(super) fn unsubscribe(&self, room: RoomId, subscriber: &RoomSubscriber) {
        let mut rooms = lock(&self.rooms);
        let Some(topic) = rooms.get(&room) else { return };
        let mut subscribers = lock(&topic.subscribers);
        if let Some(at) = subscribers.iter().position(|other| other.is(subscriber)) {
            subscribers.swap_remove(at);
        }
        let is_unused = subscribers.is_empty();
        drop(subscribers);
        if is_unused {
            rooms.remove(&room);
        }
    }

    pub(super) fn add_owner_watch(&self, owner: &Owner, state: &Arc<OwnerWatchState>) {
        lock(&self.owners).entry(owner.clone()).or_default().push(Arc::clone(state));
    }

    pub(super) fn remove_owner_watch(&self, owner: &Owner, state: &Arc<OwnerWatchState>) {
        let mut owners = lock(&self.owners);
        let Some(states) = owners.get_mut(owner) else { return };
        states.retain(|other| !Arc::ptr_eq(other, state));
        if states.is_empty() {
            owners.remove(owner);
        }
    }

    pub(super) fn add_run_watch(&self, state: &Arc<RunSignalState>) {
        lock(&self.run_watches).push(Arc::clone(state));
    }

    pub(super) fn add_settled_watch(&self, run: RunId, notifier: &Arc<Notifier>) {
        lock(&self.settled_watches).entry(run).or_default().push(Arc::clone(notifier));
    }

    pub(super) fn remove_settled_watch(&self, run: RunId, notifier: &Arc<Notifier>) {
        let mut watches = lock(&self.settled_watches);
        let Some(notifiers) = watches.get_mut(&run) else { return };
        notifiers.retain(|other| !Arc::ptr_eq(other, notifier));
        if notifiers.is_empty() {
            watches.remove(&run);
        }
    }

    pub(super) fn remove_run_watch(&self, state: &Arc<RunSignalState>) {
        lock(&self.run_watches).retain(|other| !Arc::ptr_eq(other, state));
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Notifier, NotifyHub, RoomId, Topic, lock};

    #[tokio::test]
    async fn a_room_is_forgotten_with_its_last_subscriber() {
        let hub = NotifyHub::default();
        let (room, one, two) = (RoomId::generate(), Arc::new(Notifier::default()), Arc::new(Notifier::default()));
        let topic = hub.subscribe_reader(room, &one);
        hub.subscribe_reader(room, &two);
        hub.publish(Topic::Room { id: room, head: 3 });
        one.notified().await;
        two.notified().await;
        assert_eq!(topic.head(), 3);
        hub.unsubscribe_reader(room, &one);
        assert_eq!(hub.rooms(), [room]);
        hub.unsubscribe_reader(room, &one);
        hub.unsubscribe_reader(room, &two);
        assert!(lock(&hub.rooms).is_empty());
        hub.publish(Topic::Room { id: room, head: 4 });
        assert!(lock(&hub.rooms).is_empty(), "a room without a subscriber takes no memory");
    }
}
