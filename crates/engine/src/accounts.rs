//! Credentials for authentication: which actor a token or a cookie belongs to. Its callers have no actor yet.

use crate::Engine;
use domain::{
    actor::Actor,
    ids::{BrowserSessionId, TokenId},
    permission::Role,
};
use store::{Store, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone)]
pub struct Accounts(Store);

impl Engine {
    pub fn accounts(&self) -> Accounts {
        Accounts(self.store().clone())
    }
}

impl Accounts {
    /// Returns whether a token was ever created.
    pub async fn exist(&self) -> Result<bool> {
        self.0.accounts_exist().await
    }

    pub async fn actor_for_token(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        self.0.actor_for_token(hash).await
    }

    pub async fn actor_for_cookie(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        self.0.actor_for_browser_session(hash).await
    }

    pub async fn role_of_token(&self, id: TokenId) -> Result<Option<Role>> {
        self.0.role_of_token(id).await
    }

    pub async fn role_of_browser_session(&self, id: BrowserSessionId) -> Result<Option<Role>> {
        self.0.role_of_browser_session(id).await
    }

    /// Signs a browser in with the actor's token.
    pub async fn sign_in(&self, actor: &Actor, token: TokenId, cookie_hash: &[u8; 32]) -> Result<()> {
        self.0.create_browser_session(actor, token, cookie_hash).await.map(drop)
    }

    pub async fn sign_out(&self, actor: &Actor, cookie_hash: &[u8; 32]) -> Result<()> {
        self.0.delete_browser_session(actor, cookie_hash).await
    }

    /// Records that a token was used. No audit: using a token changes nothing else.
    pub async fn record_token_use(&self, id: TokenId) -> Result<()> {
        self.0.record_token_use(id).await
    }
}
