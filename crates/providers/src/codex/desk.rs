//! Who on an instance is to hear what: one seat for each thread that has a turn running, and a short memory for what
//! comes before the seat is taken.

use crate::jsonrpc::Incoming;
use domain::usage::Usage;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, mpsc};

/// What waits for a turn that is slower than its model; beyond that the instance waits.
const SEAT: usize = 4096;
/// What was said of threads that nobody sits at: a thread's first words come right behind the answer that names it.
const EARLY: usize = 256;
/// More conversations than this are not kept ready on one instance.
pub const MAX_THREADS: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Desk {
    inner: Arc<Mutex<Inner>>,
    /// Somebody has left a seat.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    seats: HashMap<String, mpsc::Sender<Incoming>>,
    early: VecDeque<(String, Incoming)>,
    threads: HashMap<String, Thread>,
    /// Counts the uses of threads, to know which was used last.
    uses: u64,
}

/// A thread that this instance has open.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub model: Option<String>,
    /// What it had used when its last turn ended.
    pub total: Option<Usage>,
    /// Whether it has to be resumed before it can be used again. It is still open: no other instance can have it.
    pub parked: bool,
    pub(super) used: u64,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the seat of a thread, and what was said of it before; `None` if somebody sits there.
    pub fn sit(&self, thread: &str) -> Option<mpsc::Receiver<Incoming>> {
        let (seat, heard) = mpsc::channel(SEAT);
        let mut inner = self.lock();
        if inner.seats.contains_key(thread) {
            return None;
        }
        let early = std::mem::take(&mut inner.early);
        for (of, incoming) in early {
            if of == thread {
                // There is room: the memory is shorter than the seat is deep.
                drop(seat.try_send(incoming));
            } else {
                inner.early.push_back((of, incoming));
            }
        }
        inner.seats.insert(thread.to_owned(), seat);
        Some(heard)
    }

    /// Waits until nobody sits at the thread.
    pub async fn vacant(&self, thread: &str) {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            if !self.lock().seats.contains_key(thread) {
                return;
            }
            left.await;
        }
    }

    /// Leaves the seat; the thread stays open, with what is known of it.
    pub fn leave(&self, thread: &str, model: Option<String>, total: Option<Usage>) {
        let mut inner = self.lock();
        inner.seats.remove(thread);
        inner.uses += 1;
        let used = inner.uses;
        inner.threads.insert(thread.to_owned(), Thread { model, total, parked: false, used });
        drop(inner);
        self.left.notify_waiters();
    }

    /// From now on the thread is looked for here; it has to be resumed first.
    pub fn claim(&self, thread: &str) {
        self.lock().threads.entry(thread.to_owned()).or_insert_with(|| Thread { parked: true, ..Thread::default() });
    }

    pub fn seat(&self, thread: &str) -> Option<mpsc::Sender<Incoming>> {
        self.lock().seats.get(thread).cloned()
    }

    pub fn remember(&self, thread: String, incoming: Incoming) {
        let mut inner = self.lock();
        if inner.early.len() == EARLY {
            inner.early.pop_front();
        }
        inner.early.push_back((thread, incoming));
    }

    pub fn thread(&self, thread: &str) -> Option<Thread> {
        self.lock().threads.get(thread).cloned()
    }

    /// Codex has closed it: any instance can have it now.
    pub fn forget(&self, thread: &str) {
        self.lock().threads.remove(thread);
    }

    /// The threads that were not used for longest, where there are too many; they are parked from now on.
    pub fn park(&self) -> Vec<String> {
        let mut inner = self.lock();
        let Inner { seats, threads, .. } = &mut *inner;
        let mut idle: Vec<(u64, String)> = threads
            .iter()
            .filter(|(id, thread)| !thread.parked && !seats.contains_key(*id))
            .map(|(id, thread)| (thread.used, id.clone()))
            .collect();
        idle.sort_unstable();
        let too_many = idle.len().saturating_sub(MAX_THREADS);
        let parked: Vec<String> = idle.into_iter().take(too_many).map(|(_, id)| id).collect();
        for id in &parked {
            if let Some(thread) = threads.get_mut(id) {
                thread.parked = true;
            }
        }
        parked
    }

    /// Everybody who sits, once and for all.
    pub fn dismiss(&self) -> Vec<mpsc::Sender<Incoming>> {
        let mut inner = self.lock();
        inner.early.clear();
        inner.threads.clear();
        let seats = std::mem::take(&mut inner.seats).into_values().collect();
        drop(inner);
        self.left.notify_waiters();
        seats
    }
}

#[cfg(test)]
mod tests {
    use super::{Desk, EARLY, MAX_THREADS};
    use crate::jsonrpc::Incoming;
    use serde_json::Value;

    fn said(method: &str) -> Incoming {
        Incoming::Notification { method: method.into(), params: Value::Null, raw: String::new() }
    }

    #[tokio::test]
    async fn what_came_too_early_is_heard_first_and_only_by_whom_it_concerns() {
        let desk = Desk::default();
        desk.remember("a".into(), said("one"));
        desk.remember("b".into(), said("other"));
        let mut seat = desk.sit("a").unwrap();
        assert!(desk.sit("a").is_none(), "a thread has one turn at a time");
        desk.seat("a").unwrap().send(said("two")).await.unwrap();
        assert_eq!(seat.recv().await, Some(said("one")));
        assert_eq!(seat.recv().await, Some(said("two")));
        assert_eq!(desk.sit("b").unwrap().recv().await, Some(said("other")));
    }

    #[test]
    fn invariant_14_limits_what_nobody_hears_is_forgotten() {
        let desk = Desk::default();
        for _ in 0..10 * EARLY {
            desk.remember("a".into(), said("x"));
        }
        assert_eq!(desk.sit("a").unwrap().len(), EARLY);
    }

    #[test]
    fn only_so_many_threads_are_kept_ready_and_the_oldest_give_way() {
        let desk = Desk::default();
        for n in 0..MAX_THREADS {
            desk.leave(&n.to_string(), None, None);
        }
        assert!(desk.park().is_empty());
        let _in_use = desk.sit("0");
        desk.leave("new", None, None);
        desk.leave("newer", None, None);
        assert_eq!(desk.park(), ["1"], "the oldest that is not in use");
        assert!(desk.park().is_empty());
        assert!(desk.thread("1").unwrap().parked, "still open here, so it comes back here");
        desk.forget("1");
        assert!(desk.thread("1").is_none());
    }
}
