//! A bounded pool of processes that stay alive between turns.
//!
//! Each process has a key and at most one holder. A process that is put back stays idle for the next holder of its key,
//! until its idle timeout, or until another key needs the slot: then an idle process is evicted. When all slots are held,
//! callers are queued. Dropping a slot frees it.
//!
//! Workspaces share the slots (invariant 28). Once a second one has asked for a slot, one of them holds at most three quarters of
//! the slots, callers of the one that holds the fewest come first, and idle processes of a workspace that has more than its part are evicted first:
//! its idle processes never push out those of another.
//!
//! A turn may wait for a turn that it started, which needs a process too. Each level of such a tree therefore adds as many
//! slots: the deepest turns wait for nobody, so they always get one in the end.

use crate::AgentWorkspace;
use domain::{
    ids::{AgentId, RoomId},
    owner::Owner,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::Future,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// A process in the pool. Dropping it must kill it.
pub trait PooledProcess: Send + 'static {
    /// Shuts the process down gracefully, within a bounded time.
    fn shut_down(self) -> impl Future<Output = ()> + Send;
}

pub trait PoolKey: Eq + Hash + Clone + Send + 'static {
    /// Whether both keys belong to one workspace.
    fn is_of_same_workspace(&self, other: &Self) -> bool;

    /// How far below the first turn of its tree the turn is that asks for the slot.
    fn depth(&self) -> u32 {
        0
    }
}

/// The key of an agent's conversation in a room, for programs that serve one each.
#[derive(Clone, Debug)]
pub struct ConversationKey {
    workspace: Owner,
    room: RoomId,
    agent: AgentId,
    /// Of the turn that asks; not a part of the conversation.
    depth: u32,
}

impl ConversationKey {
    pub fn of(workspace: &AgentWorkspace) -> Self {
        let AgentWorkspace { owner, room_id, agent, depth, .. } = workspace;
        Self { workspace: owner.clone(), room: *room_id, agent: agent.id, depth: *depth }
    }

    fn conversation(&self) -> (&Owner, RoomId, AgentId) {
        (&self.workspace, self.room, self.agent)
    }
}

impl PartialEq for ConversationKey {
    fn eq(&self, other: &Self) -> bool {
        self.conversation() == other.conversation()
    }
}

impl Eq for ConversationKey {}

impl Hash for ConversationKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.conversation().hash(state);
    }
}

impl PoolKey for ConversationKey {
    fn is_of_same_workspace(&self, other: &Self) -> bool {
        self.workspace == other.workspace
    }

    fn depth(&self) -> u32 {
        self.depth
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolLimits {
    /// The maximum number of processes, held and idle.
    pub slots: usize,
    /// How long an idle process is kept for the next holder of its key.
    pub idle_timeout: Duration,
    /// How many processes may be started before they are requested.
    pub spares: usize,
}

pub struct ProcessPool<K: PoolKey, P: PooledProcess>(Arc<PoolShared<K, P>>);

/// The result of requesting a slot.
pub enum SlotRequest<K: PoolKey, P: PooledProcess> {
    Granted(PoolSlot<K, P>),
    Queued(SlotWait<K, P>),
}

/// A place in the queue for a slot.
pub struct SlotWait<K: PoolKey, P: PooledProcess> {
    slot: oneshot::Receiver<PoolSlot<K, P>>,
    /// Whether the pool is full; otherwise another holder has the same key.
    pub is_full: bool,
}

/// The right to run one process under a key.
pub struct PoolSlot<K: PoolKey, P: PooledProcess> {
    shared: Arc<PoolShared<K, P>>,
    /// `None` once the slot was put back.
    key: Option<K>,
    /// The idle process that was kept for this key.
    process: Option<P>,
    /// The idle process that has to end to free this slot.
    evicted: Option<P>,
    is_spare: bool,
}

struct PoolShared<K: PoolKey, P: PooledProcess> {
    limits: PoolLimits,
    state: Mutex<PoolState<K, P>>,
    /// Wakes the sweeper when a process becomes idle.
    sweeper_wake: Arc<Notify>,
}

struct PoolState<K: PoolKey, P: PooledProcess> {
    held: HashSet<K>,
    /// Slots held by spares that are being started.
    held_spares: usize,
    idle: HashMap<K, IdleProcess<P>>,
    waiting: VecDeque<(K, oneshot::Sender<PoolSlot<K, P>>)>,
    /// The first key that asked for a slot, and whether one of another workspace has asked since.
    first_key: Option<K>,
    is_shared: bool,
    closed: bool,
    /// The task that ends processes after their idle timeout.
    sweeper: JoinSet<()>,
}

struct IdleProcess<P> {
    process: P,
    since: Instant,
    is_spare: bool,
}

impl<K: PoolKey, P: PooledProcess> ProcessPool<K, P> {
    pub fn new(limits: PoolLimits) -> Self {
        let limits = PoolLimits { slots: limits.slots.max(1), ..limits };
        let state = PoolState {
            held: HashSet::new(),
            held_spares: 0,
            idle: HashMap::new(),
            waiting: VecDeque::new(),
            first_key: None,
            is_shared: false,
            closed: false,
            sweeper: JoinSet::new(),
        };
        Self(Arc::new(PoolShared { limits, state: Mutex::new(state), sweeper_wake: Arc::new(Notify::new()) }))
    }

    pub fn limits(&self) -> PoolLimits {
        self.0.limits
    }

    /// Requests the slot of a key. `None` if the pool is closed.
    pub fn acquire(&self, key: K) -> Option<SlotRequest<K, P>> {
        let mut state = self.0.lock();
        if state.closed {
            return None;
        }
        // Nobody is overtaken: a slot stays free while others wait only if none of them can use it.
        if let Some(slot) = self.0.grant(&mut state, &key) {
            return Some(SlotRequest::Granted(slot));
        }
        let is_full = !state.held.contains(&key);
        let (sender, slot) = oneshot::channel();
        state.waiting.push_back((key, sender));
        Some(SlotRequest::Queued(SlotWait { slot, is_full }))
    }

    /// Returns a slot for a process that is started before it is requested: only if the key has none, a slot is free,
    /// nobody waits, and the limit of spares is not reached.
    pub fn acquire_spare(&self, key: K) -> Option<PoolSlot<K, P>> {
        let mut state = self.0.lock();
        state.drop_closed_waiters();
        let spares = state.held_spares + state.idle.values().filter(|idle| idle.is_spare).count();
        let taken = state.held.contains(&key) || state.idle.contains_key(&key);
        let full = state.held.len() + state.idle.len() >= self.0.limits.slots;
        if state.closed || taken || full || !state.waiting.is_empty() || spares >= self.0.limits.spares {
            return None;
        }
        state.held.insert(key.clone());
        state.held_spares += 1;
        Some(PoolSlot { shared: Arc::clone(&self.0), key: Some(key), process: None, evicted: None, is_spare: true })
    }

    /// Grants no more slots; returns when all idle processes have ended. Held processes end when they are put back.
    pub async fn close(&self) {
        let (waiting, idle) = {
            let mut state = self.0.lock();
            state.closed = true;
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.idle))
        };
        drop(waiting);
        let mut ending = JoinSet::new();
        for idle in idle.into_values() {
            ending.spawn(idle.process.shut_down());
        }
        while ending.join_next().await.is_some() {}
    }
}

impl<K: PoolKey, P: PooledProcess> SlotWait<K, P> {
    /// Waits for the slot. `None` if the pool was closed meanwhile.
    pub async fn slot(self) -> Option<PoolSlot<K, P>> {
        self.slot.await.ok()
    }
}

impl<K: PoolKey, P: PooledProcess> PoolSlot<K, P> {
    /// Returns the idle process that was kept for this key, after the evicted process has ended.
    pub async fn take_process(&mut self) -> Option<P> {
        if let Some(evicted) = self.evicted.take() {
            evicted.shut_down().await;
        }
        self.process.take()
    }

    /// Puts a process back into the pool for the next holder of its key.
    pub async fn put_back(mut self, process: P) {
        let Some(key) = self.key.take() else { return };
        let refused = {
            let mut state = self.shared.lock();
            state.release(&key, self.is_spare);
            if state.closed {
                Some(process)
            } else {
                let idle = IdleProcess { process, since: Instant::now(), is_spare: self.is_spare };
                state.idle.insert(key, idle);
                if state.sweeper.is_empty() {
                    let (shared, wake) = (Arc::downgrade(&self.shared), Arc::clone(&self.shared.sweeper_wake));
                    state.sweeper.spawn(sweep(shared, wake));
                }
                None
            }
        };
        match refused {
            Some(process) => process.shut_down().await,
            None => self.shared.sweeper_wake.notify_one(),
        }
        self.shared.serve();
    }
}

impl<K: PoolKey, P: PooledProcess> Drop for PoolSlot<K, P> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            // The processes end before the slot is free.
            drop((self.process.take(), self.evicted.take()));
            self.shared.lock().release(&key, self.is_spare);
            self.shared.serve();
        }
    }
}

impl<K: PoolKey, P: PooledProcess> PoolShared<K, P> {
    fn lock(&self) -> MutexGuard<'_, PoolState<K, P>> {
        // Nothing under this lock calls foreign code, so a panic cannot leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grant(self: &Arc<Self>, state: &mut PoolState<K, P>, key: &K) -> Option<PoolSlot<K, P>> {
        let is_shared = state.note_workspace(key);
        let slots = self.slots_for(key);
        if is_shared && state.held_by_workspace_of(key) >= slots - slots / 4 {
            return None;
        }
        self.take(state, key)
    }

    /// How many processes there may be, with one for this key.
    fn slots_for(&self, key: &K) -> usize {
        self.limits.slots.saturating_mul(key.depth() as usize + 1)
    }

    /// Takes the slot of a key, whatever its workspace holds.
    fn take(self: &Arc<Self>, state: &mut PoolState<K, P>, key: &K) -> Option<PoolSlot<K, P>> {
        if state.held.contains(key) {
            return None;
        }
        let process = state.idle.remove(key).map(|idle| idle.process);
        let mut evicted = None;
        let slots = self.slots_for(key);
        if process.is_none() && state.held.len() + state.idle.len() >= slots {
            let victim = state.victim_for(key, slots)?;
            evicted = state.idle.remove(&victim).map(|idle| idle.process);
        }
        state.held.insert(key.clone());
        let shared = Arc::clone(self);
        Some(PoolSlot { shared, key: Some(key.clone()), process, evicted, is_spare: false })
    }

    /// Grants free slots to the callers whose workspace holds the fewest, and of these to the one that has waited longest.
    fn serve(self: &Arc<Self>) {
        loop {
            let unwanted = {
                let mut state = self.lock();
                state.drop_closed_waiters();
                let mut order: Vec<(usize, usize)> = state
                    .waiting
                    .iter()
                    .enumerate()
                    .map(|(at, (key, _))| (state.held_by_workspace_of(key), at))
                    .collect();
                order.sort_unstable();
                let Some((at, slot)) = order.into_iter().find_map(|(_, at)| {
                    let key = state.waiting[at].0.clone();
                    self.grant(&mut state, &key).map(|slot| (at, slot))
                }) else {
                    return;
                };
                let Some((_, sender)) = state.waiting.remove(at) else { return };
                sender.send(slot)
            };
            // The caller stopped waiting just now. Dropped outside of the lock, because freeing the slot takes it.
            drop(unwanted);
        }
    }

    /// Takes the slots of processes past their idle timeout, and returns when the next timeout is.
    fn expired(self: &Arc<Self>) -> (Vec<PoolSlot<K, P>>, Option<Instant>) {
        let mut state = self.lock();
        let now = Instant::now();
        let due: Vec<K> = state
            .idle
            .iter()
            .filter(|(_, idle)| idle.since + self.limits.idle_timeout <= now)
            .map(|(key, _)| key.clone())
            .collect();
        let slots = due.iter().filter_map(|key| self.take(&mut state, key)).collect();
        let next = state.idle.values().map(|idle| idle.since + self.limits.idle_timeout).min();
        (slots, next)
    }
}

impl<K: PoolKey, P: PooledProcess> PoolState<K, P> {
    fn release(&mut self, key: &K, is_spare: bool) {
        self.held.remove(key);
        if is_spare {
            self.held_spares = self.held_spares.saturating_sub(1);
        }
    }

    /// Returns whether more than one workspace has asked for a slot so far.
    fn note_workspace(&mut self, key: &K) -> bool {
        let first = self.first_key.get_or_insert_with(|| key.clone());
        self.is_shared |= !first.is_of_same_workspace(key);
        self.is_shared
    }

    fn held_by_workspace_of(&self, key: &K) -> usize {
        self.held.iter().filter(|held| held.is_of_same_workspace(key)).count()
    }

    /// The idle process that ends so that a key gets a slot: the longest idle one of the workspaces that have more than
    /// their part of the slots; else one of the same workspace; else any, because a turn goes before an idle process.
    fn victim_for(&self, key: &K, slots: usize) -> Option<K> {
        let in_use = || self.held.iter().chain(self.idle.keys());
        let mut workspaces = vec![key];
        for other in in_use() {
            if !workspaces.iter().any(|known| known.is_of_same_workspace(other)) {
                workspaces.push(other);
            }
        }
        let part = slots / workspaces.len();
        let has_more = |of: &K| in_use().filter(|other| other.is_of_same_workspace(of)).count() > part;
        let rank = |idle: &K| (!has_more(idle), !idle.is_of_same_workspace(key));
        self.idle.iter().min_by_key(|(other, idle)| (rank(other), idle.since)).map(|(other, _)| other.clone())
    }

    /// No idle process is to be evicted for a caller that no longer waits.
    fn drop_closed_waiters(&mut self) {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
    }
}

async fn sweep<K: PoolKey, P: PooledProcess>(shared: Weak<PoolShared<K, P>>, wake: Arc<Notify>) {
    loop {
        let Some((expired, next)) = shared.upgrade().map(|shared| shared.expired()) else { return };
        for mut slot in expired {
            if let Some(process) = slot.take_process().await {
                process.shut_down().await;
            }
        }
        tokio::select! {
            () = wake.notified() => {}
            () = until(next) => {}
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl<K: PoolKey, P: PooledProcess> std::fmt::Debug for ProcessPool<K, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        let (held, idle, waiting) = (state.held.len(), state.idle.len(), state.waiting.len());
        f.debug_struct("ProcessPool").field("held", &held).field("idle", &idle).field("waiting", &waiting).finish()
    }
}

#[cfg(test)]
mod tests;
