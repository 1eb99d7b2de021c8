//! Memory for what clients have asked for and not received yet. A user has a share of it, and all users together have a
//! limit, but one that holds nothing gets what one response needs even then: those who read wait for nobody.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one user may have in responses and events that are not sent yet. A larger one is sent when nothing else is left.
pub(super) const USER_KIBIBYTES: usize = 32 * 1024;
/// What all users may have.
pub(super) const TOTAL_KIBIBYTES: usize = 96 * 1024;

/// The share of one user.
pub(super) struct ClientMemory {
    user: Arc<Semaphore>,
    total: Arc<Semaphore>,
}

/// So much memory, until it is dropped.
pub struct MemoryPermit {
    user: OwnedSemaphorePermit,
    /// `None` for what a user got although nothing was left.
    total: Option<OwnedSemaphorePermit>,
}

impl ClientMemory {
    pub(super) fn new(total: &Arc<Semaphore>) -> Self {
        Self { user: Arc::new(Semaphore::new(USER_KIBIBYTES)), total: Arc::clone(total) }
    }

    /// Waits until there is memory for so many bytes. `None` is impossible: the semaphores are never closed.
    pub(super) async fn take(&self, kibibytes: u32) -> Option<MemoryPermit> {
        let user = Arc::clone(&self.user).acquire_many_owned(kibibytes).await.ok()?;
        match Arc::clone(&self.total).try_acquire_many_owned(kibibytes) {
            Ok(total) => Some(MemoryPermit { user, total: Some(total) }),
            Err(_) if self.holds_only(kibibytes) => Some(MemoryPermit { user, total: None }),
            Err(_) => {
                let total = Arc::clone(&self.total).acquire_many_owned(kibibytes).await.ok()?;
                Some(MemoryPermit { user, total: Some(total) })
            }
        }
    }

    pub(super) fn try_take(&self, kibibytes: u32) -> Option<MemoryPermit> {
        let user = Arc::clone(&self.user).try_acquire_many_owned(kibibytes).ok()?;
        let total = Arc::clone(&self.total).try_acquire_many_owned(kibibytes).ok();
        (total.is_some() || self.holds_only(kibibytes)).then_some(MemoryPermit { user, total })
    }

    fn holds_only(&self, kibibytes: u32) -> bool {
        self.user.available_permits() + kibibytes as usize == USER_KIBIBYTES
    }

    /// Whether no permit of it exists: each holds the semaphore.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.user) == 1
    }
}

impl MemoryPermit {
    /// Changes how much this is. `false` if more is needed than is left.
    pub(super) fn resize(&mut self, kibibytes: u32) -> bool {
        let held = self.user.num_permits();
        let wanted = kibibytes as usize;
        if wanted <= held {
            drop(self.user.split(held - wanted));
            drop(self.total.as_mut().and_then(|total| total.split(held - wanted)));
            return true;
        }
        let more = kibibytes - held as u32;
        let Ok(user) = Arc::clone(self.user.semaphore()).try_acquire_many_owned(more) else { return false };
        if let Some(total) = &mut self.total {
            let Ok(more) = Arc::clone(total.semaphore()).try_acquire_many_owned(more) else { return false };
            total.merge(more);
        }
        self.user.merge(user);
        true
    }
}

/// The number of permits for so many bytes. Less than one takes none.
pub(super) fn kibibytes(bytes: u64) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX).min(USER_KIBIBYTES as u32)
}

#[cfg(test)]
mod tests {
    use super::{ClientMemory, TOTAL_KIBIBYTES, USER_KIBIBYTES, kibibytes};
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    #[tokio::test(start_paused = true)]
    async fn h5_users_share_the_memory_and_one_that_holds_nothing_gets_some() {
        const ALL: u32 = USER_KIBIBYTES as u32;
        let total = Arc::new(Semaphore::new(TOTAL_KIBIBYTES));
        let greedy: Vec<_> = (0..TOTAL_KIBIBYTES / USER_KIBIBYTES).map(|_| ClientMemory::new(&total)).collect();
        let taken: Vec<_> = greedy.iter().map(|user| user.try_take(ALL).unwrap()).collect();
        assert_eq!(total.available_permits(), 0);
        assert!(greedy[0].try_take(1).is_none());

        let modest = ClientMemory::new(&total);
        let first = modest.take(3).await.unwrap();
        assert!(modest.try_take(1).is_none(), "one at a time while nothing is left");
        let soon = tokio::time::timeout(std::time::Duration::from_secs(60), modest.take(1));
        assert!(soon.await.is_err());
        drop(first);
        assert!(modest.is_unused());
        let mut first = modest.take(3).await.unwrap();
        assert!(first.resize(2) && first.resize(5), "what was given beyond the total is not counted there");
        drop((taken, first));
        assert_eq!(total.available_permits(), TOTAL_KIBIBYTES);

        let mut page = modest.take(10).await.unwrap();
        assert!(page.resize(4));
        assert_eq!(total.available_permits(), TOTAL_KIBIBYTES - 4);
        assert!(page.resize(ALL));
        assert_eq!(total.available_permits(), TOTAL_KIBIBYTES - USER_KIBIBYTES);
        assert!(!page.resize(ALL + 1));
        drop(page);
        assert_eq!(total.available_permits(), TOTAL_KIBIBYTES);
    }

    #[test]
    fn a_size_of_any_number_of_bytes_fits_into_a_share() {
        assert_eq!([0, 1, 1024, 1025, u64::MAX].map(kibibytes), [0, 0, 1, 1, USER_KIBIBYTES as u32]);
    }
}
