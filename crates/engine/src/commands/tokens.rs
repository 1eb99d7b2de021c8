//! Access tokens of the actor's own user. A secret never comes here: the caller makes it and sends its hash.

use crate::{Engine, EngineError};
use domain::{actor::Actor, ids::TokenId, name::Name, permission::Permission};
use store::{IdempotentRequest, TokenRecord};

impl Engine {
    /// Lists the valid tokens of the actor's own user.
    pub async fn tokens(&self, actor: &Actor) -> Result<Vec<TokenRecord>, EngineError> {
        actor.require(Permission::ManageTokens)?;
        Ok(self.store().own_tokens(actor).await?)
    }

    /// Creates a token that may do what the actor may do.
    pub async fn create_token(
        &self,
        actor: &Actor,
        label: &Name,
        hash: &[u8; 32],
        attempt: Option<&IdempotentRequest>,
    ) -> Result<TokenId, EngineError> {
        actor.require(Permission::ManageTokens)?;
        Ok(self.store().add_token(actor, label, hash, attempt).await?)
    }

    pub async fn revoke_token(
        &self,
        actor: &Actor,
        id: TokenId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageTokens)?;
        Ok(self.store().revoke_own_token(actor, id, attempt).await?)
    }
}
