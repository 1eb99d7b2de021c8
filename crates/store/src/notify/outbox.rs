//! The topics that the other servers must be told. Repeated changes of one topic are sent once, with the newest head.

use super::{OwnerList, Topic, lock};
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    position::Seq,
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};
use tokio::sync::Notify;

/// The limit of rooms, lists and runs that wait; beyond it, one message says that anything may have changed.
const MAX_TOPICS: usize = 8192;

#[derive(Debug, Default)]
pub(super) struct NotifyOutbox {
    pending: Mutex<PendingTopics>,
    added: Notify,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PendingTopics {
    rooms: HashMap<RoomId, Seq>,
    lists: BTreeSet<(Owner, OwnerList)>,
    runs: BTreeSet<RunId>,
    settled: BTreeSet<RunId>,
    queue: bool,
    /// There were too many topics to list: anything may have changed.
    pub everything: bool,
}

impl NotifyOutbox {
    pub(super) fn add(&self, topic: Topic) {
        lock(&self.pending).add(topic);
        self.added.notify_one();
    }

    /// Waits until a topic was added.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }

    pub(super) fn take(&self) -> PendingTopics {
        std::mem::take(&mut lock(&self.pending))
    }

    /// Returns topics that could not be sent; they are sent with the next ones.
    pub(super) fn put_back(&self, unsent: &PendingTopics) {
        let mut pending = lock(&self.pending);
        pending.everything |= unsent.everything;
        for topic in unsent.topics() {
            pending.add(topic);
        }
        drop(pending);
        self.added.notify_one();
    }
}

impl PendingTopics {
    pub(super) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    fn add(&mut self, topic: Topic) {
        if !self.everything {
            match topic {
                Topic::Room { id, head } => {
                    let known = self.rooms.entry(id).or_default();
                    *known = head.max(*known);
                }
                Topic::Queue => self.queue = true,
                Topic::List { owner, list } => drop(self.lists.insert((owner, list))),
                Topic::Run(run) => drop(self.runs.insert(run)),
                Topic::Settled(run) => drop(self.settled.insert(run)),
            }
            if self.rooms.len() + self.lists.len() + self.runs.len() + self.settled.len() > MAX_TOPICS {
                *self = Self::everything();
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn topics(&self) -> impl Iterator<Item = Topic> {
        let queue = self.queue.then_some(Topic::Queue);
        let runs = self.runs.iter().map(|run| Topic::Run(*run));
        let settled = self.settled.iter().map(|run| Topic::Settled(*run));
        let rooms = self.rooms.iter().map(|(id, head)| Topic::Room { id: *id, head: *head });
        let lists = self.lists.iter().map(|(owner, list)| Topic::List { owner: owner.clone(), list: *list });
        queue.into_iter().chain(runs).chain(settled).chain(rooms).chain(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TOPICS, NotifyOutbox, OwnerList, PendingTopics, Topic};
    use domain::{
        ids::{RoomId, RunId},
        owner::Owner,
    };

    #[tokio::test]
    async fn many_changes_of_one_topic_are_one() {
        let (outbox, room, run) = (NotifyOutbox::default(), RoomId::generate(), RunId::generate());
        for head in [1, 3, 2] {
            outbox.add(Topic::Room { id: room, head });
            outbox.add(Topic::Queue);
            outbox.add(Topic::Run(run));
            outbox.add(Topic::Settled(run));
            outbox.add(Topic::List { owner: Owner::local(), list: OwnerList::Agents });
        }
        outbox.added().await;
        let topics: Vec<Topic> = outbox.take().topics().collect();
        let list = Topic::List { owner: Owner::local(), list: OwnerList::Agents };
        assert_eq!(
            topics,
            [Topic::Queue, Topic::Run(run), Topic::Settled(run), Topic::Room { id: room, head: 3 }, list]
        );
        assert!(outbox.take().is_empty());
    }

    #[tokio::test]
    async fn unsent_topics_do_not_replace_newer_ones() {
        let (outbox, room) = (NotifyOutbox::default(), RoomId::generate());
        outbox.add(Topic::Room { id: room, head: 1 });
        let unsent = outbox.take();
        outbox.add(Topic::Room { id: room, head: 2 });
        outbox.added().await;
        outbox.put_back(&unsent);
        outbox.added().await;
        assert_eq!(outbox.take().topics().collect::<Vec<_>>(), [Topic::Room { id: room, head: 2 }]);
    }

    #[test]
    fn the_outbox_is_bounded() {
        let outbox = NotifyOutbox::default();
        for _ in 0..=MAX_TOPICS {
            outbox.add(Topic::Room { id: RoomId::generate(), head: 1 });
        }
        outbox.add(Topic::Queue);
        let pending = outbox.take();
        assert_eq!(pending, PendingTopics::everything());
        outbox.add(Topic::Queue);
        outbox.put_back(&pending);
        assert!(outbox.take().everything);
    }
}
