//! Tokens: what programs and browsers show to be let in. A secret is shown once, when it is made.

use crate::{
    App,
    auth::{Caller, token},
    error::{Code, Problem, ProblemSchema},
    extract::{Body, Fingerprint, Id, IdempotencyKey},
    http::{Write, attempt, once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{ids::TokenId, name::Name, time::Timestamp};
use serde::{Deserialize, Serialize};
use store::TokenRecord;

#[derive(Serialize, utoipa::ToSchema)]
pub struct TokenList {
    tokens: Vec<Token>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Token {
    id: TokenId,
    name: String,
    created_at: Timestamp,
    /// To about a minute.
    last_used_at: Option<Timestamp>,
    /// This request was let in by it.
    current: bool,
}

/// Your tokens
///
/// Those that are good, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", responses((status = 200, body = TokenList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<TokenList>, Problem> {
    let found = app.engine.store().tokens_of(&caller.owner).await?.into_iter();
    let view = |TokenRecord { id, label, created_at, last_used_at, .. }| {
        let current = caller.token == Some(id);
        Token { id, name: label, created_at, last_used_at, current }
    };
    Ok(Json(TokenList { tokens: found.map(view).collect() }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for.
    name: Name,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CreatedToken {
    id: TokenId,
    name: Name,
    /// Shown now and never again.
    token: String,
    /// It was the first: from now on every request needs a token, or a browser that signed in with one.
    turned_accounts_on: bool,
}

/// Make a token
///
/// It opens what you may open. The first one turns accounts on, and can only be made on this machine: until then nobody
/// else is let in.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = NewToken,
               responses((status = 201, body = CreatedToken),
                         (status = 422, description = "There are too many already",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    Body(NewToken { name }, fingerprint): Body<NewToken>,
) -> Result<(StatusCode, Json<CreatedToken>), Problem> {
    let (store, owner, attempt) = (app.engine.store(), &caller.owner, attempt(key, fingerprint));
    let (secret, hash) = token::generate().map_err(Problem::internal)?;
    let first = !store.accounts_exist().await?;
    let write = async { Ok(store.add_token(owner, &name, &hash, attempt.as_ref()).await?) };
    match once(&app, owner, attempt.as_ref(), write).await? {
        Write::Now(id) => {
            app.bearer.ask_again();
            let token = secret.reveal().to_owned();
            Ok((StatusCode::CREATED, Json(CreatedToken { id, name, token, turned_accounts_on: first })))
        }
        Write::Before(id) => Err(Problem::new(
            Code::Conflict,
            format!(
                "This Idempotency-Key has made token {id}, whose secret was shown once; revoke it and make another."
            ),
        )),
    }
}

/// Take a token back
///
/// Whoever uses it is refused from now on, and whoever signed in with it is out. Taking back the last one locks the doors;
/// `greenroom token create` on the server's machine opens them again.
#[utoipa::path(delete, path = "/api/tokens/{id}", tag = "tokens", params(("id" = TokenId, Path)),
               responses((status = 204)))]
pub async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TokenId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.store().revoke_own_token(owner, id, attempt.as_ref()).await?) };
    once(&app, owner, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
