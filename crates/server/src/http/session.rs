//! Browser sessions: signing in exchanges a token, the local key or the code of a sign-in link for a cookie.

use crate::{
    App,
    auth::{
        Caller, client_scheme::ClientScheme, origin::OriginKind, request_source::RequestSource, session_cookie,
        sign_in_links::SIGN_IN_LINK_LIFETIME,
    },
    error::{Code, Problem, ProblemSchema},
    extract::JsonBody,
};
use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{actor::Credential, owner::Owner, time::Timestamp};
use serde::{Deserialize, Serialize};

/// The page of the web app that reads the code of a sign-in link.
pub const SIGN_IN_PAGE: &str = "/sign-in";

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// Whether every request must be authenticated. False only if the server was started with `--no-auth`.
    accounts: bool,
    /// Whether this request is authenticated: by its cookie or its token, or because nothing has to be.
    signed_in: bool,
    /// The owner whose data this request can see.
    name: Option<Owner>,
}

/// Get the session
///
/// Public: says whether this browser is signed in.
#[utoipa::path(get, path = "/api/session", tag = "session", responses((status = 200, body = SessionView)))]
pub async fn show(State(app): State<App>, request: Request) -> Result<Json<SessionView>, Problem> {
    let source = RequestSource::of(&request);
    let name = match app.authenticator.authenticate(request.headers(), &source).await {
        Ok(actor) => Some(actor.workspace),
        Err(problem) if problem.code().status() == StatusCode::UNAUTHORIZED => None,
        Err(problem) => return Err(problem),
    };
    let accounts = !app.authenticator.settings().no_auth;
    Ok(Json(SessionView { accounts, signed_in: name.is_some(), name }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// A token, or the local key of the server.
    #[schema(examples("grm_…"))]
    #[serde(default)]
    token: Option<String>,
    /// The code of a sign-in link, from its fragment.
    #[serde(default)]
    code: Option<String>,
}

/// Sign in
///
/// With a token or with the code of a sign-in link. Sets the cookie `greenroom_session` (`__Host-greenroom_session`
/// over https), which gives the same access, for pages of this server only. The session ends when the token is revoked or the local key changes, after 30 days, or on
/// sign-out.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn,
               responses((status = 204, headers(("Set-Cookie" = String))),
                         (status = 401, description = "The token or the code is not valid",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The body has neither a token nor a code, or both",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn sign_in(
    State(app): State<App>,
    origin_kind: Option<Extension<OriginKind>>,
    source: RequestSource,
    headers: HeaderMap,
    JsonBody(sign_in, _): JsonBody<SignIn>,
) -> Result<Response, Problem> {
    refuse_other_pages(origin_kind)?;
    let cookie = match (sign_in.token, sign_in.code) {
        (Some(token), None) => app.authenticator.sign_in_with_token(&token, source.client_address()).await?,
        (None, Some(code)) => app.authenticator.sign_in_with_code(&code, source.client_address()).await?,
        (None, None) | (Some(_), Some(_)) => {
            return Err(Problem::unprocessable("Send either a token or the code of a sign-in link."));
        }
    };
    // Ends the previous session of this browser.
    app.authenticator.sign_out(&headers, &source).await?;
    let value = session_cookie::set(&cookie, source.scheme())
        .ok_or_else(|| Problem::internal("the cookie is not a valid header"))?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, value)]).into_response())
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct SignInLink {
    /// The address to open. Its fragment has the code.
    url: String,
    expires_at: Timestamp,
}

/// Create a sign-in link
///
/// For the operator, with the local key only: the link signs one browser in, as the operator, within 10 minutes. `greenroom
/// auth link` does this.
#[utoipa::path(post, path = "/api/session/links", tag = "session",
               responses((status = 201, body = SignInLink)))]
pub async fn create_link(
    State(app): State<App>,
    caller: Caller,
    scheme: ClientScheme,
    headers: HeaderMap,
) -> Result<(StatusCode, Json<SignInLink>), Problem> {
    // A session by link belongs to no token, so a token must not create one: it would survive the token.
    if caller.credential != Credential::LocalKey {
        return Err(Problem::new(
            Code::Forbidden,
            "A sign-in link is created with the local key: run `greenroom auth link` on the server's machine.",
        ));
    }
    let code = app.authenticator.sign_in_links().create().map_err(Problem::internal)?;
    // The Host was checked: it is an address or a configured name of this server.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = sign_in_url(&format!("{}://{host}", scheme.as_str()), code.reveal());
    Ok((StatusCode::CREATED, Json(SignInLink { url, expires_at: Timestamp::now() + SIGN_IN_LINK_LIFETIME })))
}

/// The link for a server at this address. The code is in the fragment, which browsers send nowhere.
pub fn sign_in_url(server: &str, code: &str) -> String {
    format!("{server}{SIGN_IN_PAGE}#code={code}")
}

/// Sign out
///
/// Succeeds even if the browser is not signed in.
#[utoipa::path(delete, path = "/api/session", tag = "session", responses((status = 204)))]
pub async fn sign_out(
    State(app): State<App>,
    origin_kind: Option<Extension<OriginKind>>,
    source: RequestSource,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    refuse_other_pages(origin_kind)?;
    app.authenticator.sign_out(&headers, &source).await?;
    app.access_changes.announce();
    let values =
        session_cookie::clear(source.scheme()).ok_or_else(|| Problem::internal("the cookie is not a valid header"))?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    for value in values {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    Ok(response)
}

/// Pages that may not use the cookie may not sign users in or out.
fn refuse_other_pages(origin_kind: Option<Extension<OriginKind>>) -> Result<(), Problem> {
    match origin_kind {
        Some(Extension(OriginKind::OtherLocal | OriginKind::Configured { with_cookie: false })) => {
            Err(Problem::new(Code::ForbiddenOrigin, "Sign in and out from a page of this server."))
        }
        _ => Ok(()),
    }
}
