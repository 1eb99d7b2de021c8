//! Chooses the instance for a turn. The number of instances is limited, each belongs to one agent, and a thread stays
//! on the instance where it is open.
//!
//! Every instance has one task that starts it, watches it and removes it when it has ended. A turn that finds no free
//! instance waits in a queue.

use super::{
    home::CodexHome,
    instance::{CodexInstance, InstanceEnd},
};
use crate::{crash_breaker::CrashBreaker, program::AgentProgram};
use domain::run::RunError;
use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, futures::Notified, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// With this many turns, an instance is busy: further threads get another instance if the limit allows it.
pub const BUSY_TURNS: usize = 8;
/// An instance that exits before this counts as crashed.
const MIN_LIFETIME: Duration = Duration::from_secs(10);
/// How long the instances may take to stop when the server shuts down.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct CodexPool(Arc<CodexPoolInner>);

struct CodexPoolInner {
    program: AgentProgram,
    limit: usize,
    idle: Duration,
    /// One permit per running program, so that the limit also holds while one instance replaces another.
    permits: Arc<Semaphore>,
    state: Mutex<CodexPoolState>,
    /// Keyed by the agents' home folders.
    crash_breaker: CrashBreaker<PathBuf>,
    changed: Notify,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl std::fmt::Debug for CodexPoolInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct CodexPoolState {
    slots: Vec<InstanceSlot>,
    /// The tickets that wait for an instance, first come, first served.
    queue: VecDeque<u64>,
    last_id: u64,
}

type InstanceReady = watch::Receiver<Option<Result<Arc<CodexInstance>, RunError>>>;

struct InstanceSlot {
    id: u64,
    home: CodexHome,
    ready: InstanceReady,
    /// The number of turns that use it.
    active: watch::Sender<usize>,
    /// When cancelled, the instance takes no more turns and stops.
    retired: CancellationToken,
}

impl InstanceSlot {
    fn instance(&self) -> Option<Arc<CodexInstance>> {
        self.ready.borrow().as_ref().and_then(|ready| ready.clone().ok())
    }

    fn is_usable(&self) -> bool {
        !self.retired.is_cancelled() && !self.instance().is_some_and(|instance| instance.has_ended())
    }

    fn holds(&self, thread: &str) -> bool {
        self.instance().is_some_and(|instance| instance.router.thread(thread).is_some())
    }
}

/// A position in the queue.
pub struct InstanceTicket {
    pool: CodexPool,
    id: u64,
}

/// The right of a turn to use an instance.
pub struct InstanceLease {
    pool: CodexPool,
    slot: u64,
    ready: InstanceReady,
    active: watch::Sender<usize>,
}

impl CodexPool {
    pub fn new(program: AgentProgram, limit: usize, idle: Duration) -> Self {
        let limit = limit.max(1);
        Self(Arc::new(CodexPoolInner {
            program,
            limit,
            idle,
            permits: Arc::new(Semaphore::new(limit)),
            state: Mutex::default(),
            crash_breaker: CrashBreaker::new("Codex"),
            changed: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, CodexPoolState> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Cancelled when the server shuts down.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Create this before calling `try_lease`, so that no change is missed.
    pub fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    pub fn ticket(&self) -> InstanceTicket {
        let mut state = self.state();
        state.last_id += 1;
        InstanceTicket { pool: self.clone(), id: state.last_id }
    }

    /// Returns a lease for a turn of the agent with this home folder, if an instance is free. `thread` is the thread to
    /// continue.
    pub fn try_lease(&self, ticket: &InstanceTicket, home: &CodexHome, thread: Option<&str>) -> Option<InstanceLease> {
        if self.0.closing.is_cancelled() {
            return None;
        }
        let mut state = self.state();
        let own = |slot: &&InstanceSlot| slot.home == *home && slot.is_usable();
        let load = |slot: &&InstanceSlot| *slot.active.borrow();
        let holder = thread.and_then(|thread| state.slots.iter().filter(own).find(|slot| slot.holds(thread)));
        let free = || state.slots.iter().filter(own).min_by_key(load).filter(|slot| load(slot) < BUSY_TURNS);
        if let Some(slot) = holder.or_else(free) {
            let lease = self.lease(slot);
            state.queue.retain(|waiting| *waiting != ticket.id);
            return Some(lease);
        }
        if state.queue.front().is_some_and(|first| *first != ticket.id) {
            if !state.queue.contains(&ticket.id) {
                state.queue.push_back(ticket.id);
            }
            return None;
        }
        if state.slots.iter().filter(|slot| !slot.retired.is_cancelled()).count() >= self.0.limit {
            // The first idle instance is the oldest.
            match state.slots.iter().find(|slot| slot.home != *home && !slot.retired.is_cancelled() && load(slot) == 0)
            {
                Some(idle) => idle.retired.cancel(),
                None => {
                    if state.queue.is_empty() {
                        state.queue.push_back(ticket.id);
                    }
                    return None;
                }
            }
        }
        let slot = self.spawn_instance(&mut state, home);
        let lease = self.lease(&slot);
        state.slots.push(slot);
        state.queue.retain(|waiting| *waiting != ticket.id);
        drop(state);
        self.0.changed.notify_waiters();
        Some(lease)
    }

    /// Starts an instance for the agent with this home folder, if it has none and there is free capacity.
    pub fn warm(&self, home: &CodexHome) {
        let mut state = self.state();
        let has_one = state.slots.iter().any(|slot| slot.home == *home && !slot.retired.is_cancelled());
        if !has_one && state.slots.len() < self.0.limit && state.queue.is_empty() && !self.0.closing.is_cancelled() {
            let slot = self.spawn_instance(&mut state, home);
            state.slots.push(slot);
        }
    }

    /// Stops all instances. Returns when they have exited, or after a timeout.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.0.tasks.len(), "some Codex processes are still running");
        }
    }

    fn lease(&self, slot: &InstanceSlot) -> InstanceLease {
        slot.active.send_modify(|active| *active += 1);
        InstanceLease { pool: self.clone(), slot: slot.id, ready: slot.ready.clone(), active: slot.active.clone() }
    }

    fn spawn_instance(&self, state: &mut CodexPoolState, home: &CodexHome) -> InstanceSlot {
        state.last_id += 1;
        let (started, ready) = watch::channel(None);
        let slot = InstanceSlot {
            id: state.last_id,
            home: home.clone(),
            ready,
            active: watch::Sender::new(0),
            retired: self.0.closing.child_token(),
        };
        let (leaving, active) = (slot.retired.clone(), slot.active.subscribe());
        self.0.tasks.spawn(self.clone().run_instance(slot.id, slot.home.clone(), started, leaving, active));
        slot
    }

    /// Starts one instance, watches it and removes it when it has ended.
    async fn run_instance(
        self,
        id: u64,
        home: CodexHome,
        ready: watch::Sender<Option<Result<Arc<CodexInstance>, RunError>>>,
        retired: CancellationToken,
        mut active: watch::Receiver<usize>,
    ) {
        let started = tokio::select! {
            started = self.start(&home) => started,
            () = retired.cancelled() => Err(RunError::new("program_crashed", "Codex was stopped before it had started.")),
        };
        let instance = match started {
            Ok(instance) => instance,
            Err(error) => {
                if !retired.is_cancelled() {
                    self.0.crash_breaker.record_failure(&home.folder, &error);
                }
                self.remove(id);
                ready.send_replace(Some(Err(error)));
                return;
            }
        };
        ready.send_replace(Some(Ok(Arc::clone(&instance))));
        self.0.changed.notify_waiters();
        let started = Instant::now();
        tokio::select! {
            lost = instance.wait_for_end() => {
                if started.elapsed() < MIN_LIFETIME {
                    self.0.crash_breaker.record_failure(&home.folder, &lost.error);
                } else {
                    self.0.crash_breaker.record_success(&home.folder);
                }
            }
            () = self.until_retired(id, &mut active, &retired) => {
                instance.stop_with("Codex was stopped because another agent needed its slot or the server is shutting down.").await;
                self.0.crash_breaker.record_success(&home.folder);
            }
        }
        self.remove(id);
    }

    async fn start(&self, home: &CodexHome) -> Result<Arc<CodexInstance>, RunError> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        let permit = permit.map_err(|_| RunError::new("program_crashed", "The server is shutting down."))?;
        self.0.crash_breaker.check(&home.folder)?;
        CodexInstance::start(&self.0.program, home, &self.0.tasks, permit).await
    }

    /// Returns when the instance should stop: it was retired, or was idle for too long.
    async fn until_retired(&self, id: u64, active: &mut watch::Receiver<usize>, leaving: &CancellationToken) {
        loop {
            let is_idle = *active.borrow_and_update() == 0;
            tokio::select! {
                () = leaving.cancelled() => return,
                _ = active.changed() => {}
                () = tokio::time::sleep(self.0.idle), if is_idle => {
                    // Holds the lock that `try_lease` uses, so that no turn gets an instance that is being retired.
                    let state = self.state();
                    if let Some(slot) = state.slots.iter().find(|slot| slot.id == id && *slot.active.borrow() == 0) {
                        slot.retired.cancel();
                    }
                }
            }
        }
    }

    fn remove(&self, id: u64) {
        self.state().slots.retain(|slot| slot.id != id);
        self.0.changed.notify_waiters();
    }
}

impl InstanceLease {
    /// Waits until the instance has started.
    pub async fn instance(&self) -> Result<Arc<CodexInstance>, RunError> {
        let mut ready = self.ready.clone();
        let result = ready.wait_for(Option::is_some).await.ok().and_then(|ready| ready.clone());
        result.unwrap_or_else(|| {
            Err(RunError::new("program_crashed", "Codex could not start: the server is shutting down."))
        })
    }

    /// Releases the lease. If no other turn uses the instance, it is stopped and the next turn gets a new one.
    pub async fn discard(self) -> Option<Arc<InstanceEnd>> {
        let instance = {
            let state = self.pool.state();
            let slot = state.slots.iter().find(|slot| slot.id == self.slot)?;
            if *slot.active.borrow() > 1 {
                return None;
            }
            slot.retired.cancel();
            slot.instance()?
        };
        Some(instance.wait_for_end().await)
    }
}

impl Drop for InstanceLease {
    fn drop(&mut self) {
        self.active.send_modify(|active| *active = active.saturating_sub(1));
        self.pool.0.changed.notify_waiters();
    }
}

impl Drop for InstanceTicket {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let before = state.queue.len();
        state.queue.retain(|waiting| *waiting != self.id);
        let was_queued = state.queue.len() != before;
        drop(state);
        if was_queued {
            self.pool.0.changed.notify_waiters();
        }
    }
}
