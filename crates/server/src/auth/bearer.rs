//! `Authorization: Bearer …` or the cookie of a visit → principal; and the local owner, who needs none while no account
//! exists. A pass is shown in the same header, and is for an agent's program.

use super::{origin::Reach, token, visit};
use crate::{
    error::{BoxError, Code, Problem},
    listen::Peer,
};
use axum::http::{HeaderMap, HeaderValue, header};
use domain::{
    ids::{TokenId, VisitId},
    owner::{Owner, Principal},
};
use engine::host_tools::pass::{PREFIX, Pass, Passes};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// How long "no account exists" is believed. The first `token create` closes the door within this time.
const ACCOUNTS_CACHE: Duration = Duration::from_secs(1);

/// What authentication needs from the store.
pub trait Accounts: Send + Sync {
    fn accounts_exist(&self) -> BoxFuture<'_, Result<bool, BoxError>>;

    fn token_is_good(&self, id: TokenId) -> BoxFuture<'_, Result<bool, BoxError>>;

    /// Whose token has this hash; `None` for an unknown or revoked one.
    fn principal_of(&self, token_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>>;

    fn begin_visit(&self, token: TokenId, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>>;

    fn end_visit(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>>;

    fn visit_is_good(&self, id: VisitId) -> BoxFuture<'_, Result<bool, BoxError>>;

    /// Whose browser shows the cookie with this hash; `None` once it is signed out.
    fn visitor(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>>;
}

impl Accounts for store::Store {
    fn accounts_exist(&self) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async { Ok(self.accounts_exist().await?) })
    }

    fn token_is_good(&self, id: TokenId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async move { Ok(self.token_is_good(id).await?) })
    }

    fn principal_of(&self, token_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>> {
        Box::pin(async move { Ok(self.principal_of(&token_sha256).await?) })
    }

    fn begin_visit(&self, token: TokenId, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.begin_visit(token, &cookie_sha256).await.map(drop)?) })
    }

    fn end_visit(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.end_visit(&cookie_sha256).await?) })
    }

    fn visit_is_good(&self, id: VisitId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async move { Ok(self.visit_is_good(id).await?) })
    }

    fn visitor(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>> {
        Box::pin(async move { Ok(self.visitor(&cookie_sha256).await?) })
    }
}

pub struct Bearer {
    accounts: Box<dyn Accounts>,
    exist: Mutex<Option<(Instant, bool)>>,
}

impl Bearer {
    pub fn new(accounts: Box<dyn Accounts>) -> Self {
        Self { accounts, exist: Mutex::new(None) }
    }

    /// A missing, malformed, unknown and revoked token get the same answer, and every shown token the same work: it is
    /// hashed and looked up by its hash, whatever it looks like.
    pub async fn principal(
        &self,
        headers: &HeaderMap,
        peer: Option<Peer>,
        reach: Option<Reach>,
    ) -> Result<Principal, Problem> {
        // Whoever shows one is no owner, also where an owner would need no token.
        if pass(headers).is_some() {
            return Err(unauthorized());
        }
        if let Some(shown) = shown(headers)
            && let Some(principal) =
                self.accounts.principal_of(token::hash(shown)).await.map_err(Problem::unavailable)?
        {
            return Ok(principal);
        }
        if let Some(cookie) = visit::shown(headers)
            && let Some(principal) = self.accounts.visitor(token::hash(cookie)).await.map_err(Problem::unavailable)?
        {
            return Ok(principal);
        }
        if comes_from_here(headers, peer, reach) && !self.accounts_exist().await.map_err(Problem::unavailable)? {
            return Ok(Principal { owner: Owner::local(), token: None, visit: None });
        }
        Err(unauthorized())
    }

    /// Whether someone who was let in earlier would still be: for streams, which outlive the check at their door.
    pub async fn recheck(&self, principal: &Principal) -> Result<(), Problem> {
        let welcome = match (principal.visit, principal.token) {
            (Some(visit), _) => self.accounts.visit_is_good(visit).await,
            (None, Some(token)) => self.accounts.token_is_good(token).await,
            (None, None) => self.accounts_exist().await.map(|exist| !exist),
        };
        if welcome.map_err(Problem::unavailable)? { Ok(()) } else { Err(unauthorized()) }
    }

    /// Begins a visit with a token and gives its cookie.
    pub async fn sign_in(&self, shown: &str) -> Result<token::Secret, Problem> {
        let sha256 = token::hash(shown.trim().as_bytes());
        let principal = self.accounts.principal_of(sha256).await.map_err(Problem::unavailable)?;
        let Some(token) = principal.and_then(|principal| principal.token) else { return Err(unauthorized()) };
        let (cookie, hash) = token::generate().map_err(Problem::internal)?;
        self.accounts.begin_visit(token, hash).await.map_err(Problem::unavailable)?;
        Ok(cookie)
    }

    pub async fn sign_out(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match visit::shown(headers) {
            Some(cookie) => self.accounts.end_visit(token::hash(cookie)).await.map_err(Problem::unavailable),
            None => Ok(()),
        }
    }

    /// To be said when the first token was made here: the door closes at once.
    pub fn ask_again(&self) {
        *self.exist.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    pub async fn accounts_exist(&self) -> Result<bool, BoxError> {
        let known = *self.exist.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((at, exist)) = known
            && at.elapsed() < ACCOUNTS_CACHE
        {
            return Ok(exist);
        }
        // Taken before the question: the answer is never believed for longer than it is true.
        let asked = Instant::now();
        let exist = self.accounts.accounts_exist().await?;
        *self.exist.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((asked, exist));
        Ok(exist)
    }
}

/// The pass that was shown, good or not. No token looks like one.
pub fn pass(headers: &HeaderMap) -> Option<&[u8]> {
    shown(headers).filter(|shown| shown.starts_with(PREFIX.as_bytes()))
}

/// The process that this pass was given to. It runs on this machine: from anywhere else the pass is a stolen one.
pub fn agent(
    passes: &Passes,
    shown: &[u8],
    headers: &HeaderMap,
    peer: Option<Peer>,
    reach: Option<Reach>,
) -> Result<Arc<Pass>, Problem> {
    let is_beside = |peer: Peer| peer.remote.ip().to_canonical() == peer.local.ip().to_canonical();
    let is_here = reach == Some(Reach::Local) && !is_proxied(headers) && peer.is_some_and(is_beside);
    passes.find(shown).filter(|_| is_here).ok_or_else(unauthorized)
}

/// The bytes after `Bearer`; a second header or another scheme counts as none.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A loopback peer is not enough: a proxy on this machine has one too, and speaks for strangers. It gives itself away
/// by the headers it adds or by the public name it was asked for.
fn comes_from_here(headers: &HeaderMap, peer: Option<Peer>, reach: Option<Reach>) -> bool {
    let by_loopback = peer.is_some_and(|peer| peer.remote.ip().to_canonical().is_loopback());
    by_loopback && reach == Some(Reach::Local) && !is_proxied(headers)
}

fn is_proxied(headers: &HeaderMap) -> bool {
    headers.contains_key(header::FORWARDED) || headers.contains_key("x-forwarded-for")
}

fn unauthorized() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "Send a valid token in the header `Authorization: Bearer grm_…`, or sign in with one; `greenroom token create` \
         makes one.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

#[cfg(test)]
mod tests {
    use super::shown;
    use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    #[test]
    fn reads_one_bearer_header_and_nothing_else() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            shown(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(read(&["Bearer grm_x"]).unwrap(), b"grm_x");
        assert_eq!(read(&["bEARER  grm_x "]).unwrap(), b"grm_x");
        assert_eq!(read(&["Bearer "]).unwrap(), b"");
        for none in [&[][..], &["Basic Zm9v"], &["Bearer"], &["é"], &["Bearer a", "Bearer b"]] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
