//! Access tokens for programs and browsers. A secret is shown once, when the token is created.

use crate::{
    App,
    auth::{Caller, token},
    error::{Code, Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{WriteOutcome, attempt, named_page::NamedPageParams, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::{Actor, Credential},
    ids::TokenId,
    name::Name,
    owner::Owner,
    scope::{Scope, Scopes},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{num::NonZeroU16, time::Duration};
use store::{NewToken, TokenRecord};

#[derive(Serialize, utoipa::ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    id: TokenId,
    name: String,
    /// The workspace in which it acts, and the user as whom.
    workspace: Owner,
    user: String,
    #[schema(value_type = Vec<Scope>)]
    scopes: Scopes,
    created_at: Timestamp,
    /// `null`: never.
    expires_at: Option<Timestamp>,
    /// Accurate to about a minute.
    last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    /// The token with which it was created, and with which it is revoked.
    created_with: Option<TokenId>,
    /// Whether this request was authenticated with it.
    current: bool,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TokenQuery {
    /// The tokens of all workspaces, revoked and expired ones too. Only for the operator.
    #[serde(default)]
    all: bool,
    /// Maximum number of tokens.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    limit: Option<u32>,
    /// The `next` of the previous page.
    #[param(min_length = 1)]
    after: Option<String>,
}

/// List your tokens
///
/// Valid tokens only, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", params(TokenQuery),
               responses((status = 200, body = TokenList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<TokenQuery>,
) -> Result<Json<TokenList>, Problem> {
    let found = match query.all {
        true => app.engine.all_tokens(&caller).await?,
        false => app.engine.tokens(&caller).await?,
    };
    let page = NamedPageParams { limit: query.limit, after: query.after };
    let (found, next) = page.cut(found, |token| token.id.to_string())?;
    let view = |token: TokenRecord| TokenView {
        id: token.id,
        name: token.label,
        workspace: token.owner,
        user: token.user,
        scopes: token.scopes,
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: token.last_used_at,
        revoked_at: token.revoked_at,
        created_with: token.parent,
        current: caller.credential.token() == Some(token.id),
    };
    Ok(Json(TokenList { tokens: found.into_iter().map(view).collect(), next }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewToken)]
pub struct TokenSpec {
    /// What the token is for.
    name: Name,
    /// What it may be used for; `["read","run"]` by default, at most what your own credential is for.
    #[serde(default = "read_and_run")]
    #[schema(value_type = Vec<Scope>, min_items = 1, required = false)]
    scopes: Scopes,
    /// 90 by default; `null` for a token that never expires. It does not outlive the token that creates it.
    #[serde(default = "ninety")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 65535)]
    expires_in_days: Option<NonZeroU16>,
    /// Your token, or the local key, once more. Needed with a cookie, so that a borrowed browser creates no token.
    #[serde(default)]
    confirm: Option<String>,
}

fn read_and_run() -> Scopes {
    Scopes::READ_AND_RUN
}

fn ninety() -> Option<NonZeroU16> {
    NonZeroU16::new(90)
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CreatedToken {
    id: TokenId,
    name: Name,
    /// The secret. It is not shown again.
    token: String,
    #[schema(value_type = Vec<Scope>)]
    scopes: Scopes,
    /// `null`: never.
    expires_at: Option<Timestamp>,
}

/// Create a token
///
/// It acts as you, for what its scopes say: `read`, `run`, `approve`, `admin`. With a cookie, `confirm` must repeat your token
/// or the local key. It is revoked with the token that creates it.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = TokenSpec,
               responses((status = 201, body = CreatedToken),
                         (status = 422, description = "There are too many tokens, or the scopes are more than yours",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<TokenSpec>,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    let attempt = attempt(key, fingerprint);
    // The secret that confirms also bounds the new token: its scopes, its end, and its parent.
    let confirmed = match caller.credential.is_bearer() {
        true => caller.0,
        false => confirmed(&app, caller.0, spec.confirm.as_deref()).await?,
    };
    let actor = &confirmed;
    let (secret, hash) = token::generate().map_err(Problem::internal)?;
    let day = Duration::from_secs(24 * 3600);
    let expires_at = spec.expires_in_days.map(|days| Timestamp::now() + day * u32::from(days.get()));
    let new = NewToken { label: spec.name.clone(), hash, scopes: spec.scopes, expires_at };
    let write = async { Ok(app.engine.create_token(actor, &new, attempt.as_ref()).await?) };
    match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done((id, expires_at)) => {
            let (name, scopes, token) = (spec.name, spec.scopes, secret.reveal().to_owned());
            let created = CreatedToken { id, name, token, scopes, expires_at };
            Ok((StatusCode::CREATED, Json(created)))
        }
        WriteOutcome::AlreadyDone(id) => Err(Problem::new(
            Code::Conflict,
            format!(
                "This Idempotency-Key created token {id}, whose secret was shown once; revoke it and create another."
            ),
        )),
    }
}

/// The caller as the secret proves it. Without a secret, only a server that asks for no credential goes on.
async fn confirmed(app: &App, caller: Actor, secret: Option<&str>) -> Result<Actor, Problem> {
    let is_caller = |owner: &Actor| owner.workspace == caller.workspace && owner.user_id() == caller.user_id();
    let confirmed = match secret {
        Some(secret) => app.authenticator.actor_for_text(secret).await?.filter(is_caller),
        None => None,
    };
    match confirmed {
        Some(confirmed) => Ok(confirmed),
        None if secret.is_none() && caller.credential == Credential::NoAuth => Ok(caller),
        None => Err(Problem::new(
            Code::Forbidden,
            "To create a token from a browser, repeat your token or the server's key (`greenroom auth header`) in `confirm`.",
        )),
    }
}

/// Revoke a token
///
/// Requests with it are refused from now on, and browser sessions and streams that were started with it end. Tokens that
/// were created with it are revoked too. The operator may revoke any token.
#[utoipa::path(delete, path = "/api/tokens/{id}", tag = "tokens", params(("id" = TokenId, Path)),
               responses((status = 204)))]
pub async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TokenId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.revoke_token(actor, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    app.access_changes.announce();
    Ok(StatusCode::NO_CONTENT)
}
