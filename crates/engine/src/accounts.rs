//! Credentials for authentication: which actor a token or a cookie belongs to. Its callers have no actor yet.

use crate::Engine;
use domain::{
    actor::{Actor, Credential},
    audit::CountedEntry,
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
    pub async fn actor_for_token(&self, hash: &[u8; 32]) -> Result<Option<Actor>> {
        self.0.actor_for_token(hash).await
    }

    /// Finds the session of a cookie: of a token, or of the operator with this local key.
    pub async fn actor_for_cookie(&self, key_hash: &[u8; 32], hash: &[u8; 32]) -> Result<Option<Actor>> {
        if let Some(actor) = self.0.actor_for_browser_session(hash).await? {
            return Ok(Some(actor));
        }
        let session = self.0.operator_session(key_hash, hash).await?;
        let operator =
            |session| Actor { credential: Credential::BrowserSession { session, token: None }, ..Actor::local() };
        Ok(session.map(operator))
    }

    /// Returns whether a session of the operator is valid with this local key.
    pub async fn has_operator_session(&self, key_hash: &[u8; 32], id: BrowserSessionId) -> Result<bool> {
        self.0.has_operator_session(key_hash, id).await
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

    /// Signs a browser in as the operator, who is the actor. The session ends with the local key.
    pub async fn sign_in_operator(&self, actor: &Actor, key_hash: &[u8; 32], cookie_hash: &[u8; 32]) -> Result<()> {
        self.0.create_operator_session(actor, key_hash, cookie_hash).await.map(drop)
    }

    /// Records something of which there may be many, such as a refused request.
    pub fn count_audit(&self, entry: CountedEntry) {
        self.0.count_audit(entry);
    }

    pub async fn sign_out(&self, actor: &Actor, cookie_hash: &[u8; 32]) -> Result<()> {
        self.0.delete_browser_session(actor, cookie_hash).await
    }

    /// Records that a token was used. No audit: using a token changes nothing else.
    pub async fn record_token_use(&self, id: TokenId) -> Result<()> {
        self.0.record_token_use(id).await
    }
}
