//! Notifications: what has changed, for those who wait for it on this server and on the others of the same database.
//!
//! A topic is a room with its newest seq, the queue, a list of an owner, or the signals of a run. A change is
//! published after its commit ([`NotifyHub::publish`]): subscribers on this server are woken at once, and the outbox
//! sends the topic to the other servers, many topics in one message. On SQLite there is no other server.
//!
//! A notification is a hint (invariant 13): a woken reader reads the store again, and while messages of other servers
//! may be missing, `service` polls everything that is watched here. This module must not know frames, HTTP or the
//! engine. Start at `hub` for one server and at `service` for several; `relay` is the interface to what carries the
//! messages.
//!
//! Signals of a run: the journal publishes every signal that it has stored; the worker that executes runs waits for
//! [`Store::watch_run_signals`], and wakes the runs that it holds. When it has settled signals, the journal publishes
//! that too, for the senders, which wait for [`Store::watch_settled_signals`].

mod hub;
mod list_states;
mod outbox;
mod payload;
mod poll;
mod postgres;
mod relay;
mod service;
mod watch;

pub(crate) use hub::{NotifyHub, RoomTopic};
pub(crate) use postgres::PostgresRelay;
pub(crate) use service::NotifyService;
pub use watch::{OwnerWatch, RunSignalWatch, SettledSignalsWatch, SignaledRuns, WatchedChanges};

use crate::open::Store;
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    position::Seq,
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Notified when a followed room has new events. Followers may share one: after a wake-up, check all of them.
#[derive(Debug, Default)]
pub struct Notifier(Notify);

impl Notifier {
    pub(crate) fn notify(&self) {
        // `Notify` keeps a permit if nobody waits yet, so a notification between a read and a wait is not lost.
        self.0.notify_one();
    }

    pub async fn notified(&self) {
        self.0.notified().await;
    }
}

/// Something that has changed. The names are part of the messages between servers, which may be of two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Topic {
    /// The room has a new event or a new state; `head` is its newest seq.
    Room { id: RoomId, head: Seq },
    /// A run was queued, ended, or requested to stop.
    Queue,
    /// An object of the owner's list was created, changed or deleted.
    List { owner: Owner, list: OwnerList },
    /// The run has new signals.
    Run(RunId),
    /// Signals of the run were settled.
    Settled(RunId),
}

/// A list of an owner's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OwnerList {
    Rooms,
    Agents,
    Skills,
}

impl Store {
    /// Watches all rooms of an owner for changes.
    pub fn watch(&self, owner: &Owner) -> OwnerWatch {
        OwnerWatch::start(self, owner)
    }

    /// Notified when the queue may have work: a run was queued, ended, or requested to stop. For one waiter.
    pub fn queue_notify(&self) -> &Arc<Notify> {
        self.notify_hub().queue()
    }

    /// Reports that the queue may have work, on every server. The journal does so for its own commits.
    pub fn notify_queue(&self) {
        self.notify_hub().publish(Topic::Queue);
    }

    /// Reports new signals of a run, to whichever server executes it. The journal calls it for every stored signal.
    pub(crate) fn notify_run(&self, run: RunId) {
        self.notify_hub().publish(Topic::Run(run));
    }

    /// Collects the runs that may have new signals. Start it before the first run is claimed.
    pub fn watch_run_signals(&self) -> RunSignalWatch {
        RunSignalWatch::start(self)
    }

    /// Reports that signals of a run were settled, to the servers that accepted them.
    pub(crate) fn notify_settled(&self, run: RunId) {
        self.notify_hub().publish(Topic::Settled(run));
    }

    /// Notified when signals of the run are settled. Start it before reading an outcome, so that one in between is not
    /// missed.
    pub fn watch_settled_signals(&self, run: RunId) -> SettledSignalsWatch {
        SettledSignalsWatch::start(self, run)
    }

    pub(crate) fn list_changed(&self, owner: &Owner, list: OwnerList) {
        self.notify_hub().publish(Topic::List { owner: owner.clone(), list });
    }
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
