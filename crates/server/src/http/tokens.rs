//! Access tokens for programs and browsers. A secret is shown once, when the token is created.

use crate::{
    App,
    auth::{Caller, token},
    error::{Code, Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody},
    http::{WriteOutcome, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{ids::TokenId, name::Name, time::Timestamp};
use serde::{Deserialize, Serialize};
use store::TokenRecord;

#[derive(Serialize, utoipa::ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    id: TokenId,
    name: String,
    created_at: Timestamp,
    /// Accurate to about a minute.
    last_used_at: Option<Timestamp>,
    /// Whether this request was authenticated with it.
    current: bool,
}

/// List your tokens
///
/// Valid tokens only, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", responses((status = 200, body = TokenList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<TokenList>, Problem> {
    let found = app.engine.tokens(&caller).await?.into_iter();
    let view = |TokenRecord { id, label, created_at, last_used_at, .. }| {
        let current = caller.credential.token() == Some(id);
        TokenView { id, name: label, created_at, last_used_at, current }
    };
    Ok(Json(TokenList { tokens: found.map(view).collect() }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What the token is for.
    name: Name,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CreatedToken {
    id: TokenId,
    name: Name,
    /// The secret. It is not shown again.
    token: String,
    /// Always false: every request must be authenticated from the first start on.
    turned_accounts_on: bool,
}

/// Create a token
///
/// It gives the same access that you have.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = NewToken,
               responses((status = 201, body = CreatedToken),
                         (status = 422, description = "There are too many tokens",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(NewToken { name }, fingerprint): JsonBody<NewToken>,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let (secret, hash) = token::generate().map_err(Problem::internal)?;
    let write = async { Ok(app.engine.create_token(actor, &name, &hash, attempt.as_ref()).await?) };
    match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(id) => {
            let token = secret.reveal().to_owned();
            Ok((StatusCode::CREATED, Json(CreatedToken { id, name, token, turned_accounts_on: false })))
        }
        WriteOutcome::AlreadyDone(id) => Err(Problem::new(
            Code::Conflict,
            format!(
                "This Idempotency-Key created token {id}, whose secret was shown once; revoke it and create another."
            ),
        )),
    }
}

/// Revoke a token
///
/// Requests with it are refused from now on, and browser sessions that were started with it end.
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
    Ok(StatusCode::NO_CONTENT)
}
