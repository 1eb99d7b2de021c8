//! Processes that stay alive between turns, with a limit to how many there are.
//!
//! Each has a key and at most one holder. Given back, it waits for the next holder of its key until it has been idle
//! for too long, or until another key needs its place: then the one that was idle longest goes. When all are held,
//! whoever asks waits its turn. A holder that is dropped frees its place.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// What is kept. Dropping it must end it too, by force.
pub trait Resident: Send + 'static {
    /// Ends it in good order, within a bounded time.
    fn leave(self) -> impl Future<Output = ()> + Send;
}

pub trait Key: Eq + Hash + Clone + Send + 'static {}
impl<K: Eq + Hash + Clone + Send + 'static> Key for K {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Held and idle ones together.
    pub places: usize,
    /// How long one waits for the next holder of its key.
    pub idle: Duration,
    /// How many may be made ready before anybody asked for them.
    pub spares: usize,
}

pub struct Pool<K: Key, P: Resident>(Arc<Shared<K, P>>);

/// What came of asking.
pub enum Asked<K: Key, P: Resident> {
    Granted(Place<K, P>),
    Wait(Wait<K, P>),
}

/// A turn in the line.
pub struct Wait<K: Key, P: Resident> {
    place: oneshot::Receiver<Place<K, P>>,
    /// Whether it stands in line for any place, or for the one that holds its own key.
    pub is_full: bool,
}

/// The right to run one process under a key.
pub struct Place<K: Key, P: Resident> {
    shared: Arc<Shared<K, P>>,
    /// `None` once it was given back.
    key: Option<K>,
    /// The one that was kept for this key.
    resident: Option<P>,
    /// The one whose place this was.
    evicted: Option<P>,
    is_spare: bool,
}

struct Shared<K: Key, P: Resident> {
    limits: Limits,
    state: Mutex<State<K, P>>,
    /// Rung when one becomes idle.
    bell: Arc<Notify>,
}

struct State<K: Key, P: Resident> {
    held: HashSet<K>,
    /// Held by those that nobody has asked for yet.
    held_spares: usize,
    idle: HashMap<K, Idle<P>>,
    waiting: VecDeque<(K, oneshot::Sender<Place<K, P>>)>,
    closed: bool,
    /// Ends those that were idle for too long.
    sweeper: JoinSet<()>,
}

struct Idle<P> {
    resident: P,
    since: Instant,
    is_spare: bool,
}

impl<K: Key, P: Resident> Pool<K, P> {
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { places: limits.places.max(1), ..limits };
        let state = State {
            held: HashSet::new(),
            held_spares: 0,
            idle: HashMap::new(),
            waiting: VecDeque::new(),
            closed: false,
            sweeper: JoinSet::new(),
        };
        Self(Arc::new(Shared { limits, state: Mutex::new(state), bell: Arc::new(Notify::new()) }))
    }

    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// `None` when the pool is closed.
    pub fn ask(&self, key: K) -> Option<Asked<K, P>> {
        let mut state = self.0.lock();
        if state.closed {
            return None;
        }
        // Whoever came first is served first; a place that is free although others wait is of no use to them.
        if let Some(place) = self.0.grant(&mut state, &key) {
            return Some(Asked::Granted(place));
        }
        let is_full = !state.held.contains(&key);
        let (sender, place) = oneshot::channel();
        state.waiting.push_back((key, sender));
        Some(Asked::Wait(Wait { place, is_full }))
    }

    /// A place for one that is made ready before it is asked for: only where none is kept for this key, there is room,
    /// nobody waits, and there are not enough spares already.
    pub fn spare(&self, key: K) -> Option<Place<K, P>> {
        let mut state = self.0.lock();
        state.forget_who_left();
        let spares = state.held_spares + state.idle.values().filter(|idle| idle.is_spare).count();
        let taken = state.held.contains(&key) || state.idle.contains_key(&key);
        let full = state.held.len() + state.idle.len() >= self.0.limits.places;
        if state.closed || taken || full || !state.waiting.is_empty() || spares >= self.0.limits.spares {
            return None;
        }
        state.held.insert(key.clone());
        state.held_spares += 1;
        Some(Place { shared: Arc::clone(&self.0), key: Some(key), resident: None, evicted: None, is_spare: true })
    }

    /// Nobody gets a place any more; returns when no idle one is left. Held ones end when they are given back.
    pub async fn close(&self) {
        let (waiting, idle) = {
            let mut state = self.0.lock();
            state.closed = true;
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.idle))
        };
        drop(waiting);
        let mut leaving = JoinSet::new();
        for idle in idle.into_values() {
            leaving.spawn(idle.resident.leave());
        }
        while leaving.join_next().await.is_some() {}
    }
}

impl<K: Key, P: Resident> Wait<K, P> {
    /// `None` when the pool was closed meanwhile.
    pub async fn place(self) -> Option<Place<K, P>> {
        self.place.await.ok()
    }
}

impl<K: Key, P: Resident> Place<K, P> {
    /// The one that was kept for this key. The one that had to go for it has gone when this returns.
    pub async fn resident(&mut self) -> Option<P> {
        if let Some(evicted) = self.evicted.take() {
            evicted.leave().await;
        }
        self.resident.take()
    }

    /// Gives the place back with one that waits for the next holder.
    pub async fn keep(mut self, resident: P) {
        let Some(key) = self.key.take() else { return };
        let refused = {
            let mut state = self.shared.lock();
            state.release(&key, self.is_spare);
            if state.closed {
                Some(resident)
            } else {
                let idle = Idle { resident, since: Instant::now(), is_spare: self.is_spare };
                state.idle.insert(key, idle);
                if state.sweeper.is_empty() {
                    let (shared, bell) = (Arc::downgrade(&self.shared), Arc::clone(&self.shared.bell));
                    state.sweeper.spawn(sweep(shared, bell));
                }
                None
            }
        };
        match refused {
            Some(resident) => resident.leave().await,
            None => self.shared.bell.notify_one(),
        }
        self.shared.serve();
    }
}

impl<K: Key, P: Resident> Drop for Place<K, P> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            // What it held ends before its place is free.
            drop((self.resident.take(), self.evicted.take()));
            self.shared.lock().release(&key, self.is_spare);
            self.shared.serve();
        }
    }
}

impl<K: Key, P: Resident> Shared<K, P> {
    fn lock(&self) -> MutexGuard<'_, State<K, P>> {
        // Nothing in here runs code of others, so nothing can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grant(self: &Arc<Self>, state: &mut State<K, P>, key: &K) -> Option<Place<K, P>> {
        if state.held.contains(key) {
            return None;
        }
        let resident = state.idle.remove(key).map(|idle| idle.resident);
        let mut evicted = None;
        if resident.is_none() && state.held.len() + state.idle.len() >= self.limits.places {
            let oldest = state.idle.iter().min_by_key(|(_, idle)| idle.since).map(|(key, _)| key.clone())?;
            evicted = state.idle.remove(&oldest).map(|idle| idle.resident);
        }
        state.held.insert(key.clone());
        let shared = Arc::clone(self);
        Some(Place { shared, key: Some(key.clone()), resident, evicted, is_spare: false })
    }

    /// Hands out what is free, to whoever waits longest for it.
    fn serve(self: &Arc<Self>) {
        loop {
            let unwanted = {
                let mut state = self.lock();
                state.forget_who_left();
                let Some((at, place)) = (0..state.waiting.len()).find_map(|at| {
                    let key = state.waiting[at].0.clone();
                    self.grant(&mut state, &key).map(|place| (at, place))
                }) else {
                    return;
                };
                let Some((_, sender)) = state.waiting.remove(at) else { return };
                sender.send(place)
            };
            // Whoever waited left just now; outside of the lock, because giving it back needs it.
            drop(unwanted);
        }
    }

    /// Takes out those that were idle for too long, as their holder; and when the next one will have been.
    fn expired(self: &Arc<Self>) -> (Vec<Place<K, P>>, Option<Instant>) {
        let mut state = self.lock();
        let now = Instant::now();
        let due: Vec<K> = state
            .idle
            .iter()
            .filter(|(_, idle)| idle.since + self.limits.idle <= now)
            .map(|(key, _)| key.clone())
            .collect();
        let places = due.iter().filter_map(|key| self.grant(&mut state, key)).collect();
        let next = state.idle.values().map(|idle| idle.since + self.limits.idle).min();
        (places, next)
    }
}

impl<K: Key, P: Resident> State<K, P> {
    fn release(&mut self, key: &K, is_spare: bool) {
        self.held.remove(key);
        if is_spare {
            self.held_spares = self.held_spares.saturating_sub(1);
        }
    }

    /// Nobody idle is to go for the sake of one who does not wait any more.
    fn forget_who_left(&mut self) {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
    }
}

async fn sweep<K: Key, P: Resident>(shared: Weak<Shared<K, P>>, bell: Arc<Notify>) {
    loop {
        let Some((expired, next)) = shared.upgrade().map(|shared| shared.expired()) else { return };
        for mut place in expired {
            if let Some(resident) = place.resident().await {
                resident.leave().await;
            }
        }
        tokio::select! {
            () = bell.notified() => {}
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

impl<K: Key, P: Resident> std::fmt::Debug for Pool<K, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        let (held, idle, waiting) = (state.held.len(), state.idle.len(), state.waiting.len());
        f.debug_struct("Pool").field("held", &held).field("idle", &idle).field("waiting", &waiting).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Limits, Place, Pool, Resident};
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    /// Counts how many are alive.
    struct Guest {
        name: u32,
        alive: Arc<AtomicUsize>,
    }

    impl Guest {
        fn new(name: u32, alive: &Arc<AtomicUsize>) -> Self {
            alive.fetch_add(1, Ordering::SeqCst);
            Self { name, alive: Arc::clone(alive) }
        }
    }

    impl Drop for Guest {
        fn drop(&mut self) {
            self.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl Resident for Guest {
        async fn leave(self) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn pool(places: usize, spares: usize) -> (Pool<u32, Guest>, Arc<AtomicUsize>) {
        (Pool::new(Limits { places, idle: Duration::from_secs(60), spares }), Arc::default())
    }

    fn granted(pool: &Pool<u32, Guest>, key: u32) -> Place<u32, Guest> {
        match pool.ask(key) {
            Some(Asked::Granted(place)) => place,
            _ => panic!("{key} has to wait"),
        }
    }

    fn waiting(pool: &Pool<u32, Guest>, key: u32, is_full: bool) -> super::Wait<u32, Guest> {
        match pool.ask(key) {
            Some(Asked::Wait(wait)) => {
                assert_eq!(wait.is_full, is_full);
                wait
            }
            _ => panic!("{key} does not have to wait"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_kept_comes_back_to_its_key() {
        let (pool, alive) = pool(2, 0);
        let mut place = granted(&pool, 1);
        assert!(place.resident().await.is_none());
        place.keep(Guest::new(7, &alive)).await;
        assert_eq!(granted(&pool, 1).resident().await.unwrap().name, 7);
        assert!(granted(&pool, 2).resident().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_when_all_are_held_the_next_waits_its_turn() {
        let (pool, alive) = pool(2, 0);
        let (first, second) = (granted(&pool, 1), granted(&pool, 2));
        let (third, fourth) = (waiting(&pool, 3, true), waiting(&pool, 4, true));
        first.keep(Guest::new(1, &alive)).await;
        let mut third = third.place().await.unwrap();
        assert!(third.resident().await.is_none());
        assert_eq!(alive.load(Ordering::SeqCst), 0, "the idle one left before the new one may start");
        drop(second);
        assert!(fourth.place().await.unwrap().resident().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_one_holder_at_a_time() {
        let (pool, alive) = pool(5, 0);
        let first = granted(&pool, 1);
        let second = waiting(&pool, 1, false);
        first.keep(Guest::new(9, &alive)).await;
        assert_eq!(second.place().await.unwrap().resident().await.unwrap().name, 9);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stopped_waiting_is_passed_over_and_a_dropped_holder_frees_its_place() {
        let (pool, alive) = pool(1, 0);
        let first = granted(&pool, 1);
        drop(waiting(&pool, 2, true));
        let third = waiting(&pool, 3, true);
        drop(first);
        let third = third.place().await.unwrap();
        drop(waiting(&pool, 4, true));
        third.keep(Guest::new(3, &alive)).await;
        assert_eq!(alive.load(Ordering::SeqCst), 1, "nobody had to go for one who left");
        assert_eq!(granted(&pool, 3).resident().await.unwrap().name, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_was_idle_longest_makes_room() {
        let (pool, alive) = pool(2, 0);
        for key in [1, 2] {
            granted(&pool, key).keep(Guest::new(key, &alive)).await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let mut third = granted(&pool, 3);
        assert!(third.resident().await.is_none());
        assert_eq!(alive.load(Ordering::SeqCst), 1);
        assert_eq!(granted(&pool, 2).resident().await.unwrap().name, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_idle_too_long_leaves() {
        let (pool, alive) = pool(2, 0);
        granted(&pool, 1).keep(Guest::new(1, &alive)).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        granted(&pool, 2).keep(Guest::new(2, &alive)).await;
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(alive.load(Ordering::SeqCst), 1);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert!(granted(&pool, 1).resident().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn spares_take_only_what_is_free() {
        let (pool, alive) = pool(3, 1);
        let spare = pool.spare(1).unwrap();
        assert!(pool.spare(2).is_none(), "one spare is being made ready");
        spare.keep(Guest::new(1, &alive)).await;
        assert!(pool.spare(2).is_none() && pool.spare(1).is_none());
        assert_eq!(granted(&pool, 1).resident().await.unwrap().name, 1);
        let _held = [granted(&pool, 3), granted(&pool, 4)];
        granted(&pool, 5).keep(Guest::new(5, &alive)).await;
        assert!(pool.spare(6).is_none(), "an idle one is not thrown out for a spare");
        drop(granted(&pool, 5));
        assert!(pool.spare(6).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_spare_under_way_is_waited_for_by_its_key() {
        let (pool, alive) = pool(3, 1);
        let spare = pool.spare(1).unwrap();
        let turn = waiting(&pool, 1, false);
        spare.keep(Guest::new(1, &alive)).await;
        assert_eq!(turn.place().await.unwrap().resident().await.unwrap().name, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_the_idle_ones_and_turns_away_who_waits() {
        let (pool, alive) = pool(2, 1);
        granted(&pool, 1).keep(Guest::new(1, &alive)).await;
        let held = [granted(&pool, 2), granted(&pool, 1)];
        let wait = waiting(&pool, 3, true);
        let [held, first] = held;
        first.keep(Guest::new(1, &alive)).await;
        assert!(wait.place().await.is_some());
        granted(&pool, 4).keep(Guest::new(4, &alive)).await;
        pool.close().await;
        assert!(pool.ask(9).is_none() && pool.spare(9).is_none());
        held.keep(Guest::new(2, &alive)).await;
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_pool_drops_what_it_kept() {
        let (pool, alive) = pool(2, 0);
        granted(&pool, 1).keep(Guest::new(1, &alive)).await;
        drop(pool);
        tokio::task::yield_now().await;
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}
