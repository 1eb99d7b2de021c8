//! Authentication and access control: how requests are authenticated, and what each may do. Every route has a policy (see
//! [`crate::routing`]); this folder enforces it: Host and Origin first, then the local key, access token, session cookie or
//! agent token, then the rate limit. It knows no SQL: it reads accounts through [`AccountStore`].
//!
//! Start at [`guard`].

pub mod access_changes;
pub mod account_store;
pub mod authenticator;
pub mod client_address;
pub mod client_scheme;
pub mod cors;
pub mod last_used;
pub mod origin;
pub mod rate_limit;
pub mod refusals;
pub mod request_source;
pub mod session_cookie;
pub mod sign_in_links;
pub mod tickets;
pub mod token;

use crate::{
    App,
    error::{Code, Problem},
    extract::{self, Fingerprint},
    representation::{self, WantedForm},
    routing::{Policy, RouteGuard},
};
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderValue, Method, header, request},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use domain::actor::{Actor, Credential};
use engine::AgentAccess;
use request_source::RequestSource;
use std::{net::SocketAddr, ops::Deref};
use tickets::RedeemedTicket;

pub use account_store::AccountStore;
pub use authenticator::{AuthSettings, Authenticator};
pub use cors::CorsSettings;

/// The caller of this request, for routes with [`Policy::Needs`].
#[derive(Clone, Debug)]
pub struct Caller(pub Actor);

impl Deref for Caller {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.0
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &App) -> Result<Self, Problem> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| Problem::internal("the handler of a public route asked for its caller"))
    }
}

/// The caller of this request, for routes with [`Policy::NeedsOrHostTools`].
#[derive(Clone, Debug)]
pub enum Requester {
    Owner(Actor),
    Agent(AgentAccess),
}

impl FromRequestParts<App> for Requester {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        match parts.extensions.get::<AgentAccess>() {
            Some(access) => Ok(Self::Agent(access.clone())),
            None => Caller::from_request_parts(parts, app).await.map(|Caller(actor)| Self::Owner(actor)),
        }
    }
}

/// Middleware that runs before every handler. [`crate::routing::RouterBuilder`] adds it to every route.
pub async fn guard(State((app, gate)): State<(App, RouteGuard)>, request: Request, next: Next) -> Response {
    let mut admission = Admission::default();
    let admitted = admit(&app, gate, request, &mut admission).await;
    let Admission { caller, requests_left } = admission;
    let mut response = match admitted {
        Ok(request) => {
            let wanted = WantedForm::of(request.method(), request.headers());
            let response = representation::finish(wanted, next.run(request).await).await;
            match &caller {
                Some(user) => app.shares.count_unsent(user, response).await.unwrap_or_else(Problem::into_response),
                None => response,
            }
        }
        Err(problem) => problem.into_response(),
    };
    if let Some(left) = requests_left {
        app.rate_limiter.describe(left, response.headers_mut());
    }
    if let Some(actor) = caller.filter(|_| refusals::is_refusal(response.status())) {
        response.extensions_mut().insert(refusals::RefusedCaller(actor));
    }
    response
}

/// What is known about a request before its handler runs, also if it is refused.
#[derive(Default)]
struct Admission {
    /// Set once the request is authenticated.
    caller: Option<Actor>,
    /// Set once the request is counted.
    requests_left: Option<u32>,
}

/// Checks a request and returns it for its handler.
async fn admit(
    app: &App,
    gate: RouteGuard,
    mut request: Request,
    admission: &mut Admission,
) -> Result<Request, Problem> {
    let source = RequestSource::of(&request);
    let by_address = rate_limit::RateLimitKey::for_address(source.client_address());
    match gate.policy.permission() {
        None if !gate.is_counted => {}
        None => admission.requests_left = Some(app.rate_limiter.check(&by_address)?),
        Some(permission) => {
            origin::refuse_cross_site(request.headers())?;
            let ticket = match gate.policy {
                // A response without a body must not start a run.
                Policy::NeedsBearerOrTicket(_) if request.method() == Method::HEAD => return Err(no_head()),
                Policy::NeedsBearerOrTicket(_) => ticket_of(&request),
                Policy::Public | Policy::Needs(_) | Policy::NeedsOrHostTools(_) => None,
            };
            let mut redeemed = None;
            let requester = match authenticator::agent_token(request.headers()) {
                Some(token) if matches!(gate.policy, Policy::NeedsOrHostTools(_)) => {
                    authenticator::authenticate_agent(&app.engine, token, request.headers(), &source)
                        .map(Requester::Agent)
                }
                _ => match ticket {
                    Some(ticket) => {
                        let fingerprint = Fingerprint::of(request.method(), request.uri(), &[]);
                        redeem(app, ticket, fingerprint).await.map(|(actor, ticket)| {
                            redeemed = Some(ticket);
                            Requester::Owner(actor)
                        })
                    }
                    None => app.authenticator.authenticate(request.headers(), &source).await.map(Requester::Owner),
                },
            };
            match requester {
                Ok(Requester::Owner(actor)) => {
                    let actor = admission.caller.insert(actor.at(source.client_address())).clone();
                    if matches!(actor.credential, Credential::BrowserSession { .. }) {
                        origin::refuse_other_pages(&request)?;
                    }
                    if !actor.credential.is_bearer() {
                        origin::refuse_simple_body(&request)?;
                        if matches!(gate.policy, Policy::NeedsBearerOrTicket(_)) && redeemed.is_none() {
                            return Err(cookie_is_not_enough());
                        }
                    }
                    if let Some(token) = actor.credential.token() {
                        app.last_used.note(app, token);
                    }
                    let key = rate_limit::RateLimitKey::for_actor(&actor, by_address);
                    admission.requests_left = Some(app.rate_limiter.check(&key)?);
                    actor.require(permission)?;
                    request.extensions_mut().insert(Caller(actor));
                    if let Some(ticket) = redeemed {
                        request.extensions_mut().insert(ticket);
                    }
                }
                Ok(Requester::Agent(access)) => {
                    let key = rate_limit::RateLimitKey::AgentToken(access.number());
                    admission.requests_left = Some(app.rate_limiter.check(&key)?);
                    request.extensions_mut().insert(access);
                }
                // Failed attempts are counted by address, which limits guessing.
                Err(problem) => return Err(app.rate_limiter.check(&by_address).err().unwrap_or(problem)),
            }
        }
    }
    extract::body::refuse_other_forms(request.headers())?;
    extract::body::refuse_oversize(request, gate.max_body_bytes).await
}

/// The ticket in the URL. Tickets have no characters that a URL escapes.
fn ticket_of(request: &Request) -> Option<&str> {
    request.uri().query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="))
}

async fn redeem(app: &App, ticket: &str, request: Fingerprint) -> Result<(Actor, RedeemedTicket), Problem> {
    let refused = || {
        let why = "This ticket was used for another request or has expired; POST /api/tickets creates one.";
        Problem::new(Code::Unauthorized, why)
    };
    let (actor, ticket) = app.tickets.redeem(ticket.as_bytes(), request).ok_or_else(refused)?;
    // What gave the ticket may be revoked by now.
    app.authenticator.recheck(&actor).await?;
    Ok((actor, ticket))
}

fn no_head() -> Problem {
    Problem::new(Code::MethodNotAllowed, "This path does not support HEAD: a GET of it runs the agent.")
        .header(header::ALLOW, HeaderValue::from_static("GET, POST"))
}

fn cookie_is_not_enough() -> Problem {
    Problem::new(
        Code::Forbidden,
        "A cookie is not enough for a GET that runs an agent, because a link would send it too: send a token, POST instead, \
         or add ?ticket= from POST /api/tickets.",
    )
}

/// Refuses to listen on a non-loopback address without authentication: anyone who can connect would have full access.
pub fn refuse_open_bind(listen: SocketAddr, no_auth: bool) -> Result<(), String> {
    if !no_auth || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "Greenroom does not listen on {listen} with --no-auth: other machines can reach this address, so anyone could \
         use it. Leave --no-auth out, or listen on 127.0.0.1:{}.",
        listen.port()
    ))
}

/// Refuses to serve other machines in clear: who is on the way would read tokens and cookies.
pub fn refuse_plain_bind(listen: SocketAddr, is_encrypted: bool) -> Result<(), String> {
    if is_encrypted || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "Greenroom does not listen on {listen} without TLS: other machines can reach this address, and tokens and cookies \
         would travel unencrypted. Use --tls-self-signed, or --tls-certificate FILE --tls-key FILE; or, if a proxy with TLS \
         is in front and nothing else can reach this address, --behind-tls-proxy; or listen on 127.0.0.1:{}.",
        listen.port()
    ))
}

#[cfg(test)]
mod tests {
    use super::{refuse_open_bind, refuse_plain_bind};

    #[test]
    fn m13_a_non_loopback_address_needs_tls_or_a_proxy_with_it() {
        for loopback in ["127.0.0.1:7878", "[::1]:7878", "[::ffff:127.0.0.1]:7878"] {
            assert_eq!(refuse_plain_bind(loopback.parse().unwrap(), false), Ok(()), "{loopback}");
        }
        for open in ["0.0.0.0:7878", "[::]:7878", "192.168.1.4:80"] {
            let message = refuse_plain_bind(open.parse().unwrap(), false).unwrap_err();
            assert!(message.contains("--behind-tls-proxy") && message.contains("--tls-self-signed"), "{message}");
            assert_eq!(refuse_plain_bind(open.parse().unwrap(), true), Ok(()), "{open}");
        }
    }

    #[test]
    fn c2_a_non_loopback_address_needs_authentication() {
        for loopback in ["127.0.0.1:7878", "127.8.8.8:1", "[::1]:7878", "[::ffff:127.0.0.1]:7878"] {
            assert_eq!(refuse_open_bind(loopback.parse().unwrap(), true), Ok(()), "{loopback}");
        }
        for open in ["0.0.0.0:7878", "[::]:7878", "192.168.1.4:80", "8.8.8.8:7878"] {
            let message = refuse_open_bind(open.parse().unwrap(), true).unwrap_err();
            assert!(message.contains("--no-auth") && message.contains("127.0.0.1"), "{message}");
            assert_eq!(refuse_open_bind(open.parse().unwrap(), false), Ok(()), "{open}");
        }
    }
}
