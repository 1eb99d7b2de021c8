//! Secrets at rest: values that the database stores encrypted, with a key that is not in the database. The one owner of it
//! is [`Secrets`]: whatever is secret and must be used again goes through it, today the configurations of MCP servers.
//!
//! A stored value is `gr1:KEY ID:BASE64`: XChaCha20-Poly1305 with a random nonce in front. Its associated data is where it
//! is stored, so that a value that was moved to another row cannot be read. Anything without the prefix is a value of an
//! earlier version, in plain text. Start at [`Secrets::seal`]; `key_file` reads and writes the keys.

mod key_file;

pub(crate) use key_file::read_keys;
pub use key_file::{add_secrets_key, create_secrets_key};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use domain::hex;
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    path::{Path, PathBuf},
};

const PREFIX: &str = "gr1:";
const NONCE_BYTES: usize = 24;
pub(crate) const KEY_BYTES: usize = 32;

/// Where a secret is stored: its table, its row and its column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretPlace<'a> {
    pub table: &'static str,
    /// What identifies the row, in order.
    pub row: &'a [&'a str],
    pub column: &'static str,
}

impl SecretPlace<'_> {
    /// Unambiguous: every part has its length in front.
    fn associated_data(&self) -> Vec<u8> {
        let parts = [self.table].into_iter().chain(self.row.iter().copied()).chain([self.column]);
        parts.flat_map(|part| format!("{}:{part};", part.len()).into_bytes()).collect()
    }
}

/// Why a secret cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error(
        "its secrets were encrypted with the key {key_id}, which is not in {}; add the line of that key from your backup of \
         the file and restart the server, or set the configuration again", file.display()
    )]
    UnknownKey { key_id: String, file: PathBuf },
    #[error("its stored secrets were changed or moved outside of Greenroom; set the configuration again")]
    Damaged,
    #[error("the file of the secrets' key, {}, does not exist; start the server once to create it", .0.display())]
    NoKey(PathBuf),
    #[error("no random numbers are available")]
    NoRandomness,
}

/// One key of the file. Its id is derived from it, so that equal keys have equal ids.
#[derive(Clone)]
pub(crate) struct SecretsKey {
    id: String,
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for SecretsKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretsKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SecretsKey {
    pub(crate) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        let digest = Sha256::digest([b"greenroom key id".as_slice(), bytes].concat());
        Self { id: hex::encode(&digest[..4]), cipher: XChaCha20Poly1305::new(bytes.into()) }
    }
}

/// The keys of this server: the first one encrypts, all of them decrypt.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    keys: Vec<SecretsKey>,
    file: PathBuf,
}

impl Secrets {
    pub(crate) fn new(keys: Vec<SecretsKey>, file: &Path) -> Self {
        Self { keys, file: file.to_owned() }
    }

    /// What values of the current key begin with; others are to be encrypted again.
    pub(crate) fn current_prefix(&self) -> Result<String, SecretError> {
        Ok(format!("{PREFIX}{}:", self.current()?.id))
    }

    fn current(&self) -> Result<&SecretsKey, SecretError> {
        self.keys.first().ok_or_else(|| SecretError::NoKey(self.file.clone()))
    }

    pub(crate) fn seal(&self, place: &SecretPlace<'_>, plain: &str) -> Result<String, SecretError> {
        let key = self.current()?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SecretError::NoRandomness)?;
        let payload = Payload { msg: plain.as_bytes(), aad: &place.associated_data() };
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| SecretError::Damaged)?;
        Ok(format!("{PREFIX}{}:{}", key.id, STANDARD_NO_PAD.encode([nonce.as_slice(), &sealed].concat())))
    }

    /// Returns the plain text of a stored value, which may be one of an earlier version.
    pub(crate) fn open(&self, place: &SecretPlace<'_>, stored: &str) -> Result<String, SecretError> {
        let Some(sealed) = stored.strip_prefix(PREFIX) else { return Ok(stored.to_owned()) };
        let (key_id, text) = sealed.split_once(':').ok_or(SecretError::Damaged)?;
        let unknown = || SecretError::UnknownKey { key_id: key_id.to_owned(), file: self.file.clone() };
        let key = self.keys.iter().find(|key| key.id == key_id).ok_or_else(unknown)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| SecretError::Damaged)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SecretError::Damaged)?;
        let payload = Payload { msg: sealed, aad: &place.associated_data() };
        let plain = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| SecretError::Damaged)?;
        String::from_utf8(plain).map_err(|_| SecretError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEY_BYTES, SecretError, SecretPlace, Secrets, SecretsKey};
    use std::path::Path;

    fn secrets(keys: &[u8]) -> Secrets {
        let keys = keys.iter().map(|byte| SecretsKey::new(&[*byte; KEY_BYTES])).collect();
        Secrets::new(keys, Path::new("secrets.key"))
    }

    fn place<'a>(row: &'a [&'a str]) -> SecretPlace<'a> {
        SecretPlace { table: "mcp_servers", row, column: "config" }
    }

    #[test]
    fn h3_a_value_is_read_only_where_it_was_stored() {
        let (secrets, here) = (secrets(&[1]), ["local", "files"]);
        let sealed = secrets.seal(&place(&here), "plain").unwrap();
        assert!(sealed.starts_with(&secrets.current_prefix().unwrap()) && !sealed.contains("plain"));
        assert_ne!(sealed, secrets.seal(&place(&here), "plain").unwrap(), "a nonce of its own");
        assert_eq!(secrets.open(&place(&here), &sealed).unwrap(), "plain");
        for elsewhere in [&["local", "mail"][..], &["eve", "files"], &["localf", "iles"], &["local"]] {
            assert_eq!(secrets.open(&place(elsewhere), &sealed), Err(SecretError::Damaged), "{elsewhere:?}");
        }
        let other_column = SecretPlace { column: "other", ..place(&here) };
        assert_eq!(secrets.open(&other_column, &sealed), Err(SecretError::Damaged));
        for end in ["", "A", "AAAA"] {
            let damaged = format!("{}{end}", &sealed[..sealed.len() - 4]);
            assert_eq!(secrets.open(&place(&here), &damaged), Err(SecretError::Damaged));
        }
        assert_eq!(secrets.open(&place(&here), "gr1:"), Err(SecretError::Damaged));
        assert_eq!(
            secrets.open(&place(&here), r#"{"command":"x"}"#).unwrap(),
            r#"{"command":"x"}"#,
            "an earlier version"
        );
    }

    #[test]
    fn h3_an_older_key_still_reads_and_a_lost_one_is_named() {
        let here = ["local", "files"];
        let old = secrets(&[1]).seal(&place(&here), "plain").unwrap();
        let rotated = secrets(&[2, 1]);
        assert_eq!(rotated.open(&place(&here), &old).unwrap(), "plain");
        assert!(!old.starts_with(&rotated.current_prefix().unwrap()), "to be encrypted again");
        let lost = secrets(&[2]).open(&place(&here), &old).unwrap_err();
        let key_id = old.split(':').nth(1).unwrap();
        let text = lost.to_string();
        assert!(text.contains(key_id) && text.contains("secrets.key") && text.contains("backup"), "{text}");
        assert!(matches!(secrets(&[]).seal(&place(&here), "plain"), Err(SecretError::NoKey(_))));
        assert!(!format!("{rotated:?}").contains("[1, 1"), "keys are not shown");
    }
}
