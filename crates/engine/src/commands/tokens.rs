//! Access tokens of the actor's own user. A secret never comes here: the caller makes it and sends its hash.

use crate::{Engine, EngineError};
use domain::{actor::Actor, ids::TokenId, permission::Permission, time::Timestamp};
use store::{IdempotentRequest, NewToken, TokenRecord};

impl Engine {
    /// Lists the valid tokens of the actor's own user.
    pub async fn tokens(&self, actor: &Actor) -> Result<Vec<TokenRecord>, EngineError> {
        actor.require(Permission::ManageTokens)?;
        Ok(self.store().own_tokens(actor).await?)
    }

    /// Lists the tokens of all workspaces, revoked and expired ones too, for the operator.
    pub async fn all_tokens(&self, actor: &Actor) -> Result<Vec<TokenRecord>, EngineError> {
        actor.require(Permission::Operate)?;
        Ok(self.store().tokens().await?)
    }

    /// Creates a token of the actor's own user, for no more than the actor's own credential is for. Returns its id and when
    /// it expires.
    pub async fn create_token(
        &self,
        actor: &Actor,
        token: &NewToken,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(TokenId, Option<Timestamp>), EngineError> {
        actor.require(Permission::ManageTokens)?;
        if !token.scopes.is_within(actor.scopes) {
            let detail =
                format!("a token cannot have more scopes than the one that creates it, which has {}", actor.scopes);
            return Err(EngineError::Refused { pointer: "/scopes".into(), detail });
        }
        Ok(self.store().add_token(actor, token, attempt).await?)
    }

    /// Revokes a token of the actor's own user, or for the operator any token, with those that were created with it.
    pub async fn revoke_token(
        &self,
        actor: &Actor,
        id: TokenId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageTokens)?;
        match actor.may(Permission::Operate) {
            true => self.store().revoke_token(actor, id, attempt).await?,
            false => self.store().revoke_own_token(actor, id, attempt).await?,
        }
        Ok(())
    }
}
