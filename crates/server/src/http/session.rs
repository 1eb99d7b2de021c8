//! Browser sessions: signing in exchanges a token for a cookie.

use crate::{
    App,
    auth::{
        origin::{HostKind, OriginKind},
        session_cookie,
    },
    error::{Code, Problem},
    extract::JsonBody,
    listen::ConnectionAddrs,
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
#[schema(as = Session)]
pub struct SessionView {
    /// Whether tokens exist. If so, every request must be authenticated.
    accounts: bool,
    /// Whether this request is authenticated: by its cookie, its token, or as the local owner while no accounts exist.
    signed_in: bool,
    /// The owner whose data this request can see.
    name: Option<Owner>,
}

/// Get the session
#[utoipa::path(get, path = "/api/session", tag = "session", responses((status = 200, body = SessionView)))]
pub async fn show(
    State(app): State<App>,
    peer: Option<Extension<ConnectionAddrs>>,
    host_kind: Option<Extension<HostKind>>,
    headers: HeaderMap,
) -> Result<Json<SessionView>, Problem> {
    let accounts = app.authenticator.accounts_exist().await.map_err(Problem::unavailable)?;
    let (peer, host_kind) = (peer.map(|Extension(peer)| peer), host_kind.map(|Extension(host_kind)| host_kind));
    let name = match app.authenticator.authenticate(&headers, peer, host_kind).await {
        Ok(actor) => Some(actor.workspace),
        Err(problem) if problem.code() == Code::Unauthorized => None,
        Err(problem) => return Err(problem),
    };
    Ok(Json(SessionView { accounts, signed_in: name.is_some(), name }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    #[schema(examples("grm_…"))]
    token: String,
}

/// Sign in
///
/// Sets the cookie `greenroom_session`, which gives the same access as the token, for pages of this server only. The
/// session ends when the token is revoked, after 30 days, or on sign-out.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn,
               responses((status = 204, headers(("Set-Cookie" = String))),
                         (status = 401, description = "The token is not valid",
                          content_type = "application/problem+json", body = crate::error::ProblemSchema)))]
pub async fn sign_in(
    State(app): State<App>,
    origin_kind: Option<Extension<OriginKind>>,
    headers: HeaderMap,
    JsonBody(sign_in, _): JsonBody<SignIn>,
) -> Result<Response, Problem> {
    refuse_other_local_pages(origin_kind)?;
    let cookie = app.authenticator.sign_in(&sign_in.token).await?;
    // Ends the previous session of this browser.
    app.authenticator.sign_out(&headers).await?;
    let value =
        session_cookie::set(&cookie, &headers).ok_or_else(|| Problem::internal("the cookie is not a valid header"))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, value)]).into_response())
}

/// Sign out
///
/// Succeeds even if the browser is not signed in.
#[utoipa::path(delete, path = "/api/session", tag = "session", responses((status = 204)))]
pub async fn sign_out(
    State(app): State<App>,
    origin_kind: Option<Extension<OriginKind>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    refuse_other_local_pages(origin_kind)?;
    app.authenticator.sign_out(&headers).await?;
    let value = session_cookie::clear(&headers).ok_or_else(|| Problem::internal("the cookie is not a valid header"))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, value)]).into_response())
}

/// Pages on other ports of this machine may not sign users in or out.
fn refuse_other_local_pages(origin_kind: Option<Extension<OriginKind>>) -> Result<(), Problem> {
    match origin_kind {
        Some(Extension(OriginKind::OtherLocal)) => {
            Err(Problem::new(Code::ForbiddenOrigin, "Sign in and out from a page of this server."))
        }
        _ => Ok(()),
    }
}
