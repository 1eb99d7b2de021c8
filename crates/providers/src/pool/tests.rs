use super::{PoolKey, PoolLimits, PoolSlot, PooledProcess, ProcessPool, SlotRequest};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Counts the live processes.
struct FakeProcess {
    name: u32,
    alive: Arc<AtomicUsize>,
}

impl FakeProcess {
    fn new(name: u32, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self { name, alive: Arc::clone(alive) }
    }
}

impl Drop for FakeProcess {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PooledProcess for FakeProcess {
    async fn shut_down(self) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Keys below 100 belong to one workspace, the next hundred to another.
impl PoolKey for u32 {
    fn is_of_same_workspace(&self, other: &Self) -> bool {
        self / 100 == other / 100
    }
}

fn pool(places: usize, spares: usize) -> (ProcessPool<u32, FakeProcess>, Arc<AtomicUsize>) {
    (ProcessPool::new(PoolLimits { slots: places, idle_timeout: Duration::from_secs(60), spares }), Arc::default())
}

fn granted(pool: &ProcessPool<u32, FakeProcess>, key: u32) -> PoolSlot<u32, FakeProcess> {
    match pool.acquire(key) {
        Some(SlotRequest::Granted(slot)) => slot,
        _ => panic!("{key} has to wait"),
    }
}

fn waiting(pool: &ProcessPool<u32, FakeProcess>, key: u32, is_full: bool) -> super::SlotWait<u32, FakeProcess> {
    match pool.acquire(key) {
        Some(SlotRequest::Queued(wait)) => {
            assert_eq!(wait.is_full, is_full);
            wait
        }
        _ => panic!("{key} does not have to wait"),
    }
}

#[tokio::test(start_paused = true)]
async fn idle_process_is_returned_to_its_key() {
    let (pool, alive) = pool(2, 0);
    let mut slot = granted(&pool, 1);
    assert!(slot.take_process().await.is_none());
    slot.put_back(FakeProcess::new(7, &alive)).await;
    assert_eq!(granted(&pool, 1).take_process().await.unwrap().name, 7);
    assert!(granted(&pool, 2).take_process().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_requests_are_queued_when_all_slots_are_held() {
    let (pool, alive) = pool(2, 0);
    let (first, second) = (granted(&pool, 1), granted(&pool, 2));
    let (third, fourth) = (waiting(&pool, 3, true), waiting(&pool, 4, true));
    first.put_back(FakeProcess::new(1, &alive)).await;
    let mut third = third.slot().await.unwrap();
    assert!(third.take_process().await.is_none());
    assert_eq!(alive.load(Ordering::SeqCst), 0, "the evicted process ended before the new one may start");
    drop(second);
    assert!(fourth.slot().await.unwrap().take_process().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_holder_at_a_time() {
    let (pool, alive) = pool(5, 0);
    let first = granted(&pool, 1);
    let second = waiting(&pool, 1, false);
    first.put_back(FakeProcess::new(9, &alive)).await;
    assert_eq!(second.slot().await.unwrap().take_process().await.unwrap().name, 9);
}

#[tokio::test(start_paused = true)]
async fn canceled_wait_is_skipped_and_a_dropped_slot_is_freed() {
    let (pool, alive) = pool(1, 0);
    let first = granted(&pool, 1);
    drop(waiting(&pool, 2, true));
    let third = waiting(&pool, 3, true);
    drop(first);
    let third = third.slot().await.unwrap();
    drop(waiting(&pool, 4, true));
    third.put_back(FakeProcess::new(3, &alive)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 1, "no process is evicted for a canceled wait");
    assert_eq!(granted(&pool, 3).take_process().await.unwrap().name, 3);
}

#[tokio::test(start_paused = true)]
async fn longest_idle_process_is_evicted() {
    let (pool, alive) = pool(2, 0);
    for key in [1, 2] {
        granted(&pool, key).put_back(FakeProcess::new(key, &alive)).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let mut third = granted(&pool, 3);
    assert!(third.take_process().await.is_none());
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    assert_eq!(granted(&pool, 2).take_process().await.unwrap().name, 2);
}

async fn idle(pool: &ProcessPool<u32, FakeProcess>, keys: &[u32], alive: &Arc<AtomicUsize>) {
    for key in keys {
        granted(pool, *key).put_back(FakeProcess::new(*key, alive)).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn h5_idle_processes_of_one_workspace_do_not_push_out_those_of_another() {
    let (pool, alive) = pool(4, 0);
    idle(&pool, &[101, 1, 2, 3], &alive).await;
    idle(&pool, &[4, 5, 6], &alive).await;
    assert_eq!(granted(&pool, 101).take_process().await.unwrap().name, 101, "the oldest, but of another workspace");
    idle(&pool, &[101, 102], &alive).await;
    let mut first = granted(&pool, 101);
    assert_eq!(first.take_process().await.unwrap().name, 101, "two for each workspace");
    assert!(granted(&pool, 5).take_process().await.is_some() && granted(&pool, 6).take_process().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn h5_of_several_workspaces_one_holds_no_more_than_three_quarters_of_the_slots() {
    let (pool, alive) = pool(4, 0);
    let alone = [granted(&pool, 1), granted(&pool, 2), granted(&pool, 3), granted(&pool, 4)];
    let first_of_another = waiting(&pool, 101, true);
    drop(alone);
    drop(first_of_another.slot().await.unwrap());
    let mut held = vec![granted(&pool, 1), granted(&pool, 2), granted(&pool, 3)];
    let fourth = waiting(&pool, 4, true);
    let other = granted(&pool, 101);
    let (fifth, theirs) = (waiting(&pool, 5, true), waiting(&pool, 102, true));
    other.put_back(FakeProcess::new(101, &alive)).await;
    let theirs = theirs.slot().await.unwrap();
    drop(held.pop());
    let fourth = fourth.slot().await.unwrap();
    let more = waiting(&pool, 103, true);
    drop(fourth);
    drop(more.slot().await.unwrap());
    drop((held, theirs, fifth));
}

#[tokio::test(start_paused = true)]
async fn process_ends_after_its_idle_timeout() {
    let (pool, alive) = pool(2, 0);
    granted(&pool, 1).put_back(FakeProcess::new(1, &alive)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    granted(&pool, 2).put_back(FakeProcess::new(2, &alive)).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert!(granted(&pool, 1).take_process().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn spares_use_only_free_slots() {
    let (pool, alive) = pool(3, 1);
    let spare = pool.acquire_spare(1).unwrap();
    assert!(pool.acquire_spare(2).is_none(), "one spare is being started");
    spare.put_back(FakeProcess::new(1, &alive)).await;
    assert!(pool.acquire_spare(2).is_none() && pool.acquire_spare(1).is_none());
    assert_eq!(granted(&pool, 1).take_process().await.unwrap().name, 1);
    let _held = [granted(&pool, 3), granted(&pool, 4)];
    granted(&pool, 5).put_back(FakeProcess::new(5, &alive)).await;
    assert!(pool.acquire_spare(6).is_none(), "no idle process is evicted for a spare");
    drop(granted(&pool, 5));
    assert!(pool.acquire_spare(6).is_some());
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_the_spare_of_its_key() {
    let (pool, alive) = pool(3, 1);
    let spare = pool.acquire_spare(1).unwrap();
    let turn = waiting(&pool, 1, false);
    spare.put_back(FakeProcess::new(1, &alive)).await;
    assert_eq!(turn.slot().await.unwrap().take_process().await.unwrap().name, 1);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_idle_processes_and_refuses_requests() {
    let (pool, alive) = pool(2, 1);
    granted(&pool, 1).put_back(FakeProcess::new(1, &alive)).await;
    let held = [granted(&pool, 2), granted(&pool, 1)];
    let wait = waiting(&pool, 3, true);
    let [held, first] = held;
    first.put_back(FakeProcess::new(1, &alive)).await;
    assert!(wait.slot().await.is_some());
    granted(&pool, 4).put_back(FakeProcess::new(4, &alive)).await;
    pool.close().await;
    assert!(pool.acquire(9).is_none() && pool.acquire_spare(9).is_none());
    held.put_back(FakeProcess::new(2, &alive)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_pool_drops_its_idle_processes() {
    let (pool, alive) = pool(2, 0);
    granted(&pool, 1).put_back(FakeProcess::new(1, &alive)).await;
    drop(pool);
    tokio::task::yield_now().await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}
