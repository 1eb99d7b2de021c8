//! When a token was last used, written down now and then and beside the requests: nobody waits for it, and a busy token
//! costs one small write a minute.

use crate::App;
use domain::ids::TokenId;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct LastUsed(Mutex<HashMap<TokenId, Instant>>);

impl LastUsed {
    pub fn note(&self, app: &App, token: TokenId) {
        if !self.is_due(token) {
            return;
        }
        let store = app.engine.store().clone();
        app.background.spawn(async move {
            if let Err(error) = store.note_token_use(token).await {
                tracing::debug!(%token, %error, "could not note when a token was used");
            }
        });
    }

    fn is_due(&self, token: TokenId) -> bool {
        let now = Instant::now();
        let mut written = self.lock();
        if written.get(&token).is_some_and(|at| now.duration_since(*at) < EVERY) {
            return false;
        }
        written.insert(token, now);
        true
    }

    pub fn prune(&self) {
        self.lock().retain(|_, at| at.elapsed() < EVERY);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{EVERY, LastUsed};
    use domain::ids::TokenId;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_written_down_once_a_minute() {
        let (used, token) = (LastUsed::default(), TokenId::generate());
        assert!(used.is_due(token) && !used.is_due(token));
        assert!(used.is_due(TokenId::generate()), "each on its own");
        tokio::time::advance(EVERY).await;
        assert!(used.is_due(token));
        tokio::time::advance(EVERY).await;
        used.prune();
        assert!(used.lock().is_empty());
    }
}
