//! Signing in with a browser: a token is shown once and a cookie takes its place.

use crate::{
    App,
    auth::{
        origin::{Asker, Reach},
        visit,
    },
    error::{Code, Problem},
    extract::Body,
    listen::Peer,
};
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::owner::Owner;
use serde::{Deserialize, Serialize};

#[derive(Serialize, utoipa::ToSchema)]
pub struct Session {
    /// Tokens exist: whoever is not signed in has to be.
    accounts: bool,
    /// This request would be let in: by its cookie, its token, or as the local owner while there are no accounts.
    signed_in: bool,
    /// Whose things they see.
    name: Option<Owner>,
}

/// Am I signed in?
#[utoipa::path(get, path = "/api/session", tag = "session", responses((status = 200, body = Session)))]
pub async fn show(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    reach: Option<Extension<Reach>>,
    headers: HeaderMap,
) -> Result<Json<Session>, Problem> {
    let accounts = app.bearer.accounts_exist().await.map_err(Problem::unavailable)?;
    let (peer, reach) = (peer.map(|Extension(peer)| peer), reach.map(|Extension(reach)| reach));
    let name = match app.bearer.principal(&headers, peer, reach).await {
        Ok(principal) => Some(principal.owner),
        Err(problem) if problem.code() == Code::Unauthorized => None,
        Err(problem) => return Err(problem),
    };
    Ok(Json(Session { accounts, signed_in: name.is_some(), name }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    #[schema(examples("grm_…"))]
    token: String,
}

/// Sign in
///
/// Sets the cookie `greenroom_session`, which opens every door that the token opens, for pages of this server only. It ends
/// with its token, after 30 days, or when it is signed out.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn,
               responses((status = 204, headers(("Set-Cookie" = String))),
                         (status = 401, description = "There is no such token",
                          content_type = "application/problem+json", body = crate::error::ProblemSchema)))]
pub async fn sign_in(
    State(app): State<App>,
    asker: Option<Extension<Asker>>,
    headers: HeaderMap,
    Body(sign_in, _): Body<SignIn>,
) -> Result<Response, Problem> {
    refuse_neighbours(asker)?;
    let cookie = app.bearer.sign_in(&sign_in.token).await?;
    // Whoever was signed in here before is not any more.
    app.bearer.sign_out(&headers).await?;
    let value = visit::set(&cookie, &headers).ok_or_else(|| Problem::internal("a cookie that is no header"))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, value)]).into_response())
}

/// Sign out
///
/// Whoever is not signed in is answered alike.
#[utoipa::path(delete, path = "/api/session", tag = "session", responses((status = 204)))]
pub async fn sign_out(
    State(app): State<App>,
    asker: Option<Extension<Asker>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    refuse_neighbours(asker)?;
    app.bearer.sign_out(&headers).await?;
    let value = visit::clear(&headers).ok_or_else(|| Problem::internal("a cookie that is no header"))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, value)]).into_response())
}

/// A page of another port of this machine is not to sign anybody in or out here.
fn refuse_neighbours(asker: Option<Extension<Asker>>) -> Result<(), Problem> {
    match asker {
        Some(Extension(Asker::Neighbour)) => {
            Err(Problem::new(Code::ForbiddenOrigin, "Sign in and out from a page of this server."))
        }
        _ => Ok(()),
    }
}
