//! The agents that can be asked, for many who ask at once: those who come while the store is being read share the next look
//! at it. What they get was read after they asked, so nothing is ever older than the question, whoever writes and wherever.

use crate::tools::Trouble;
use domain::{agent::Agent, owner::Owner};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use store::Store;

type Found = Result<Arc<[Agent]>, Trouble>;
type Look = BoxFuture<'static, Found>;

#[derive(Clone, Default)]
pub struct Roster(Arc<Mutex<Looks>>);

#[derive(Default)]
struct Looks {
    /// The one that began last, or will.
    of: HashMap<Owner, Latest>,
    next: u64,
}

struct Latest {
    number: u64,
    /// Those who wait for it keep it; with the last of them it ends.
    look: WeakShared<Look>,
    has_begun: bool,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Looks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn agents(&self, store: &Store, owner: &Owner) -> Found {
        let look = self.look(owner, |owner| {
            let store = store.clone();
            async move { Ok(store.agents(&owner).await?.into()) }.boxed()
        });
        look.await
    }

    /// One that has not begun, to be waited for with others.
    fn look(&self, owner: &Owner, read: impl FnOnce(Owner) -> Look) -> Shared<Look> {
        let mut looks = self.lock();
        let latest = looks.of.get(owner).and_then(|latest| Some((latest.look.upgrade()?, latest.has_begun)));
        let before = match latest {
            Some((look, false)) => return look,
            Some((look, true)) => Some(look),
            None => None,
        };
        let number = looks.next;
        looks.next += 1;
        let (roster, whose, read) = (self.clone(), owner.clone(), read(owner.clone()));
        let look = async move {
            if let Some(before) = before {
                // What it found is for those who asked before it began.
                drop(before.await);
            }
            roster.mark(&whose, number, true);
            let found = read.await;
            roster.mark(&whose, number, false);
            found
        };
        let look = look.boxed().shared();
        if let Some(weak) = look.downgrade() {
            looks.of.insert(owner.clone(), Latest { number, look: weak, has_begun: false });
        }
        look
    }

    /// That a look begins, or is over, if it is the latest.
    fn mark(&self, owner: &Owner, number: u64, begins: bool) {
        let mut looks = self.lock();
        match looks.of.get_mut(owner).filter(|latest| latest.number == number) {
            Some(latest) if begins => latest.has_begun = true,
            Some(_) => drop(looks.of.remove(owner)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Roster};
    use crate::tools::Trouble;
    use domain::owner::Owner;
    use futures_util::FutureExt as _;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    use tokio::sync::Notify;

    /// What is read is which time it is read.
    #[derive(Clone, Default)]
    struct Reads {
        begun: Arc<AtomicUsize>,
        go: Arc<Notify>,
    }

    impl Reads {
        fn ask(&self, roster: &Roster) -> impl Future<Output = Found> + use<> {
            let reads = self.clone();
            roster.look(&Owner::local(), move |_| {
                async move {
                    let time = reads.begun.fetch_add(1, Ordering::SeqCst);
                    reads.go.notified().await;
                    Err(Trouble(time.to_string()))
                }
                .boxed()
            })
        }
    }

    fn said(found: Option<Found>) -> Option<String> {
        found.map(|found| found.unwrap_err().0)
    }

    #[tokio::test]
    async fn who_asks_while_one_looks_gets_what_is_seen_afterwards() {
        let (roster, reads) = (Roster::default(), Reads::default());
        let (mut first, mut second) = (reads.ask(&roster).boxed(), reads.ask(&roster).boxed());
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert_eq!(reads.begun.load(Ordering::SeqCst), 1, "two who ask before it begins share a look");
        let (mut third, mut fourth) = (reads.ask(&roster).boxed(), reads.ask(&roster).boxed());
        assert!((&mut third).now_or_never().is_none() && (&mut fourth).now_or_never().is_none());
        reads.go.notify_one();
        assert_eq!(said((&mut first).now_or_never()), Some("0".into()));
        assert_eq!(said((&mut second).now_or_never()), Some("0".into()));
        assert!((&mut third).now_or_never().is_none(), "theirs is another");
        // One who leaves takes nothing from the others.
        drop(third);
        reads.go.notify_one();
        assert_eq!(said(fourth.now_or_never()), Some("1".into()));
        assert!(roster.lock().of.is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn a_look_that_everybody_left_keeps_nobody_waiting() {
        let (roster, reads) = (Roster::default(), Reads::default());
        let mut left = reads.ask(&roster).boxed();
        assert!((&mut left).now_or_never().is_none());
        drop(left);
        let mut asked = reads.ask(&roster).boxed();
        assert!((&mut asked).now_or_never().is_none());
        reads.go.notify_one();
        assert_eq!(said(asked.now_or_never()), Some("1".into()));
    }
}
