//! What one workspace may have on the server: rooms, stored bytes, tests of MCP servers at once (invariant 28). The share
//! of a worker's slots is in `work/slots.rs`.

use crate::{Engine, EngineError};
use domain::owner::Owner;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// What a workspace may store, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceLimits {
    pub rooms: usize,
    /// Events, uploads and skill files together.
    pub stored_bytes: u64,
}

/// How long a sum of stored bytes is used. What is accepted meanwhile is added to it; what agents write meanwhile is
/// not, but is limited for each run.
const SUM_LIFETIME: Duration = Duration::from_secs(5);

/// The sums of stored bytes that were read a moment ago, by workspace: every post needs one, and reading it takes
/// time that grows with the number of rooms.
#[derive(Debug, Default)]
pub(crate) struct StoredBytesCache(Mutex<HashMap<Owner, (Instant, u64)>>);

impl StoredBytesCache {
    fn get(&self, owner: &Owner) -> Option<u64> {
        let sums = lock(&self.0);
        sums.get(owner).filter(|(read, _)| read.elapsed() < SUM_LIFETIME).map(|(_, bytes)| *bytes)
    }

    fn put(&self, owner: &Owner, bytes: u64) {
        let mut sums = lock(&self.0);
        sums.retain(|_, (read, _)| read.elapsed() < SUM_LIFETIME);
        sums.insert(owner.clone(), (Instant::now(), bytes));
    }

    fn add(&self, owner: &Owner, bytes: u64) {
        if let Some((_, sum)) = lock(&self.0).get_mut(owner) {
            *sum = sum.saturating_add(bytes);
        }
    }
}

impl Engine {
    /// Refuses a further room of a workspace that has too many. Two at the same time may both be accepted at the limit.
    pub(crate) async fn check_room_limit(&self, owner: &Owner) -> Result<(), EngineError> {
        let limit = self.config().workspace_limits.rooms;
        match self.store().room_count(owner, limit).await? < limit {
            true => Ok(()),
            false => Err(EngineError::TooManyRooms { limit }),
        }
    }

    /// Refuses to store more for a workspace that has used up its share, and counts what is about to be stored.
    pub(crate) async fn check_storage(&self, owner: &Owner, adding: u64) -> Result<(), EngineError> {
        let (limit, cache) = (self.config().workspace_limits.stored_bytes, self.stored_bytes_cache());
        let stored = match cache.get(owner) {
            Some(bytes) => bytes,
            None => {
                let bytes = self.store().stored_bytes(owner).await?;
                cache.put(owner, bytes);
                bytes
            }
        };
        if stored.saturating_add(adding) > limit {
            return Err(EngineError::StorageFull { limit });
        }
        cache.add(owner, adding);
        Ok(())
    }
}

/// Tests of MCP servers at once: each starts a program. A workspace has a part of them, so that its slow servers leave
/// slots for the others.
#[derive(Debug)]
pub(crate) struct McpTestSlots {
    all: Arc<Semaphore>,
    of_workspaces: Mutex<HashMap<Owner, Arc<Semaphore>>>,
}

const MCP_TESTS: usize = 4;
const MCP_TESTS_PER_WORKSPACE: usize = 2;

/// A test that may run; another one may when it is dropped.
pub(crate) struct McpTestSlot {
    _of_workspace: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for McpTestSlots {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MCP_TESTS)), of_workspaces: Mutex::default() }
    }
}

impl McpTestSlots {
    /// Waits for a slot. First for one of the workspace, so that it has no more callers in the common line than that.
    pub(crate) async fn take(&self, owner: &Owner) -> Option<McpTestSlot> {
        let own = {
            let mut of_workspaces = lock(&self.of_workspaces);
            of_workspaces.retain(|_, slots| Arc::strong_count(slots) > 1);
            let new = || Arc::new(Semaphore::new(MCP_TESTS_PER_WORKSPACE));
            Arc::clone(of_workspaces.entry(owner.clone()).or_insert_with(new))
        };
        // Neither semaphore is closed.
        let of_workspace = own.acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(McpTestSlot { _of_workspace: of_workspace, _of_all: of_all })
    }
}

/// The mutexes here guard plain data that no panic can leave inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{MCP_TESTS_PER_WORKSPACE, McpTestSlots, SUM_LIFETIME, StoredBytesCache};
    use domain::{name::Name, owner::Owner};
    use std::time::Duration;
    use tokio::time::timeout;

    fn workspace(name: &str) -> Owner {
        Owner::new(Name::parse(name).unwrap())
    }

    #[tokio::test]
    async fn h5_a_workspace_leaves_tests_of_mcp_servers_to_others() {
        let slots = McpTestSlots::default();
        let (ada, bob) = (workspace("ada"), workspace("bob"));
        let mut taken = Vec::new();
        for _ in 0..MCP_TESTS_PER_WORKSPACE {
            taken.push(slots.take(&ada).await.unwrap());
        }
        assert!(timeout(Duration::ZERO, slots.take(&ada)).await.is_err(), "ada has her part");
        assert!(timeout(Duration::ZERO, slots.take(&bob)).await.is_ok());
        taken.pop();
        assert!(timeout(Duration::ZERO, slots.take(&ada)).await.is_ok());
        drop(taken);
        slots.take(&bob).await.unwrap();
        assert_eq!(super::lock(&slots.of_workspaces).len(), 1, "those without a test are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn h5_accepted_bytes_are_counted_until_the_sum_is_read_again() {
        let (cache, ada) = (StoredBytesCache::default(), workspace("ada"));
        assert_eq!(cache.get(&ada), None);
        cache.put(&ada, 10);
        cache.add(&ada, 5);
        assert_eq!(cache.get(&ada), Some(15));
        tokio::time::advance(SUM_LIFETIME + Duration::from_millis(1)).await;
        assert_eq!(cache.get(&ada), None);
        cache.put(&workspace("bob"), 1);
        assert_eq!(super::lock(&cache.0).len(), 1);
    }
}
