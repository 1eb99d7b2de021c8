//! How requests authenticate: maps `Authorization: Bearer …` or the session cookie to an actor. Without either, a request
//! is refused (invariant 21), unless the server was started with `--no-auth`. Agent tokens use the same header and are for
//! agents' programs. `auth::guard` authenticates every request with it.

use super::{AccountStore, request_source::RequestSource, session_cookie, sign_in_links::SignInLinks, token};
use crate::error::{Code, Problem};
use axum::http::{HeaderMap, HeaderValue, header};
use domain::actor::{Actor, Credential};
use engine::{AgentAccess, Engine, is_agent_token};
use std::net::IpAddr;

/// How requests prove who sends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthSettings {
    /// The hash of the local key, which makes its holder the operator.
    pub local_key_sha256: [u8; 32],
    /// Whether direct requests on loopback need no credential.
    pub no_auth: bool,
}

pub struct Authenticator {
    accounts: Box<dyn AccountStore>,
    settings: AuthSettings,
    links: SignInLinks,
}

impl Authenticator {
    pub fn new(accounts: Box<dyn AccountStore>, settings: AuthSettings) -> Self {
        Self { accounts, settings, links: SignInLinks::default() }
    }

    pub fn settings(&self) -> AuthSettings {
        self.settings
    }

    /// The one-time codes that sign the operator's browser in.
    pub fn sign_in_links(&self) -> &SignInLinks {
        &self.links
    }

    /// Missing, malformed, unknown and revoked tokens get the same response. Every token costs the same work: it is
    /// hashed and looked up by its hash.
    pub async fn authenticate(&self, headers: &HeaderMap, source: &RequestSource) -> Result<Actor, Problem> {
        // An agent token never authenticates a person, not even where a person needs no token.
        if agent_token(headers).is_some() {
            return Err(unauthorized());
        }
        if let Some(secret) = bearer_token(headers)
            && let Some(actor) = self.actor_for_secret(token::hash(secret)).await?
        {
            return Ok(actor);
        }
        if let Some(cookie) = session_cookie::cookie_value(headers, source.scheme())
            && let Some(actor) = self.actor_for_cookie(token::hash(cookie)).await?
        {
            return Ok(actor);
        }
        if self.settings.no_auth && !headers.contains_key(header::AUTHORIZATION) {
            source.refuse_unless_local(headers)?;
            return Ok(Actor { credential: Credential::NoAuth, ..Actor::local() });
        }
        Err(unauthorized())
    }

    /// The actor of a token, or of the local key, that a person typed.
    pub async fn actor_for_text(&self, secret: &str) -> Result<Option<Actor>, Problem> {
        // People paste what `greenroom auth header` prints, too.
        let secret = secret.trim();
        let secret = secret.strip_prefix("Authorization:").map_or(secret, str::trim_start);
        let secret = secret.strip_prefix("Bearer ").unwrap_or(secret).trim();
        self.actor_for_secret(token::hash(secret.as_bytes())).await
    }

    async fn actor_for_secret(&self, sha256: [u8; 32]) -> Result<Option<Actor>, Problem> {
        if token::is_same(&sha256, &self.settings.local_key_sha256) {
            return Ok(Some(Actor::local()));
        }
        self.accounts.actor_for_token(sha256).await.map_err(Problem::unavailable)
    }

    async fn actor_for_cookie(&self, sha256: [u8; 32]) -> Result<Option<Actor>, Problem> {
        let key_hash = self.settings.local_key_sha256;
        self.accounts.actor_for_cookie(key_hash, sha256).await.map_err(Problem::unavailable)
    }

    /// Checks that an actor still has access, with the same role. For streams, which outlive the check of their request.
    pub async fn recheck(&self, actor: &Actor) -> Result<(), Problem> {
        let same = actor.role;
        let role = match actor.credential {
            Credential::BrowserSession { session, token: Some(_) } => {
                self.accounts.role_of_browser_session(session).await
            }
            Credential::BrowserSession { session, token: None } => {
                let valid = self.accounts.has_operator_session(self.settings.local_key_sha256, session).await;
                valid.map(|valid| valid.then_some(same))
            }
            Credential::Token(token) => self.accounts.role_of_token(token).await,
            // The key is the same as long as the server runs.
            Credential::LocalKey => Ok(Some(same)),
            Credential::NoAuth => Ok(self.settings.no_auth.then_some(same)),
            // These never authenticate a request of a person.
            Credential::Agent(_) | Credential::System => Ok(None),
        };
        match role.map_err(Problem::unavailable)? {
            Some(role) if role == actor.role => Ok(()),
            _ => Err(unauthorized()),
        }
    }

    /// Starts a browser session with a token or the local key and returns its cookie.
    pub async fn sign_in_with_token(
        &self,
        secret: &str,
        address: Option<IpAddr>,
    ) -> Result<token::TokenSecret, Problem> {
        let actor = self.actor_for_text(secret).await?.ok_or_else(unauthorized)?.at(address);
        let (cookie, hash) = token::generate().map_err(Problem::internal)?;
        match actor.credential.token() {
            Some(token) => {
                self.accounts.begin_browser_session(actor, token, hash).await.map_err(Problem::unavailable)?;
            }
            None => self.begin_operator_session(hash, address).await?,
        }
        Ok(cookie)
    }

    /// Starts a browser session of the operator with the code of a sign-in link and returns its cookie.
    pub async fn sign_in_with_code(&self, code: &str, address: Option<IpAddr>) -> Result<token::TokenSecret, Problem> {
        if !self.links.redeem(code) {
            return Err(Problem::new(
                Code::Unauthorized,
                "This sign-in link was used already, is older than 10 minutes or is from an earlier start of the \
                 server; `greenroom auth link` prints a new one.",
            )
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        let (cookie, hash) = token::generate().map_err(Problem::internal)?;
        self.begin_operator_session(hash, address).await?;
        Ok(cookie)
    }

    async fn begin_operator_session(&self, cookie_sha256: [u8; 32], address: Option<IpAddr>) -> Result<(), Problem> {
        let (actor, key_hash) = (Actor::local().at(address), self.settings.local_key_sha256);
        self.accounts.begin_operator_session(actor, key_hash, cookie_sha256).await.map_err(Problem::unavailable)
    }

    pub async fn sign_out(&self, headers: &HeaderMap, source: &RequestSource) -> Result<(), Problem> {
        let Some(cookie) = session_cookie::cookie_value(headers, source.scheme()) else { return Ok(()) };
        let hash = token::hash(cookie);
        match self.actor_for_cookie(hash).await? {
            Some(actor) => {
                let actor = actor.at(source.client_address());
                self.accounts.end_browser_session(actor, hash).await.map_err(Problem::unavailable)
            }
            None => Ok(()),
        }
    }
}

/// The agent token in the request, valid or not. The prefix tells it from an access token.
pub fn agent_token(headers: &HeaderMap) -> Option<&[u8]> {
    bearer_token(headers).filter(|secret| is_agent_token(secret))
}

/// Finds the process that an agent token was issued to. The process runs on this machine, so a token from any other
/// machine was stolen and is refused.
pub fn authenticate_agent(
    engine: &Engine,
    secret: &[u8],
    headers: &HeaderMap,
    source: &RequestSource,
) -> Result<AgentAccess, Problem> {
    engine.agent_access(secret).filter(|_| source.is_direct(headers)).ok_or_else(unauthorized)
}

/// The bytes after `Bearer`. Two headers or another scheme count as no token.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn unauthorized() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "Send a valid token in the header `Authorization: Bearer grm_…`, or sign in. On the server's machine, \
         `greenroom auth header` prints such a header, `greenroom auth link` a link that signs a browser in.",
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
