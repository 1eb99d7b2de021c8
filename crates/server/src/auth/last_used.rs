//! Records when a token was last used: in the background, and at most once a minute per token.

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
        let accounts = app.engine.accounts();
        app.background.spawn(async move {
            if let Err(error) = accounts.record_token_use(token).await {
                tracing::debug!(%token, %error, "could not record the last use of a token");
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
    async fn the_use_of_a_token_is_recorded_once_a_minute() {
        let (used, token) = (LastUsed::default(), TokenId::generate());
        assert!(used.is_due(token) && !used.is_due(token));
        assert!(used.is_due(TokenId::generate()), "tokens are independent");
        tokio::time::advance(EVERY).await;
        assert!(used.is_due(token));
        tokio::time::advance(EVERY).await;
        used.prune();
        assert!(used.lock().is_empty());
    }
}
