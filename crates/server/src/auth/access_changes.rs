//! Tells open streams at once that a token was revoked or a browser signed out on this server. Elsewhere, streams notice
//! with their next heartbeat.

use tokio::sync::watch;

pub struct AccessChanges(watch::Sender<u64>);

impl Default for AccessChanges {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl AccessChanges {
    /// Makes every stream check its access now.
    pub fn announce(&self) {
        self.0.send_modify(|changes| *changes += 1);
    }

    pub fn watch(&self) -> AccessWatch {
        let changes = self.0.subscribe();
        let seen = *changes.borrow();
        AccessWatch { changes, seen }
    }
}

/// A stream's view of the changes.
pub struct AccessWatch {
    changes: watch::Receiver<u64>,
    seen: u64,
}

impl AccessWatch {
    /// Waits until [`Self::take`] returns true. Does not take the change, so that dropping it loses nothing.
    pub async fn wait(&mut self) {
        let seen = self.seen;
        // The sender lives as long as the server.
        if self.changes.wait_for(|changes| *changes != seen).await.is_err() {
            std::future::pending().await
        }
    }

    /// Whether there was a change since the last call.
    pub fn take(&mut self) -> bool {
        let now = *self.changes.borrow();
        std::mem::replace(&mut self.seen, now) != now
    }
}

#[cfg(test)]
mod tests {
    use super::AccessChanges;

    #[tokio::test]
    async fn l10_a_change_is_noticed_once_by_everybody() {
        let changes = AccessChanges::default();
        let (mut one, mut two) = (changes.watch(), changes.watch());
        assert!(!one.take());
        changes.announce();
        one.wait().await;
        one.wait().await;
        assert!(one.take() && !one.take() && two.take());
        assert!(!changes.watch().take(), "only later changes");
    }
}
