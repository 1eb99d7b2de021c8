//! The secret of an agent token: 256 random bits.

use domain::hex;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Distinguishes agent tokens from user tokens.
pub const AGENT_TOKEN_PREFIX: &str = "grp_";

#[derive(Debug, thiserror::Error)]
#[error("could not get random bytes for an agent token: {0}")]
pub struct AgentTokenError(#[source] getrandom::Error);

#[derive(Clone)]
pub(crate) struct AgentTokenSecret(String);

impl AgentTokenSecret {
    pub fn generate() -> Result<Self, AgentTokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(AgentTokenError)?;
        Ok(Self(format!("{AGENT_TOKEN_PREFIX}{}", hex::encode(&bytes))))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time, so that the time of a refusal says nothing about the secret.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for AgentTokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{AGENT_TOKEN_PREFIX}***")
    }
}
