//! The data folder: readable by the server's user alone, and home of the local key, which makes its holder the operator.
//!
//! Start at [`prepare`]. Everything that opens the folder for writing calls it first.

use crate::config::{AppConfig, DatabaseSetting};
use anyhow::{Context as _, bail};
use server::auth::token::{self, TokenSecret};
use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

const KEY_FILE: &str = "local.key";
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
/// The bits that give other users of the machine access.
const OTHERS: u32 = 0o077;
/// A key file has one line.
const MAX_KEY_BYTES: u64 = 200;
/// What earlier versions created in the data folder, for every user to read.
const FOLDERS: [&str; 7] = ["agents", "rooms", "uploads", "mcp", "runs", "skills", "tls"];

/// A data folder that is ready to be used.
#[derive(Debug)]
pub struct PreparedFolder {
    pub key: TokenSecret,
    /// Whether the folder was used by a version that had no local key.
    pub is_upgraded: bool,
}

/// Everything that this program and its children create is private, unless its mode is set on purpose.
pub fn make_new_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(OTHERS));
}

/// Creates the folder and its key if they are missing, and takes away access that other users have.
pub fn prepare(config: &AppConfig) -> anyhow::Result<PreparedFolder> {
    let folder = &config.store.data_dir;
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(folder)
        .with_context(|| format!("cannot create the data folder {}", folder.display()))?;
    let was_used = matches!(&config.store.database, DatabaseSetting::Sqlite { path } if path.exists());
    for path in open_to_others(config)? {
        let mode = if path.is_dir() { PRIVATE_FOLDER } else { PRIVATE_FILE };
        fs::set_permissions(&path, Permissions::from_mode(mode)).with_context(|| {
            format!(
                "other users of this machine can read {}, and that cannot be changed; make it private (chmod {mode:o}) \
                 or choose another --data-dir",
                path.display()
            )
        })?;
        tracing::warn!(path = %path.display(), mode = format!("{mode:o}"), "made private; other users could read it");
    }
    let file = key_file(folder);
    match read_key(&file)? {
        Some(key) => Ok(PreparedFolder { key, is_upgraded: false }),
        None => {
            create_key(&file).with_context(|| format!("cannot write {}", file.display()))?;
            let key = read_key(&file)?.with_context(|| format!("{} disappeared", file.display()))?;
            Ok(PreparedFolder { key, is_upgraded: was_used })
        }
    }
}

/// The files and folders of the data folder that other users can access. Names only what Greenroom creates: a data folder
/// may hold other files.
pub fn open_to_others(config: &AppConfig) -> anyhow::Result<Vec<PathBuf>> {
    let folder = &config.store.data_dir;
    let mut paths = vec![folder.clone(), key_file(folder), config.store.secrets_key_file.clone()];
    paths.extend(FOLDERS.map(|name| folder.join(name)));
    if let DatabaseSetting::Sqlite { path } = &config.store.database {
        let with_suffix = |suffix: &str| {
            let mut name = path.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        paths.extend([path.clone(), with_suffix("-wal"), with_suffix("-shm"), path.with_extension("lock")]);
    }
    let mut open = Vec::new();
    for path in paths {
        let found = match fs::symlink_metadata(&path) {
            // The data folder itself may be a link; a link inside of it is not ours.
            Ok(found) if found.is_symlink() && path == *folder => fs::metadata(&path)?,
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if !found.is_symlink() && found.mode() & OTHERS != 0 {
            open.push(path);
        }
    }
    Ok(open)
}

pub fn key_file(folder: &Path) -> PathBuf {
    folder.join(KEY_FILE)
}

/// Reads the local key; `None` if the file does not exist.
pub fn read_key(file: &Path) -> anyhow::Result<Option<TokenSecret>> {
    let found = match fs::symlink_metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read the local key {}", file.display())),
    };
    let text = match found.is_file() && found.len() <= MAX_KEY_BYTES {
        true => fs::read_to_string(file).with_context(|| format!("cannot read the local key {}", file.display()))?,
        false => String::new(),
    };
    match TokenSecret::parse(text.trim()) {
        Some(key) => Ok(Some(key)),
        None => bail!("{} does not hold a key; remove it, and the next start of the server makes one", file.display()),
    }
}

/// Writes the key beside its place and links it there: another process that does the same at this moment wins or loses,
/// and both read the same whole key afterwards.
fn create_key(file: &Path) -> anyhow::Result<()> {
    let (key, _) = token::generate()?;
    let draft = file.with_extension(format!("key.{}", uuid::Uuid::now_v7()));
    let mut written = File::options().write(true).create_new(true).mode(PRIVATE_FILE).open(&draft)?;
    let linked = writeln!(written, "{}", key.reveal()).and_then(|()| written.sync_all()).and_then(|()| {
        match fs::hard_link(&draft, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    fs::remove_file(&draft)?;
    Ok(linked?)
}

#[cfg(test)]
mod tests {
    use super::{key_file, open_to_others, prepare};
    use crate::config::{AppConfig, ConfigFlags};
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{MetadataExt as _, PermissionsExt as _},
        path::Path,
    };

    fn config(data_dir: &Path) -> AppConfig {
        let flags = ConfigFlags { data_dir: Some(data_dir.display().to_string()), ..ConfigFlags::default() };
        AppConfig::load_from(&flags, [], Path::new("/nowhere")).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn h3_a_key_is_made_once_and_nobody_else_can_read_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let first = prepare(&config(&folder)).unwrap();
        assert!(!first.is_upgraded);
        let file = key_file(&folder);
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        assert_eq!(prepare(&config(&folder)).unwrap().key, first.key);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
        fs::remove_file(&file).unwrap();
        assert_ne!(prepare(&config(&folder)).unwrap().key, first.key);
        fs::write(&file, "").unwrap();
        let refused = prepare(&config(&folder)).unwrap_err().to_string();
        assert!(refused.contains("remove it") && refused.contains("local.key"), "{refused}");
    }

    #[test]
    fn h3_a_folder_of_an_earlier_version_is_made_private() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, config) = (folder.path(), config(folder.path()));
        for name in ["greenroom.db", "greenroom.db-wal", "greenroom.db-shm", "greenroom.lock", "notes.txt"] {
            fs::write(folder.join(name), "").unwrap();
            fs::set_permissions(folder.join(name), Permissions::from_mode(0o644)).unwrap();
        }
        fs::create_dir(folder.join("rooms")).unwrap();
        fs::set_permissions(folder.join("rooms"), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(open_to_others(&config).unwrap().len(), 6);
        assert!(prepare(&config).unwrap().is_upgraded);
        assert_eq!(open_to_others(&config).unwrap(), Vec::<std::path::PathBuf>::new());
        assert_eq!((mode(folder), mode(&folder.join("greenroom.db"))), (0o700, 0o600));
        assert_eq!(mode(&folder.join("notes.txt")), 0o644, "not ours");
    }
}
