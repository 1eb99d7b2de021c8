//! One-time sign-in links for the operator's browser. A link carries a code in its fragment, which browsers never send:
//! no proxy and no log sees it. Codes are kept in memory only, by their hash.

use super::token::{self, TokenGenerationError, TokenSecret};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How long a link is valid.
pub const SIGN_IN_LINK_LIFETIME: Duration = Duration::from_secs(600);
/// How many links are valid at once; a new one replaces the oldest.
const MAX_LINKS: usize = 5;

#[derive(Debug, Default)]
pub struct SignInLinks(Mutex<Vec<([u8; 32], Instant)>>);

impl SignInLinks {
    /// Creates a code for one sign-in.
    pub fn create(&self) -> Result<TokenSecret, TokenGenerationError> {
        let (code, hash) = token::generate()?;
        let mut links = self.valid();
        if links.len() >= MAX_LINKS {
            links.remove(0);
        }
        links.push((hash, Instant::now() + SIGN_IN_LINK_LIFETIME));
        Ok(code)
    }

    /// Returns whether the code is valid, and uses it up.
    pub fn redeem(&self, code: &str) -> bool {
        let hash = token::hash(code.trim().as_bytes());
        let mut links = self.valid();
        match links.iter().position(|(known, _)| token::is_same(known, &hash)) {
            Some(at) => {
                links.remove(at);
                true
            }
            None => false,
        }
    }

    fn valid(&self) -> MutexGuard<'_, Vec<([u8; 32], Instant)>> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        links.retain(|(_, ends)| *ends > now);
        links
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINKS, SIGN_IN_LINK_LIFETIME, SignInLinks};

    #[tokio::test(start_paused = true)]
    async fn a_link_works_once_and_for_ten_minutes() {
        let links = SignInLinks::default();
        let (one, two) = (links.create().unwrap(), links.create().unwrap());
        assert!(!links.redeem("") && !links.redeem("grm_wrong"));
        assert!(links.redeem(one.reveal()) && !links.redeem(one.reveal()));
        tokio::time::advance(SIGN_IN_LINK_LIFETIME).await;
        assert!(!links.redeem(two.reveal()), "it has expired");
        let many: Vec<_> = (0..=MAX_LINKS).map(|_| links.create().unwrap()).collect();
        let good = many.iter().filter(|code| links.redeem(code.reveal())).count();
        assert_eq!(good, MAX_LINKS, "the oldest was replaced");
    }
}
