//! What one user may hold open on this server, with all tokens together: streams, WebSockets and their subscriptions, reads
//! of long pages, and memory for responses and events that are not sent yet (invariant 28). Rates are in [`crate::auth::rate_limit`].
//!
//! A share is looked up once, when something is opened, and then held as one pointer: ten thousand idle streams hold
//! ten thousand of them.

mod client_memory;
mod unsent;

pub use client_memory::MemoryPermit;
pub use unsent::PageShare;
pub(crate) use unsent::count_again;

use crate::error::{Code, Problem};
use axum::http::{HeaderValue, header};
use client_memory::{ClientMemory, TOTAL_KIBIBYTES};
use domain::{actor::Actor, ids::UserId, owner::Owner};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, time::timeout};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareLimits {
    /// Event streams and WebSockets.
    pub streams: usize,
    /// Rooms that the user's WebSockets follow.
    pub subscriptions: usize,
}

/// A user in a workspace: who a share belongs to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UserKey {
    workspace: Owner,
    user: Option<UserId>,
}

impl UserKey {
    pub fn of(actor: &Actor) -> Self {
        Self { workspace: actor.workspace.clone(), user: actor.user_id() }
    }
}

pub struct UserShares {
    limits: ShareLimits,
    /// Memory for what all users have not received yet.
    memory: Arc<Semaphore>,
    users: Mutex<HashMap<UserKey, Arc<UserShare>>>,
}

struct UserShare {
    limits: ShareLimits,
    streams: AtomicUsize,
    subscriptions: AtomicUsize,
    page_reads: Arc<Semaphore>,
    memory: ClientMemory,
}

/// How many long pages of one user are read at a time. Fewer than the store has connections for clients.
const PAGE_READS: usize = 2;
/// How long a request waits for its share.
const WAIT: Duration = Duration::from_secs(10);

/// An open stream or WebSocket of a user.
pub struct StreamPermit(Arc<UserShare>);

/// The subscriptions of one WebSocket.
pub struct SubscriptionPermits {
    share: Arc<UserShare>,
    count: usize,
}

impl UserShares {
    pub fn new(limits: ShareLimits) -> Self {
        Self { limits, memory: Arc::new(Semaphore::new(TOTAL_KIBIBYTES)), users: Mutex::default() }
    }

    pub fn open_stream(&self, actor: &Actor) -> Result<StreamPermit, Problem> {
        let share = self.share(actor);
        if !add_below(&share.streams, self.limits.streams) {
            let detail = format!(
                "You have {} streams and WebSockets open, the most for one user; close some, or follow many rooms over one \
                 WebSocket.",
                self.limits.streams
            );
            return Err(Problem::new(Code::TooManyStreams, detail));
        }
        Ok(StreamPermit(share))
    }

    /// Waits until a long page may be read: each takes a database connection, and memory until it is sent. Both are
    /// taken before the page is read, because a request that waits must hold nothing.
    pub async fn read_page(&self, actor: &Actor) -> Result<PageShare, Problem> {
        let share = self.share(actor);
        let permits = async {
            let memory = share.memory.take(unsent::PAGE_KIBIBYTES).await?;
            let reading = Arc::clone(&share.page_reads).acquire_owned().await.ok()?;
            Some(PageShare::new(reading, memory))
        };
        // The semaphores are never closed.
        let taken = timeout(WAIT, permits).await.ok().flatten();
        taken.ok_or_else(|| busy("You have many pages open that you do not read; read or close some of them."))
    }

    /// The open streams by workspace, for the operator.
    pub fn streams(&self) -> BTreeMap<Owner, usize> {
        let mut streams = BTreeMap::new();
        for (key, share) in self.lock().iter() {
            *streams.entry(key.workspace.clone()).or_default() += share.streams.load(Ordering::Relaxed);
        }
        streams
    }

    /// Forgets users that hold nothing. Called periodically.
    pub fn prune(&self) {
        self.lock().retain(|_, share| !share.is_unused());
    }

    fn share(&self, actor: &Actor) -> Arc<UserShare> {
        let new = || Arc::new(UserShare::new(self.limits, &self.memory));
        Arc::clone(self.lock().entry(UserKey::of(actor)).or_insert_with(new))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserKey, Arc<UserShare>>> {
        // A map of counters, which no panic can leave inconsistent.
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserShare {
    fn new(limits: ShareLimits, memory: &Arc<Semaphore>) -> Self {
        Self {
            limits,
            streams: AtomicUsize::new(0),
            subscriptions: AtomicUsize::new(0),
            page_reads: Arc::new(Semaphore::new(PAGE_READS)),
            memory: ClientMemory::new(memory),
        }
    }

    /// Whether nobody holds a part of it: permits of the semaphores hold these, the others hold the share.
    fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && Arc::strong_count(&self.page_reads) == 1 && self.memory.is_unused()
    }
}

impl StreamPermit {
    pub fn subscriptions(&self) -> SubscriptionPermits {
        SubscriptionPermits { share: Arc::clone(&self.0), count: 0 }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SubscriptionPermits {
    pub fn add(&mut self) -> Result<(), Problem> {
        self.resize(self.count + 1)
    }

    pub fn remove(&mut self) {
        let less = self.resize(self.count.saturating_sub(1));
        debug_assert!(less.is_ok(), "fewer are always possible");
    }

    /// Changes the number of subscriptions.
    pub fn resize(&mut self, count: usize) -> Result<(), Problem> {
        let limit = self.share.limits.subscriptions;
        let change = |all: usize| Some(all - self.count + count).filter(|all| *all <= limit || count <= self.count);
        if self.share.subscriptions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_err() {
            let detail = format!("Your WebSockets follow {limit} rooms, the most for one user; unsubscribe from some.");
            return Err(Problem::new(Code::TooManyStreams, detail));
        }
        self.count = count;
        Ok(())
    }
}

impl Drop for SubscriptionPermits {
    fn drop(&mut self) {
        self.share.subscriptions.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// Counts one more, if there are fewer than `limit`.
fn add_below(counter: &AtomicUsize, limit: usize) -> bool {
    let add = |count: usize| (count < limit).then_some(count + 1);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

fn busy(detail: &'static str) -> Problem {
    Problem::new(Code::TooManyRequests, detail).header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

#[cfg(test)]
mod tests {
    use super::{PAGE_READS, ShareLimits, UserShares};
    use crate::error::Code;
    use domain::{
        actor::{Actor, User},
        ids::UserId,
        name::Name,
    };

    fn user(id: u128) -> Actor {
        let name = Name::parse("someone").unwrap();
        Actor { user: Some(User { id: UserId(uuid::Uuid::from_u128(id)), name }), ..Actor::local() }
    }

    #[test]
    fn l3_streams_and_subscriptions_are_counted_by_user() {
        let shares = UserShares::new(ShareLimits { streams: 2, subscriptions: 3 });
        let (ada, bob) = (user(1), user(2));
        let (first, second) = (shares.open_stream(&ada).unwrap(), shares.open_stream(&ada).unwrap());
        let mut rooms = first.subscriptions();
        let mut others = second.subscriptions();
        rooms.add().unwrap();
        rooms.add().unwrap();
        others.add().unwrap();
        assert_eq!(others.add().unwrap_err().code(), Code::TooManyStreams);
        rooms.remove();
        others.add().unwrap();
        drop((rooms, others));
        assert_eq!(shares.open_stream(&ada).err().unwrap().code(), Code::TooManyStreams);
        let his = shares.open_stream(&bob).unwrap();
        assert_eq!(shares.streams().into_values().collect::<Vec<_>>(), [3], "two users of one workspace");
        drop((first, his));
        assert!(shares.open_stream(&ada).is_ok());
        let mut rooms = second.subscriptions();
        for _ in 0..3 {
            rooms.add().unwrap();
        }
        shares.prune();
        assert_eq!(shares.lock().len(), 1);
        drop((rooms, second));
        shares.prune();
        assert!(shares.lock().is_empty(), "users without anything open are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn m6_pages_of_one_user_are_read_a_few_at_a_time() {
        let shares = UserShares::new(ShareLimits { streams: 1, subscriptions: 1 });
        let mut reads = Vec::new();
        for _ in 0..PAGE_READS {
            reads.push(shares.read_page(&user(1)).await.unwrap());
        }
        shares.prune();
        assert_eq!(shares.read_page(&user(1)).await.err().unwrap().code(), Code::TooManyRequests);
        assert!(shares.read_page(&user(2)).await.is_ok());
        reads.pop();
        assert!(shares.read_page(&user(1)).await.is_ok());
    }
}
