//! What authentication needs from the store: whose a token or a cookie is, and whether it still is.

use crate::error::BoxError;
use domain::{
    actor::Actor,
    ids::{BrowserSessionId, TokenId},
    permission::Role,
};
use engine::Accounts;
use futures_util::future::BoxFuture;

/// Tests replace it to make it fail. A `key_hash` is the hash of the local key.
pub trait AccountStore: Send + Sync {
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

    /// Starts a browser session of the operator, who is the actor.
    fn begin_operator_session(
        &self,
        actor: Actor,
        key_hash: [u8; 32],
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<(), BoxError>>;

    fn end_browser_session(&self, actor: Actor, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>>;

    /// The current role of a browser session of a token; `None` if the session is no longer valid.
    fn role_of_browser_session(&self, id: BrowserSessionId) -> BoxFuture<'_, Result<Option<Role>, BoxError>>;

    /// Whether a browser session of the operator is valid.
    fn has_operator_session(&self, key_hash: [u8; 32], id: BrowserSessionId) -> BoxFuture<'_, Result<bool, BoxError>>;

    /// The actor of the browser session whose cookie has this hash; `None` once it is signed out.
    fn actor_for_cookie(
        &self,
        key_hash: [u8; 32],
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<Option<Actor>, BoxError>>;
}

impl AccountStore for Accounts {
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

    fn begin_operator_session(
        &self,
        actor: Actor,
        key_hash: [u8; 32],
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.sign_in_operator(&actor, &key_hash, &cookie_sha256).await?) })
    }

    fn end_browser_session(&self, actor: Actor, cookie_sha256: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.sign_out(&actor, &cookie_sha256).await?) })
    }

    fn role_of_browser_session(&self, id: BrowserSessionId) -> BoxFuture<'_, Result<Option<Role>, BoxError>> {
        Box::pin(async move { Ok(self.role_of_browser_session(id).await?) })
    }

    fn has_operator_session(&self, key_hash: [u8; 32], id: BrowserSessionId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async move { Ok(self.has_operator_session(&key_hash, id).await?) })
    }

    fn actor_for_cookie(
        &self,
        key_hash: [u8; 32],
        cookie_sha256: [u8; 32],
    ) -> BoxFuture<'_, Result<Option<Actor>, BoxError>> {
        Box::pin(async move { Ok(self.actor_for_cookie(&key_hash, &cookie_sha256).await?) })
    }
}
