//! Lists an owner's agents for many concurrent requests: requests that arrive during a read share the next read. Each
//! gets data that was read after it asked, so the answer is never stale, no matter which server writes.

use crate::tools::McpToolError;
use domain::{agent::Agent, owner::Owner};
use engine::Queries;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

type AgentsResult = Result<Arc<[Agent]>, McpToolError>;
type AgentsRead = BoxFuture<'static, AgentsResult>;

#[derive(Clone, Default)]
pub struct SharedAgentList(Arc<Mutex<PendingReads>>);

#[derive(Default)]
struct PendingReads {
    /// The read that started last, or is about to start.
    latest: HashMap<Owner, LatestRead>,
    next: u64,
}

struct LatestRead {
    number: u64,
    /// Kept alive by its waiters; dropped with the last of them.
    read: WeakShared<AgentsRead>,
    has_begun: bool,
}

impl SharedAgentList {
    fn lock(&self) -> MutexGuard<'_, PendingReads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn agents(&self, queries: &Queries, owner: &Owner) -> AgentsResult {
        let shared = self.shared_read(owner, |owner| {
            let queries = queries.clone();
            async move { Ok(queries.agents(&owner).await?.into()) }.boxed()
        });
        shared.await
    }

    /// Returns a read that has not started yet, shared with other waiters.
    fn shared_read(&self, owner: &Owner, read: impl FnOnce(Owner) -> AgentsRead) -> Shared<AgentsRead> {
        let mut reads = self.lock();
        let latest = reads.latest.get(owner).and_then(|latest| Some((latest.read.upgrade()?, latest.has_begun)));
        let before = match latest {
            Some((shared, false)) => return shared,
            Some((shared, true)) => Some(shared),
            None => None,
        };
        let number = reads.next;
        reads.next += 1;
        let (list, key, read) = (self.clone(), owner.clone(), read(owner.clone()));
        let shared = async move {
            if let Some(before) = before {
                // Its result is only for requests that came before it started.
                drop(before.await);
            }
            list.set_state(&key, number, true);
            let found = read.await;
            list.set_state(&key, number, false);
            found
        };
        let shared = shared.boxed().shared();
        if let Some(weak) = shared.downgrade() {
            reads.latest.insert(owner.clone(), LatestRead { number, read: weak, has_begun: false });
        }
        shared
    }

    /// Marks a read as started or finished, if it is the latest.
    fn set_state(&self, owner: &Owner, number: u64, begins: bool) {
        let mut reads = self.lock();
        match reads.latest.get_mut(owner).filter(|latest| latest.number == number) {
            Some(latest) if begins => latest.has_begun = true,
            Some(_) => drop(reads.latest.remove(owner)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentsResult, SharedAgentList};
    use crate::tools::McpToolError;
    use domain::owner::Owner;
    use futures_util::FutureExt as _;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    use tokio::sync::Notify;

    /// Each read returns its own number.
    #[derive(Clone, Default)]
    struct Reads {
        begun: Arc<AtomicUsize>,
        go: Arc<Notify>,
    }

    impl Reads {
        fn ask(&self, list: &SharedAgentList) -> impl Future<Output = AgentsResult> + use<> {
            let reads = self.clone();
            list.shared_read(&Owner::local(), move |_| {
                async move {
                    let time = reads.begun.fetch_add(1, Ordering::SeqCst);
                    reads.go.notified().await;
                    Err(McpToolError(time.to_string()))
                }
                .boxed()
            })
        }
    }

    fn number(found: Option<AgentsResult>) -> Option<String> {
        found.map(|found| found.unwrap_err().0)
    }

    #[tokio::test]
    async fn requests_during_a_read_share_the_next_read() {
        let (list, reads) = (SharedAgentList::default(), Reads::default());
        let (mut first, mut second) = (reads.ask(&list).boxed(), reads.ask(&list).boxed());
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert_eq!(reads.begun.load(Ordering::SeqCst), 1, "requests before the start share one read");
        let (mut third, mut fourth) = (reads.ask(&list).boxed(), reads.ask(&list).boxed());
        assert!((&mut third).now_or_never().is_none() && (&mut fourth).now_or_never().is_none());
        reads.go.notify_one();
        assert_eq!(number((&mut first).now_or_never()), Some("0".into()));
        assert_eq!(number((&mut second).now_or_never()), Some("0".into()));
        assert!((&mut third).now_or_never().is_none(), "it waits for the next read");
        // A dropped request does not affect the others.
        drop(third);
        reads.go.notify_one();
        assert_eq!(number(fourth.now_or_never()), Some("1".into()));
        assert!(list.lock().latest.is_empty(), "no state is left");
    }

    #[tokio::test]
    async fn an_abandoned_read_does_not_block_later_requests() {
        let (list, reads) = (SharedAgentList::default(), Reads::default());
        let mut left = reads.ask(&list).boxed();
        assert!((&mut left).now_or_never().is_none());
        drop(left);
        let mut asked = reads.ask(&list).boxed();
        assert!((&mut asked).now_or_never().is_none());
        reads.go.notify_one();
        assert_eq!(number(asked.now_or_never()), Some("1".into()));
    }
}
