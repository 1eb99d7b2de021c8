//! Maps `Authorization: Bearer …` or the session cookie to a actor. While no account exists, the local owner needs
//! neither. Agent tokens use the same header and are for agents' programs.

use super::{origin::HostKind, session_cookie, token};
use crate::{
    error::{BoxError, Code, Problem},
    listen::ConnectionAddrs,
};
use axum::http::{HeaderMap, HeaderValue, header};
use domain::{
    actor::{Actor, Credential},
    ids::{BrowserSessionId, TokenId},
    permission::Role,
};
use engine::Accounts;
use engine::agent_tokens::{AGENT_TOKEN_PREFIX, AgentToken, AgentTokenScope, AgentTokens};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// How long "no account exists" is cached. Unauthenticated access ends within this time of the first `token create`.
const ACCOUNTS_CACHE: Duration = Duration::from_secs(1);

/// What authentication needs from the store.
pub trait AccountStore: Send + Sync {
    fn accounts_exist(&self) -> BoxFuture<'_, Result<bool, BoxError>>;

    /// The current role of a token; `None` if the token is no longer valid.
    fn role_of_token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Role>, BoxError>>;

    /// The actor of the token with this hash; `None` if it is unknown or revoked.
    fn actor_for_token(&self, token_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>>;

    /// Starts a browser session of the actor, whose token this is.
    fn begin_browser_session(
        &self,
        actor: Actor,
        token: TokenId,
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<(), BoxError>>;

    fn end_browser_session(&self, actor: Actor, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>>;

    /// The current role of a browser session; `None` if the session is no longer valid.
    fn role_of_browser_session(&self, id: BrowserSessionId) -> BoxFuture<'_, Result<Option<Role>, BoxError>>;

    /// The actor of the browser session whose cookie has this hash; `None` once it is signed out.
    fn actor_for_cookie(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>>;
}

impl AccountStore for Accounts {
    fn accounts_exist(&self) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async { Ok(self.exist().await?) })
    }

    fn role_of_token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Role>, BoxError>> {
        Box::pin(async move { Ok(self.role_of_token(id).await?) })
    }

    fn actor_for_token(&self, token_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>> {
        Box::pin(async move { Ok(self.actor_for_token(&token_sha256).await?) })
    }

    fn begin_browser_session(
        &self,
        actor: Actor,
        token: TokenId,
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.sign_in(&actor, token, &cookie_sha256).await?) })
    }

    fn end_browser_session(&self, actor: Actor, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.sign_out(&actor, &cookie_sha256).await?) })
    }

    fn role_of_browser_session(&self, id: BrowserSessionId) -> BoxFuture<'_, Result<Option<Role>, BoxError>> {
        Box::pin(async move { Ok(self.role_of_browser_session(id).await?) })
    }

    fn actor_for_cookie(&self, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>> {
        Box::pin(async move { Ok(self.actor_for_cookie(&cookie_sha256).await?) })
    }
}

pub struct Authenticator {
    accounts: Box<dyn AccountStore>,
    accounts_cache: Mutex<Option<(Instant, bool)>>,
}

impl Authenticator {
    pub fn new(accounts: Box<dyn AccountStore>) -> Self {
        Self { accounts, accounts_cache: Mutex::new(None) }
    }

    /// Missing, malformed, unknown and revoked tokens get the same response. Every token costs the same work: it is
    /// hashed and looked up by its hash.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: Option<ConnectionAddrs>,
        host_kind: Option<HostKind>,
    ) -> Result<Actor, Problem> {
        // An agent token never authenticates an owner, not even where an owner needs no token.
        if agent_token(headers).is_some() {
            return Err(unauthorized());
        }
        if let Some(secret) = bearer_token(headers)
            && let Some(actor) =
                self.accounts.actor_for_token(token::hash(secret)).await.map_err(Problem::unavailable)?
        {
            return Ok(actor);
        }
        if let Some(cookie) = session_cookie::cookie_value(headers)
            && let Some(actor) =
                self.accounts.actor_for_cookie(token::hash(cookie)).await.map_err(Problem::unavailable)?
        {
            return Ok(actor);
        }
        if is_local_request(headers, peer, host_kind) && !self.accounts_exist().await.map_err(Problem::unavailable)? {
            return Ok(Actor::local());
        }
        Err(unauthorized())
    }

    /// Checks that an actor still has access, with the same role. For streams, which outlive the check of their request.
    pub async fn recheck(&self, actor: &Actor) -> Result<(), Problem> {
        let role = match actor.credential {
            Credential::BrowserSession { session, .. } => self.accounts.role_of_browser_session(session).await,
            Credential::Token(token) => self.accounts.role_of_token(token).await,
            Credential::Local => self.accounts_exist().await.map(|exist| (!exist).then_some(actor.role)),
            // These never authenticate a request of a person.
            Credential::Agent(_) | Credential::System => Ok(None),
        };
        match role.map_err(Problem::unavailable)? {
            Some(role) if role == actor.role => Ok(()),
            _ => Err(unauthorized()),
        }
    }

    /// Starts a browser session with a token and returns its cookie.
    pub async fn sign_in(&self, secret: &str) -> Result<token::TokenSecret, Problem> {
        let sha256 = token::hash(secret.trim().as_bytes());
        let actor = self.accounts.actor_for_token(sha256).await.map_err(Problem::unavailable)?;
        let token = actor.as_ref().and_then(|actor| actor.credential.token());
        let Some((actor, token)) = actor.zip(token) else { return Err(unauthorized()) };
        let (cookie, hash) = token::generate().map_err(Problem::internal)?;
        self.accounts.begin_browser_session(actor, token, hash).await.map_err(Problem::unavailable)?;
        Ok(cookie)
    }

    pub async fn sign_out(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(cookie) = session_cookie::cookie_value(headers) else { return Ok(()) };
        let hash = token::hash(cookie);
        match self.accounts.actor_for_cookie(hash).await.map_err(Problem::unavailable)? {
            Some(actor) => self.accounts.end_browser_session(actor, hash).await.map_err(Problem::unavailable),
            None => Ok(()),
        }
    }

    /// Drops the cached answer. Call it after creating the first token, so that unauthenticated access ends at once.
    pub fn clear_accounts_cache(&self) {
        *self.accounts_cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    pub async fn accounts_exist(&self) -> Result<bool, BoxError> {
        let known = *self.accounts_cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((at, exist)) = known
            && at.elapsed() < ACCOUNTS_CACHE
        {
            return Ok(exist);
        }
        // Taken before the query, so that the cached answer is never older than its timestamp.
        let queried_at = Instant::now();
        let exist = self.accounts.accounts_exist().await?;
        *self.accounts_cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((queried_at, exist));
        Ok(exist)
    }
}

/// The agent token in the request, valid or not. The prefix tells it from an access token.
pub fn agent_token(headers: &HeaderMap) -> Option<&[u8]> {
    bearer_token(headers).filter(|secret| secret.starts_with(AGENT_TOKEN_PREFIX.as_bytes()))
}

/// Finds the process that an agent token was issued to. The process runs on this machine, so a token from any other
/// machine was stolen and is refused.
pub fn authenticate_agent(
    tokens: &AgentTokens,
    secret: &[u8],
    headers: &HeaderMap,
    peer: Option<ConnectionAddrs>,
    host_kind: Option<HostKind>,
) -> Result<Arc<AgentToken>, Problem> {
    let is_same_machine = |peer: ConnectionAddrs| peer.remote.ip().to_canonical() == peer.local.ip().to_canonical();
    let is_local = host_kind == Some(HostKind::Local) && !is_proxied(headers) && peer.is_some_and(is_same_machine);
    let is_allowed = |token: &Arc<AgentToken>| is_local && token.allows(AgentTokenScope::HostTools);
    tokens.find(secret).filter(is_allowed).ok_or_else(unauthorized)
}

/// The bytes after `Bearer`. Two headers or another scheme count as no token.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A loopback address is not enough: a proxy on this machine has one too and forwards requests of other machines. It is
/// recognized by the headers it adds or by the public host name.
fn is_local_request(headers: &HeaderMap, peer: Option<ConnectionAddrs>, host_kind: Option<HostKind>) -> bool {
    let by_loopback = peer.is_some_and(|peer| peer.remote.ip().to_canonical().is_loopback());
    by_loopback && host_kind == Some(HostKind::Local) && !is_proxied(headers)
}

fn is_proxied(headers: &HeaderMap) -> bool {
    headers.contains_key(header::FORWARDED) || headers.contains_key("x-forwarded-for")
}

fn unauthorized() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "Send a valid token in the header `Authorization: Bearer grm_…`, or sign in with one; create one with \
         `greenroom token create`.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

#[cfg(test)]
mod tests {
    use super::bearer_token;
    use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    #[test]
    fn reads_one_bearer_header_and_nothing_else() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            bearer_token(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(read(&["Bearer grm_x"]).unwrap(), b"grm_x");
        assert_eq!(read(&["bEARER  grm_x "]).unwrap(), b"grm_x");
        assert_eq!(read(&["Bearer "]).unwrap(), b"");
        for none in [&[][..], &["Basic Zm9v"], &["Bearer"], &["é"], &["Bearer a", "Bearer b"]] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
