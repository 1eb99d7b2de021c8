//! Tokens: 256 random bits that are shown once, and the hash that is kept. A slow hash would add nothing: there is no
//! guessing such a secret.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use std::fmt;

/// Makes a leaked token easy to find by secret scanners and by eye.
pub const PREFIX: &str = "grm_";

/// A secret that no `{:?}` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// For the one moment it is handed to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("grm_***")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes for a token: {0}")]
pub struct Error(getrandom::Error);

/// A new secret, and its hash for the store.
pub fn generate() -> Result<(Secret, [u8; 32]), Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(Error)?;
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let sha256 = hash(secret.as_bytes());
    Ok((Secret(secret), sha256))
}

pub fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, generate, hash};

    #[test]
    fn a_token_has_its_shape_its_hash_and_no_debug() {
        let (secret, sha256) = generate().unwrap();
        let random = secret.reveal().strip_prefix(PREFIX).unwrap();
        assert_eq!(random.len(), 43);
        assert!(random.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert_eq!(hash(secret.reveal().as_bytes()), sha256);
        assert!(!format!("{secret:?}").contains(random));
        assert_ne!(generate().unwrap().0, secret);
    }
}
