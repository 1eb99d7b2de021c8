//! Who is asking. Every door has a policy (see [`crate::doors`]); this folder enforces it: Host and Origin first, then
//! the bearer token, the cookie of a visit or the pass of an agent's program, then the rate limit. It knows no SQL: what it
//! needs from the store is [`Accounts`].
//!
//! Start at [`guard`].

pub mod bearer;
pub mod last_used;
pub mod origin;
pub mod rate;
pub mod token;
pub mod visit;

use crate::{
    App,
    doors::{Gate, Policy},
    error::Problem,
    extract,
    listen::Peer,
};
use axum::{
    extract::{FromRequestParts, Request, State},
    http::request,
    middleware::Next,
    response::Response,
};
use domain::owner::Principal;
use engine::host_tools::pass::Pass;
use std::{net::SocketAddr, ops::Deref, sync::Arc};

pub use bearer::{Accounts, Bearer};

/// The caller of this request, for handlers behind [`Policy::Owner`].
#[derive(Clone, Debug)]
pub struct Caller(pub Principal);

impl Deref for Caller {
    type Target = Principal;

    fn deref(&self) -> &Principal {
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
            .ok_or_else(|| Problem::internal("a handler behind a public door asked for its caller"))
    }
}

/// The caller of this request, for handlers behind [`Policy::OwnerOrAgent`].
#[derive(Clone, Debug)]
pub enum Guest {
    Owner(Principal),
    Agent(Arc<Pass>),
}

impl FromRequestParts<App> for Guest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        match parts.extensions.get::<Arc<Pass>>() {
            Some(pass) => Ok(Self::Agent(Arc::clone(pass))),
            None => Caller::from_request_parts(parts, app).await.map(|Caller(principal)| Self::Owner(principal)),
        }
    }
}

/// Stands before every handler. [`crate::doors::Doors`] puts it there; nothing else adds routes.
pub async fn guard(
    State((app, gate)): State<(App, Gate)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let peer = request.extensions().get::<Peer>().copied();
    let by_address = rate::Key::peer(peer.map(|peer| peer.remote.ip()));
    match gate.policy {
        Policy::Public => app.rate.check(&by_address)?,
        Policy::Owner | Policy::OwnerOrAgent => {
            origin::refuse_cross_site(request.headers())?;
            let reach = request.extensions().get::<origin::Reach>().copied();
            let admitted = match bearer::pass(request.headers()) {
                Some(shown) if gate.policy == Policy::OwnerOrAgent => {
                    let passes = app.engine.providers().passes();
                    bearer::agent(passes, shown, request.headers(), peer, reach).map(Guest::Agent)
                }
                _ => app.bearer.principal(request.headers(), peer, reach).await.map(Guest::Owner),
            };
            match admitted {
                Ok(Guest::Owner(principal)) => {
                    if principal.visit.is_some() {
                        origin::refuse_other_pages(&request)?;
                    }
                    if let Some(token) = principal.token {
                        app.last_used.note(&app, token);
                    }
                    app.rate.check(&principal.token.map_or(by_address, rate::Key::Token))?;
                    request.extensions_mut().insert(Caller(principal));
                }
                Ok(Guest::Agent(pass)) => {
                    app.rate.check(&rate::Key::Pass(pass.number()))?;
                    request.extensions_mut().insert(pass);
                }
                // Guessing is counted too, by address: there is no token to count by.
                Err(problem) => return Err(app.rate.check(&by_address).err().unwrap_or(problem)),
            }
        }
    }
    let request = extract::body::refuse_oversize(request, gate.body_bytes).await?;
    Ok(next.run(request).await)
}

/// An address that others can reach needs accounts: without them, whoever connects would own everything.
pub fn refuse_open_bind(listen: SocketAddr, accounts_exist: bool) -> Result<(), String> {
    if accounts_exist || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "Greenroom will not listen on {listen}: others can reach this address and there is no account yet, so anyone \
         could use it. Create one with `greenroom token create`, or listen on 127.0.0.1:{} to keep it to this machine.",
        listen.port()
    ))
}

#[cfg(test)]
mod tests {
    use super::refuse_open_bind;

    #[test]
    fn an_open_address_needs_an_account() {
        for loopback in ["127.0.0.1:7878", "127.8.8.8:1", "[::1]:7878", "[::ffff:127.0.0.1]:7878"] {
            assert_eq!(refuse_open_bind(loopback.parse().unwrap(), false), Ok(()), "{loopback}");
        }
        for open in ["0.0.0.0:7878", "[::]:7878", "192.168.1.4:80", "8.8.8.8:7878"] {
            let message = refuse_open_bind(open.parse().unwrap(), false).unwrap_err();
            assert!(message.contains("greenroom token create") && message.contains("127.0.0.1"), "{message}");
            assert_eq!(refuse_open_bind(open.parse().unwrap(), true), Ok(()), "{open}");
        }
    }
}
