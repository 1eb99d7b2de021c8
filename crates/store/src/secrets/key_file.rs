//! The file of the keys: one key per line, as Base64, the newest first. Only the user of the server may read it.

use super::{KEY_BYTES, SecretsKey};
use crate::{StoreError, error::Result, private_file};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use std::{fs, io, io::Write as _, path::Path};

/// A hundred rotations.
const MAX_FILE_BYTES: u64 = 8192;

/// Returns the keys of a file; none if there is no file.
pub(crate) fn read_keys(file: &Path) -> Result<Vec<SecretsKey>> {
    let text = match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Ok(found) if found.len() > MAX_FILE_BYTES => return Err(no_keys(file)),
        Ok(_) => fs::read_to_string(file).map_err(|error| cannot_read(file).caused_by(error))?,
        Err(error) => return Err(cannot_read(file).caused_by(error)),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys = lines.map(|line| Some(SecretsKey::new(&decode(line)?))).collect::<Option<Vec<_>>>();
    keys.filter(|keys| !keys.is_empty()).ok_or_else(|| no_keys(file))
}

fn decode(line: &str) -> Option<[u8; KEY_BYTES]> {
    STANDARD_NO_PAD.decode(line.trim_end_matches('=')).ok()?.try_into().ok()
}

/// Creates the file with one key, unless it exists.
pub fn create_secrets_key(file: &Path) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    let draft = write_draft(file, &format!("{}\n", new_key()?))?;
    // A link does not replace: of two servers that start at once, both use the same key.
    let linked = match fs::hard_link(&draft, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    };
    fs::remove_file(&draft).and(linked).map_err(|error| cannot_write(file).caused_by(error))
}

/// Adds a new key as the first one. What is stored is encrypted with it at the next start; older keys stay for reading.
pub fn add_secrets_key(file: &Path) -> Result<()> {
    read_keys(file)?;
    let older = fs::read_to_string(file).map_err(|error| cannot_read(file).caused_by(error))?;
    let draft = write_draft(file, &format!("{}\n{older}", new_key()?))?;
    fs::rename(&draft, file).map_err(|error| cannot_write(file).caused_by(error))
}

fn new_key() -> Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::start("no random numbers are available for a key"))?;
    Ok(STANDARD_NO_PAD.encode(bytes))
}

fn write_draft(file: &Path, text: &str) -> Result<std::path::PathBuf> {
    let draft = file.with_extension(format!("key.{}", uuid::Uuid::now_v7()));
    let written = private_file::options().write(true).create_new(true).open(&draft).and_then(|mut draft| {
        draft.write_all(text.as_bytes())?;
        draft.sync_all()
    });
    written.map_err(|error| cannot_write(file).caused_by(error))?;
    Ok(draft)
}

fn cannot_read(file: &Path) -> StoreError {
    StoreError::start(format!("cannot read the key of the secrets, {}", file.display()))
}

fn cannot_write(file: &Path) -> StoreError {
    StoreError::start(format!("cannot write the key of the secrets, {}", file.display()))
}

fn no_keys(file: &Path) -> StoreError {
    StoreError::start(format!(
        "{} does not hold keys, one per line; restore the file from your copy. Without it, set the secrets of all MCP servers \
         again: remove the file, and the next start makes a new key",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::{add_secrets_key, create_secrets_key, read_keys};
    use crate::secrets::{SecretPlace, Secrets};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn h3_a_key_is_private_created_once_and_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secrets.key");
        assert!(read_keys(&file).unwrap().is_empty());
        create_secrets_key(&file).unwrap();
        let first = fs::read_to_string(&file).unwrap();
        create_secrets_key(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), first);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let place = SecretPlace { table: "t", row: &["r"], column: "c" };
        let sealed = Secrets::new(read_keys(&file).unwrap(), &file).seal(&place, "plain").unwrap();
        add_secrets_key(&file).unwrap();
        let rotated = Secrets::new(read_keys(&file).unwrap(), &file);
        assert_eq!(rotated.open(&place, &sealed).unwrap(), "plain");
        assert!(!sealed.starts_with(&rotated.current_prefix().unwrap()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        for wrong in ["", "x\n", "AAAA\n", &"A".repeat(10_000)] {
            fs::write(&file, wrong).unwrap();
            let error = read_keys(&file).unwrap_err().to_string();
            assert!(error.contains("does not hold keys"), "{error}");
        }
    }
}
