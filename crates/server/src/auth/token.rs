//! Tokens: 256 random bits, shown once; only the hash is stored. A slow hash would add nothing, because such a secret
//! cannot be guessed.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use std::fmt;

/// Makes a leaked token easy to find for secret scanners and people.
pub const PREFIX: &str = "grm_";

/// A token in clear text. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// Returns the clear text, to be shown once to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("grm_***")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("could not get random bytes for a token: {0}")]
pub struct TokenGenerationError(getrandom::Error);

/// Creates a token and its hash for the store.
pub fn generate() -> Result<(TokenSecret, [u8; 32]), TokenGenerationError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(TokenGenerationError)?;
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let sha256 = hash(secret.as_bytes());
    Ok((TokenSecret(secret), sha256))
}

pub fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Compares two hashes in constant time.
pub fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl TokenSecret {
    /// Reads a secret that was stored, such as the local key; `None` if it is not of the form that [`generate`] makes.
    pub fn parse(text: &str) -> Option<Self> {
        let random = text.strip_prefix(PREFIX)?;
        let is_random = URL_SAFE_NO_PAD.decode(random).is_ok_and(|bytes| bytes.len() == 32);
        is_random.then(|| Self(text.to_owned()))
    }

    pub fn sha256(&self) -> [u8; 32] {
        hash(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, TokenSecret, generate, hash, is_same};

    #[test]
    fn a_token_has_the_right_format_and_hash_and_is_hidden_in_debug_output() {
        let (secret, sha256) = generate().unwrap();
        let random = secret.reveal().strip_prefix(PREFIX).unwrap();
        assert_eq!(random.len(), 43);
        assert!(random.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert_eq!(hash(secret.reveal().as_bytes()), sha256);
        assert!(!format!("{secret:?}").contains(random));
        assert_ne!(generate().unwrap().0, secret);
        assert_eq!(TokenSecret::parse(secret.reveal()), Some(secret));
        for bad in ["", "grm_", "grm_short", "grx_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "grm_A A"] {
            assert_eq!(TokenSecret::parse(bad), None, "{bad}");
        }
        assert!(is_same(&sha256, &sha256) && !is_same(&sha256, &[0; 32]));
    }
}
