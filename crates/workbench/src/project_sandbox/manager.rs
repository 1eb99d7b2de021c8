//! Opens sandboxes, keeps each while it is used, and stops it when it is idle, when others need its place, or with the
//! server.

use super::{GuestPort, HOMES, SandboxKey, SandboxLease, SandboxSpec, guest_ports, handover};
use domain::project::{ProjectCeilings, ProjectSpace};
use sandbox::{BindMount, Isolation, ProjectSandbox, SandboxDriver, SandboxError, SandboxLimits, SandboxPolicy};
use std::{
    collections::HashMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// A sandbox opens within milliseconds; this allows for an overloaded machine, and for another one that has to stop first.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long stopped sandboxes may take to end when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_SCAN_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum SandboxManagerError {
    #[error("cannot open a sandbox: {0}")]
    Open(#[from] SandboxError),
    #[error("cannot prepare the folder {} for a sandbox: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("all {0} sandboxes of this server are in use; wait for a run to end, or raise sandbox.max_open")]
    Full(usize),
    #[error("the sandbox did not open within {} s; the machine may be overloaded", OPEN_TIMEOUT.as_secs())]
    Timeout,
    #[error("the server is stopping")]
    Closing,
}

pub struct SandboxManagerSettings {
    /// What every sandbox has besides the system's programs.
    pub programs: Vec<BindMount>,
    /// The user that sandboxes run as, if it is not the server's. Their folders are given to it.
    pub host_user: Option<u32>,
    /// A sandbox that nobody has used for this long is stopped, with everything that still runs in it.
    pub idle_timeout: Duration,
    /// How many may be open.
    pub max_open: usize,
    /// The data folder, as an absolute path: home folders are in it, and what is in it may be given to the user of the
    /// sandboxes.
    pub data: PathBuf,
    /// The server's limits of one project.
    pub ceilings: ProjectCeilings,
}

/// All sandboxes of a server. Cheap to clone. Close it before the runtime ends.
#[derive(Clone)]
pub struct SandboxManager(Arc<ManagerInner>);

struct ManagerInner {
    driver: Arc<dyn SandboxDriver>,
    isolation: Isolation,
    settings: SandboxManagerSettings,
    /// They may lead to what holds this manager: dropped by `close`.
    ports: Mutex<Vec<GuestPort>>,
    slots: Mutex<Slots>,
    places: Arc<Semaphore>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<SandboxKey, Arc<SandboxSlot>>,
    /// Whether the task that stops idle sandboxes runs.
    has_idle_task: bool,
}

/// The place of one sandbox, open or not.
pub(super) struct SandboxSlot {
    /// Locked while the sandbox is being opened: others wait for it instead of opening a second one.
    opened: AsyncMutex<Option<OpenedSandbox>>,
    leases: AtomicUsize,
    last_used: Mutex<Instant>,
}

struct OpenedSandbox {
    sandbox: Arc<dyn ProjectSandbox>,
    spec: Arc<SandboxSpec>,
    _ports: DropGuard,
    _place: OwnedSemaphorePermit,
}

impl SandboxSlot {
    fn new() -> Self {
        Self { opened: AsyncMutex::new(None), leases: AtomicUsize::new(0), last_used: Mutex::new(Instant::now()) }
    }

    pub(super) fn add_lease(&self) {
        self.leases.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn remove_lease(&self) {
        *lock(&self.last_used) = Instant::now();
        self.leases.fetch_sub(1, Ordering::SeqCst);
    }

    fn leases(&self) -> usize {
        self.leases.load(Ordering::SeqCst)
    }

    fn last_used(&self) -> Instant {
        *lock(&self.last_used)
    }
}

/// Counts a lease until it is turned into one.
struct PendingLease(Option<Arc<SandboxSlot>>);

impl PendingLease {
    fn into_lease(mut self, opened: &OpenedSandbox) -> Option<SandboxLease> {
        let slot = self.0.take()?;
        Some(SandboxLease::new(slot, Arc::clone(&opened.sandbox), Arc::clone(&opened.spec)))
    }
}

impl Drop for PendingLease {
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            slot.remove_lease();
        }
    }
}

impl SandboxManager {
    /// `isolation` is what the trial run of the driver found.
    pub fn new(driver: Arc<dyn SandboxDriver>, isolation: Isolation, settings: SandboxManagerSettings) -> Self {
        let places = Arc::new(Semaphore::new(settings.max_open.clamp(1, Semaphore::MAX_PERMITS)));
        Self(Arc::new(ManagerInner {
            driver,
            isolation,
            settings,
            ports: Mutex::default(),
            slots: Mutex::default(),
            places,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// What sandboxes of this server enforce.
    pub fn isolation(&self) -> &Isolation {
        &self.0.isolation
    }

    /// The ports that every sandbox has from the start. Called before the first sandbox opens: what answers them is built
    /// after the manager.
    pub fn set_ports(&self, ports: Vec<GuestPort>) {
        *lock(&self.0.ports) = ports;
    }

    /// The sandbox of a space, as this server opens it: the same for agents' programs and for commands.
    pub fn spec(&self, space: &ProjectSpace) -> SandboxSpec {
        let SandboxManagerSettings { data, ceilings, .. } = &self.0.settings;
        let key = SandboxKey::from(space.key);
        let home = data.join(HOMES).join(key.as_str());
        let (limits, usual) = (ceilings.with(&space.settings.limits), SandboxLimits::default());
        SandboxSpec {
            owns_workspace: space.folder.starts_with(data),
            limits: SandboxLimits {
                process_memory_bytes: usual.process_memory_bytes.min(limits.memory_bytes),
                total_memory_bytes: limits.memory_bytes,
                processes: limits.processes,
                ..usual
            },
            allowed_hosts: space.settings.network.allow.iter().map(ToString::to_string).collect(),
            ..SandboxSpec::new(key, &space.folder, home)
        }
    }

    /// Returns the sandbox with this key, and opens it first if it is not open. One that was opened with other settings is
    /// opened again, unless somebody uses it.
    pub async fn open(&self, spec: &SandboxSpec) -> Result<SandboxLease, SandboxManagerError> {
        timeout(OPEN_TIMEOUT, self.open_slot(spec)).await.unwrap_or(Err(SandboxManagerError::Timeout))
    }

    async fn open_slot(&self, spec: &SandboxSpec) -> Result<SandboxLease, SandboxManagerError> {
        loop {
            let slot = self.slot(&spec.key)?;
            let lease = PendingLease(Some(Arc::clone(&slot)));
            let mut opened = slot.opened.lock().await;
            // It was stopped while this waited, and another may have taken its key.
            if !self.is_current(&spec.key, &slot) {
                continue;
            }
            let is_usable =
                |open: &OpenedSandbox| !open.sandbox.has_ended() && (*open.spec == *spec || slot.leases() > 1);
            if opened.as_ref().is_none_or(|open| !is_usable(open)) {
                if let Some(old) = opened.take() {
                    stop(old).await;
                }
                *opened = Some(self.start_sandbox(spec).await?);
            }
            if let Some(lease) = opened.as_ref().and_then(|opened| lease.into_lease(opened)) {
                return Ok(lease);
            }
        }
    }

    fn slot(&self, key: &SandboxKey) -> Result<Arc<SandboxSlot>, SandboxManagerError> {
        let mut slots = self.0.slots();
        if self.0.closing.is_cancelled() {
            return Err(SandboxManagerError::Closing);
        }
        if !std::mem::replace(&mut slots.has_idle_task, true) {
            self.0.tasks.spawn(stop_idle(Arc::downgrade(&self.0), self.0.closing.clone()));
        }
        let slot = slots.by_key.entry(key.clone()).or_insert_with(|| Arc::new(SandboxSlot::new()));
        // Counted before the lock of the map is released, so that nobody finds the slot idle.
        slot.add_lease();
        Ok(Arc::clone(slot))
    }

    fn is_current(&self, key: &SandboxKey, slot: &Arc<SandboxSlot>) -> bool {
        self.0.slots().by_key.get(key).is_some_and(|current| Arc::ptr_eq(current, slot))
    }

    async fn start_sandbox(&self, spec: &SandboxSpec) -> Result<OpenedSandbox, SandboxManagerError> {
        let place = self.place().await?;
        self.create_home(&spec.home).await?;
        // Once: what is written there later gets the owner of the folder (`crate::files::Root`).
        if spec.owns_workspace {
            self.hand_over(&spec.workspace).await?;
        }
        self.hand_over(&spec.home).await?;
        let policy = SandboxPolicy {
            workspace: spec.workspace.clone(),
            home: Some(spec.home.clone()),
            // One that was removed meanwhile is missing, and the others still work.
            programs: self.0.settings.programs.iter().filter(|mount| mount.source.exists()).cloned().collect(),
            limits: spec.limits,
        };
        let sandbox = self.0.driver.start_sandbox(policy).await?;
        let (spec, closed) = (Arc::new(spec.clone()), CancellationToken::new());
        let ports_guard = closed.clone().drop_guard();
        let ports = lock(&self.0.ports).clone();
        guest_ports::open(&ports, &*sandbox, &spec, &self.0.tasks, &closed).await?;
        tracing::debug!(sandbox = %spec.key, "started a sandbox");
        Ok(OpenedSandbox { sandbox, spec, _ports: ports_guard, _place: place })
    }

    /// If all places are taken, the sandbox that was not used for the longest time is stopped.
    async fn place(&self) -> Result<OwnedSemaphorePermit, SandboxManagerError> {
        loop {
            if let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() {
                return Ok(place);
            }
            let Some(idlest) = self.0.take_idlest() else {
                return Err(SandboxManagerError::Full(self.0.settings.max_open));
            };
            stop_slot(&idlest).await;
        }
    }

    /// Gives a folder and what is in it to the user of the sandboxes, if that is not the server's.
    async fn hand_over(&self, folder: &Path) -> Result<(), SandboxManagerError> {
        let Some(user) = self.0.settings.host_user else { return Ok(()) };
        let path = folder.to_path_buf();
        let done = tokio::task::spawn_blocking(move || handover::hand_over(&path, user)).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| SandboxManagerError::Folder { folder: folder.to_path_buf(), source })
    }

    async fn create_home(&self, home: &Path) -> Result<(), SandboxManagerError> {
        let path = home.to_path_buf();
        let create = move || DirBuilder::new().recursive(true).mode(0o700).create(path);
        let done = tokio::task::spawn_blocking(create).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| SandboxManagerError::Folder { folder: home.to_path_buf(), source })
    }

    /// Returns the sandbox with this key, if it is open.
    pub async fn find(&self, key: &SandboxKey) -> Option<SandboxLease> {
        let slot = {
            let slots = self.0.slots();
            let slot = slots.by_key.get(key)?;
            // Counted before the lock of the map is released, so that nobody finds the slot idle.
            slot.add_lease();
            Arc::clone(slot)
        };
        let lease = PendingLease(Some(Arc::clone(&slot)));
        // Waits while it is being opened, which has a deadline of its own.
        let opened = slot.opened.lock().await;
        opened.as_ref().filter(|opened| !opened.sandbox.has_ended()).and_then(|opened| lease.into_lease(opened))
    }

    /// The keys of the open sandboxes.
    pub fn open_keys(&self) -> Vec<SandboxKey> {
        let slots = self.0.slots();
        let is_open = |slot: &SandboxSlot| slot.opened.try_lock().is_ok_and(|opened| opened.is_some());
        slots.by_key.iter().filter(|(_, slot)| is_open(slot)).map(|(key, _)| key.clone()).collect()
    }

    /// Stops a sandbox and kills everything in it, even if it is used. The next use opens it again; its files stay.
    pub async fn stop(&self, key: &SandboxKey) {
        let slot = self.0.slots().by_key.remove(key);
        if let Some(slot) = slot {
            stop_slot(&slot).await;
        }
    }

    /// Stops all sandboxes. None is opened from now on.
    pub async fn close(&self) {
        let slots: Vec<Arc<SandboxSlot>> = {
            let mut slots = self.0.slots();
            self.0.closing.cancel();
            slots.by_key.drain().map(|(_, slot)| slot).collect()
        };
        let stopped = async {
            futures_util::future::join_all(slots.iter().map(|slot| stop_slot(slot))).await;
            self.0.tasks.close();
            self.0.tasks.wait().await;
        };
        if timeout(CLOSE_TIMEOUT, stopped).await.is_err() {
            tracing::warn!("some sandboxes have not ended yet; they end with this process");
        }
        lock(&self.0.ports).clear();
    }
}

impl ManagerInner {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        lock(&self.slots)
    }

    fn take_idlest(&self) -> Option<Arc<SandboxSlot>> {
        let mut slots = self.slots();
        let unused = slots.by_key.iter().filter(|(_, slot)| slot.leases() == 0);
        let key = unused.min_by_key(|(_, slot)| slot.last_used())?.0.clone();
        slots.by_key.remove(&key)
    }

    fn take_idle(&self, now: Instant) -> Vec<Arc<SandboxSlot>> {
        let is_idle = |slot: &SandboxSlot| {
            slot.leases() == 0 && now.saturating_duration_since(slot.last_used()) >= self.settings.idle_timeout
        };
        self.slots().by_key.extract_if(|_, slot| is_idle(slot)).map(|(_, slot)| slot).collect()
    }
}

async fn stop_slot(slot: &SandboxSlot) {
    let opened = slot.opened.lock().await.take();
    if let Some(opened) = opened {
        stop(opened).await;
    }
}

async fn stop(opened: OpenedSandbox) {
    if let Err(error) = opened.sandbox.stop().await {
        tracing::warn!(%error, sandbox = %opened.spec.key, "a sandbox did not stop in time");
    }
}

async fn stop_idle(manager: Weak<ManagerInner>, closing: CancellationToken) {
    loop {
        let Some(inner) = manager.upgrade() else { return };
        let idle_timeout = inner.settings.idle_timeout;
        for slot in inner.take_idle(Instant::now()) {
            stop_slot(&slot).await;
        }
        drop(inner);
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep((idle_timeout / 4).min(MAX_SCAN_INTERVAL)) => {}
        }
    }
}

/// Every change is a single step, so a panic cannot leave the state inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
