//! Which instance answers. At most so many run at once; each belongs to one agent; a thread stays where it is open.
//!
//! Every instance has one task that starts it, watches it and takes it off the list when it is gone. Whoever wants a
//! place and finds none waits in a line.

use super::{
    instance::{Instance, Lost},
    launch::Launch,
};
use crate::crashes::Crashes;
use domain::run::RunError;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, futures::Notified, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// With so many turns an instance is busy enough that a further thread gets another one, if there may be one.
pub const BUSY: usize = 8;
/// An instance that ended by itself before that was of no use.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// How long the last instance may take to end when the server stops.
const CLOSE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    launch: Box<dyn Launch>,
    limit: usize,
    idle: Duration,
    /// One for each program that runs, so that there are never more, not even while one makes room for another.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    /// By the agents' folders.
    crashes: Crashes<PathBuf>,
    changed: Notify,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    /// Who waits for an instance, first come first served.
    line: VecDeque<u64>,
    last_id: u64,
}

type Ready = watch::Receiver<Option<Result<Arc<Instance>, RunError>>>;

struct Slot {
    id: u64,
    home: PathBuf,
    ready: Ready,
    /// How many turns use it.
    active: watch::Sender<usize>,
    /// It takes no more turns; cancelled, it ends.
    leaving: CancellationToken,
}

impl Slot {
    fn instance(&self) -> Option<Arc<Instance>> {
        self.ready.borrow().as_ref().and_then(|ready| ready.clone().ok())
    }

    fn is_usable(&self) -> bool {
        !self.leaving.is_cancelled() && !self.instance().is_some_and(|instance| instance.is_lost())
    }

    fn holds(&self, thread: &str) -> bool {
        self.instance().is_some_and(|instance| instance.desk.thread(thread).is_some())
    }
}

/// A place in the line of those who wait.
pub struct Ticket {
    pool: Pool,
    id: u64,
}

/// A turn's place on an instance.
pub struct Lease {
    pool: Pool,
    slot: u64,
    ready: Ready,
    active: watch::Sender<usize>,
}

impl Pool {
    pub fn new(launch: Box<dyn Launch>, limit: usize, idle: Duration) -> Self {
        let limit = limit.max(1);
        Self(Arc::new(Inner {
            launch,
            limit,
            idle,
            permits: Arc::new(Semaphore::new(limit)),
            state: Mutex::default(),
            crashes: Crashes::new("Codex"),
            changed: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Cancelled when the server stops.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// To be made before looking whether there is a place, so that none is missed.
    pub fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    pub fn ticket(&self) -> Ticket {
        let mut state = self.state();
        state.last_id += 1;
        Ticket { pool: self.clone(), id: state.last_id }
    }

    /// A place for a turn of the agent in `home`, if there is one now. `thread` is what it wants to go on with.
    pub fn take(&self, ticket: &Ticket, home: &Path, thread: Option<&str>) -> Option<Lease> {
        if self.0.closing.is_cancelled() {
            return None;
        }
        let mut state = self.state();
        let own = |slot: &&Slot| slot.home == home && slot.is_usable();
        let load = |slot: &&Slot| *slot.active.borrow();
        let holder = thread.and_then(|thread| state.slots.iter().filter(own).find(|slot| slot.holds(thread)));
        let free = || state.slots.iter().filter(own).min_by_key(load).filter(|slot| load(slot) < BUSY);
        if let Some(slot) = holder.or_else(free) {
            let lease = self.lease(slot);
            state.line.retain(|waiting| *waiting != ticket.id);
            return Some(lease);
        }
        if state.line.front().is_some_and(|first| *first != ticket.id) {
            if !state.line.contains(&ticket.id) {
                state.line.push_back(ticket.id);
            }
            return None;
        }
        if state.slots.iter().filter(|slot| !slot.leaving.is_cancelled()).count() >= self.0.limit {
            // The first idle one is the one that is longest there.
            match state.slots.iter().find(|slot| slot.home != home && !slot.leaving.is_cancelled() && load(slot) == 0) {
                Some(idle) => idle.leaving.cancel(),
                None => {
                    if state.line.is_empty() {
                        state.line.push_back(ticket.id);
                    }
                    return None;
                }
            }
        }
        let slot = self.open(&mut state, home);
        let lease = self.lease(&slot);
        state.slots.push(slot);
        state.line.retain(|waiting| *waiting != ticket.id);
        drop(state);
        self.0.changed.notify_waiters();
        Some(lease)
    }

    /// Starts an instance for the agent in `home` if it has none and nobody has to make room for it.
    pub fn warm(&self, home: &Path) {
        let mut state = self.state();
        let has_one = state.slots.iter().any(|slot| slot.home == home && !slot.leaving.is_cancelled());
        if !has_one && state.slots.len() < self.0.limit && state.line.is_empty() && !self.0.closing.is_cancelled() {
            let slot = self.open(&mut state, home);
            state.slots.push(slot);
        }
    }

    /// Ends every instance. Returns when they are gone, or very long after they should be.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(CLOSE, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.0.tasks.len(), "not every Codex has ended");
        }
    }

    fn lease(&self, slot: &Slot) -> Lease {
        slot.active.send_modify(|active| *active += 1);
        Lease { pool: self.clone(), slot: slot.id, ready: slot.ready.clone(), active: slot.active.clone() }
    }

    fn open(&self, state: &mut State, home: &Path) -> Slot {
        state.last_id += 1;
        let (told, ready) = watch::channel(None);
        let slot = Slot {
            id: state.last_id,
            home: home.to_owned(),
            ready,
            active: watch::Sender::new(0),
            leaving: self.0.closing.child_token(),
        };
        let (leaving, active) = (slot.leaving.clone(), slot.active.subscribe());
        self.0.tasks.spawn(self.clone().life(slot.id, slot.home.clone(), told, leaving, active));
        slot
    }

    /// The life of one instance.
    async fn life(
        self,
        id: u64,
        home: PathBuf,
        told: watch::Sender<Option<Result<Arc<Instance>, RunError>>>,
        leaving: CancellationToken,
        mut active: watch::Receiver<usize>,
    ) {
        let started = tokio::select! {
            started = self.start(&home) => started,
            () = leaving.cancelled() => Err(RunError::new("program_crashed", "Codex was stopped before it had started.")),
        };
        let instance = match started {
            Ok(instance) => instance,
            Err(error) => {
                if !leaving.is_cancelled() {
                    self.0.crashes.failed(&home, &error);
                }
                self.remove(id);
                told.send_replace(Some(Err(error)));
                return;
            }
        };
        told.send_replace(Some(Ok(Arc::clone(&instance))));
        self.0.changed.notify_waiters();
        let started = Instant::now();
        tokio::select! {
            lost = instance.lost() => {
                if started.elapsed() < SHORT_LIFE {
                    self.0.crashes.failed(&home, &lost.error);
                } else {
                    self.0.crashes.succeeded(&home);
                }
            }
            () = self.unused(id, &mut active, &leaving) => {
                instance.end("Codex was stopped, because another agent needed its place or the server stops.").await;
                self.0.crashes.succeeded(&home);
            }
        }
        self.remove(id);
    }

    async fn start(&self, home: &PathBuf) -> Result<Arc<Instance>, RunError> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        let permit = permit.map_err(|_| RunError::new("program_crashed", "The server stops."))?;
        self.0.crashes.check(home)?;
        let launched = self.0.launch.launch(home).await?;
        Instance::start(launched, &self.0.tasks, permit).await
    }

    /// Comes back when the instance is to end: told to, or not used for long.
    async fn unused(&self, id: u64, active: &mut watch::Receiver<usize>, leaving: &CancellationToken) {
        loop {
            let is_idle = *active.borrow_and_update() == 0;
            tokio::select! {
                () = leaving.cancelled() => return,
                _ = active.changed() => {}
                () = tokio::time::sleep(self.0.idle), if is_idle => {
                    // Under the lock that a turn takes it with: nobody takes what has just been given up.
                    let state = self.state();
                    if let Some(slot) = state.slots.iter().find(|slot| slot.id == id && *slot.active.borrow() == 0) {
                        slot.leaving.cancel();
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

impl Lease {
    /// Waits until the instance has started.
    pub async fn instance(&self) -> Result<Arc<Instance>, RunError> {
        let mut ready = self.ready.clone();
        let told = ready.wait_for(Option::is_some).await.ok().and_then(|ready| ready.clone());
        told.unwrap_or_else(|| Err(RunError::new("program_crashed", "Codex could not be started: the server stops.")))
    }

    /// Gives the place back. If nobody else is on the instance, the next turn gets a new one.
    pub async fn discard(self) -> Option<Arc<Lost>> {
        let instance = {
            let state = self.pool.state();
            let slot = state.slots.iter().find(|slot| slot.id == self.slot)?;
            if *slot.active.borrow() > 1 {
                return None;
            }
            slot.leaving.cancel();
            slot.instance()?
        };
        Some(instance.lost().await)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.active.send_modify(|active| *active = active.saturating_sub(1));
        self.pool.0.changed.notify_waiters();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let before = state.line.len();
        state.line.retain(|waiting| *waiting != self.id);
        let left = state.line.len() != before;
        drop(state);
        if left {
            self.pool.0.changed.notify_waiters();
        }
    }
}
