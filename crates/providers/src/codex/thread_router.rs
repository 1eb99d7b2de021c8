//! Routes the messages of an instance to its threads: one queue per thread with a running turn, and a short buffer for
//! messages that arrive before the turn is attached.

use crate::jsonrpc::RpcIncoming;
use domain::usage::Usage;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, mpsc};

/// Queue length of a turn; when it is full, reading from the instance pauses.
const QUEUE_CAPACITY: usize = 4096;
/// Number of buffered messages of threads without a turn: a thread's first messages come right after the response that
/// names it.
const EARLY_CAPACITY: usize = 256;
/// Maximum number of idle threads kept open on one instance.
pub const MAX_THREADS: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct ThreadRouter {
    inner: Arc<Mutex<RouterState>>,
    /// Notified when a turn is detached.
    detached: Arc<Notify>,
}

#[derive(Debug, Default)]
struct RouterState {
    queues: HashMap<String, mpsc::Sender<RpcIncoming>>,
    early: VecDeque<(String, RpcIncoming)>,
    threads: HashMap<String, OpenThread>,
    /// Counts thread uses, to find the least recently used thread.
    uses: u64,
}

/// A thread that is open on this instance.
#[derive(Clone, Debug, Default)]
pub struct OpenThread {
    pub model: Option<String>,
    /// Its total usage at the end of its last turn.
    pub total: Option<Usage>,
    /// Whether it must be resumed before its next use. It is still open here, so no other instance can open it.
    pub parked: bool,
    pub(super) last_used: u64,
}

impl ThreadRouter {
    fn lock(&self) -> MutexGuard<'_, RouterState> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a turn to a thread. The receiver starts with the buffered messages. `None` if the thread has a turn.
    pub fn attach(&self, thread: &str) -> Option<mpsc::Receiver<RpcIncoming>> {
        let (queue, incoming) = mpsc::channel(QUEUE_CAPACITY);
        let mut inner = self.lock();
        if inner.queues.contains_key(thread) {
            return None;
        }
        let early = std::mem::take(&mut inner.early);
        for (of, message) in early {
            if of == thread {
                // This cannot fail: the buffer is shorter than the queue.
                drop(queue.try_send(message));
            } else {
                inner.early.push_back((of, message));
            }
        }
        inner.queues.insert(thread.to_owned(), queue);
        Some(incoming)
    }

    /// Waits until the thread has no turn.
    pub async fn wait_until_free(&self, thread: &str) {
        loop {
            let mut left = std::pin::pin!(self.detached.notified());
            left.as_mut().enable();
            if !self.lock().queues.contains_key(thread) {
                return;
            }
            left.await;
        }
    }

    /// Detaches the turn. The thread stays open.
    pub fn detach(&self, thread: &str, model: Option<String>, total: Option<Usage>) {
        let mut inner = self.lock();
        inner.queues.remove(thread);
        inner.uses += 1;
        let used = inner.uses;
        inner.threads.insert(thread.to_owned(), OpenThread { model, total, parked: false, last_used: used });
        drop(inner);
        self.detached.notify_waiters();
    }

    /// Records that the thread may be open on this instance; it must be resumed first.
    pub fn claim(&self, thread: &str) {
        self.lock()
            .threads
            .entry(thread.to_owned())
            .or_insert_with(|| OpenThread { parked: true, ..OpenThread::default() });
    }

    pub fn queue(&self, thread: &str) -> Option<mpsc::Sender<RpcIncoming>> {
        self.lock().queues.get(thread).cloned()
    }

    pub fn buffer_early(&self, thread: String, incoming: RpcIncoming) {
        let mut inner = self.lock();
        if inner.early.len() == EARLY_CAPACITY {
            inner.early.pop_front();
        }
        inner.early.push_back((thread, incoming));
    }

    pub fn thread(&self, thread: &str) -> Option<OpenThread> {
        self.lock().threads.get(thread).cloned()
    }

    /// Codex has closed the thread, so any instance can open it.
    pub fn forget(&self, thread: &str) {
        self.lock().threads.remove(thread);
    }

    /// Parks the least recently used idle threads above the limit, and returns them.
    pub fn park_excess(&self) -> Vec<String> {
        let mut inner = self.lock();
        let RouterState { queues, threads, .. } = &mut *inner;
        let mut idle: Vec<(u64, String)> = threads
            .iter()
            .filter(|(id, thread)| !thread.parked && !queues.contains_key(*id))
            .map(|(id, thread)| (thread.last_used, id.clone()))
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

    /// Removes all threads and returns the queues of the running turns.
    pub fn detach_all(&self) -> Vec<mpsc::Sender<RpcIncoming>> {
        let mut inner = self.lock();
        inner.early.clear();
        inner.threads.clear();
        let queues = std::mem::take(&mut inner.queues).into_values().collect();
        drop(inner);
        self.detached.notify_waiters();
        queues
    }
}

#[cfg(test)]
mod tests {
    use super::{EARLY_CAPACITY, MAX_THREADS, ThreadRouter};
    use crate::jsonrpc::RpcIncoming;
    use serde_json::Value;

    fn notification(method: &str) -> RpcIncoming {
        RpcIncoming::Notification { method: method.into(), params: Value::Null, raw: String::new() }
    }

    #[tokio::test]
    async fn early_messages_are_delivered_first_and_only_to_their_thread() {
        let router = ThreadRouter::default();
        router.buffer_early("a".into(), notification("one"));
        router.buffer_early("b".into(), notification("other"));
        let mut receiver = router.attach("a").unwrap();
        assert!(router.attach("a").is_none(), "a thread has one turn at a time");
        router.queue("a").unwrap().send(notification("two")).await.unwrap();
        assert_eq!(receiver.recv().await, Some(notification("one")));
        assert_eq!(receiver.recv().await, Some(notification("two")));
        assert_eq!(router.attach("b").unwrap().recv().await, Some(notification("other")));
    }

    #[test]
    fn invariant_14_limits_the_early_buffer_is_bounded() {
        let router = ThreadRouter::default();
        for _ in 0..10 * EARLY_CAPACITY {
            router.buffer_early("a".into(), notification("x"));
        }
        assert_eq!(router.attach("a").unwrap().len(), EARLY_CAPACITY);
    }

    #[test]
    fn least_recently_used_threads_are_parked_above_the_limit() {
        let router = ThreadRouter::default();
        for n in 0..MAX_THREADS {
            router.detach(&n.to_string(), None, None);
        }
        assert!(router.park_excess().is_empty());
        let _in_use = router.attach("0");
        router.detach("new", None, None);
        router.detach("newer", None, None);
        assert_eq!(router.park_excess(), ["1"], "the least recently used idle thread");
        assert!(router.park_excess().is_empty());
        assert!(router.thread("1").unwrap().parked, "it is still open on this instance");
        router.forget("1");
        assert!(router.thread("1").is_none());
    }
}
