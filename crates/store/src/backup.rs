//! Backup and restore of a SQLite store. PostgreSQL has its own tools; it only needs a new epoch after a restore.

use crate::{
    Backend, Store, StoreAccess, StoreConfig, StoreError,
    error::{Result, unsigned},
    open::lock_database,
    private_file,
};
use domain::position::Epoch;
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The number of rooms and events in a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupContents {
    pub rooms: u64,
    pub events: u64,
}

/// Writes a consistent copy of the database to a new file, while the server runs.
pub async fn backup(store: &Store, target: &Path) -> Result<BackupContents> {
    let Backend::Sqlite { file } = store.backend() else {
        return Err(StoreError::start(
            "this database is PostgreSQL: back it up with pg_dump, restore it with pg_restore, and then run \
             `greenroom restore --new-epoch` so that old cursors start over",
        ));
    };
    if target.exists() {
        return Err(StoreError::start(format!("{} already exists; choose another file name", target.display())));
    }
    let name = target.to_str().ok_or_else(|| StoreError::start("the file name must be valid UTF-8"))?;
    let partial = format!("{name}.partial");
    let cannot_write = || StoreError::start(format!("cannot write {name}"));
    if Path::new(&partial).exists() {
        fs::remove_file(&partial).map_err(|error| cannot_write().caused_by(error))?;
    }
    // The copy goes into this file, which no other user may read.
    private_file::create(Path::new(&partial)).map_err(|error| cannot_write().caused_by(error))?;
    // A separate connection: read connections refuse writes, and the write connection is in use.
    let mut connection =
        SqliteConnectOptions::new().filename(file).connect().await.map_err(|error| cannot_write().caused_by(error))?;
    let mode: i64 = sqlx::query_scalar("PRAGMA auto_vacuum").fetch_one(&mut connection).await?;
    if mode == 0 {
        // The copy of a file of an earlier version can shrink; the file itself is not changed by this.
        sqlx::query("PRAGMA auto_vacuum = INCREMENTAL").execute(&mut connection).await?;
    }
    sqlx::query("VACUUM INTO $1")
        .bind(&partial)
        .execute(&mut connection)
        .await
        .map_err(|error| cannot_write().caused_by(error))?;
    connection.close().await?;
    fs::File::open(&partial).and_then(|file| file.sync_all()).map_err(|error| cannot_write().caused_by(error))?;
    let contents = check_is_backup(Path::new(&partial)).await?;
    fs::rename(&partial, target).and_then(|()| sync_folder(target)).map_err(|error| cannot_write().caused_by(error))?;
    Ok(contents)
}

/// Replaces the database with a backup and gives it a new epoch. The server must not be running.
pub async fn restore(config: &StoreConfig, source: &Path) -> Result<(BackupContents, Epoch)> {
    let Backend::Sqlite { file } = &config.backend else {
        return Err(StoreError::start("this database is PostgreSQL: restore it with pg_restore"));
    };
    let contents = check_is_backup(source).await?;
    let lock = lock_database(file)?;
    let failed =
        |error: std::io::Error| StoreError::start(format!("cannot restore to {}", file.display())).caused_by(error);
    let partial = file.with_extension("restoring");
    // A log left by an interrupted restore would be applied to this copy.
    remove(&[&partial, &log_of(&partial), &index_of(&partial)]).map_err(failed)?;
    // `copy` takes the mode from its source, which may be a file for everybody.
    fs::copy(source, &partial).and_then(|_| private_file::restrict(&partial)).map_err(failed)?;
    // Before the rename: a crash must not leave a restored journal with its old epoch (invariant 8).
    let copy = StoreConfig { backend: Backend::Sqlite { file: partial.clone() }, ..config.clone() };
    let epoch = new_epoch(&copy).await?;
    if log_of(&partial).exists() {
        return Err(StoreError::start(format!("{} is still in use", partial.display())));
    }
    fs::File::open(&partial).and_then(|copy| copy.sync_all()).map_err(failed)?;
    remove(&[&log_of(file), &index_of(file)]).map_err(failed)?;
    fs::rename(&partial, file).and_then(|()| sync_folder(file)).map_err(failed)?;
    drop(lock);
    Ok((contents, epoch))
}

/// SQLite's write-ahead log of a database.
fn log_of(file: &Path) -> PathBuf {
    with_suffix(file, "-wal")
}

fn index_of(file: &Path) -> PathBuf {
    with_suffix(file, "-shm")
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove(files: &[&Path]) -> std::io::Result<()> {
    for file in files {
        match fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Sets a new epoch, for a database that was restored by other means.
pub async fn new_epoch(config: &StoreConfig) -> Result<Epoch> {
    let cancel = CancellationToken::new();
    let store = Store::open(config, StoreAccess::Tool, &mut JoinSet::new(), &cancel).await?;
    let epoch = store.renew_epoch().await;
    store.close().await;
    epoch
}

async fn check_is_backup(source: &Path) -> Result<BackupContents> {
    let not_a_backup = |error: sqlx::Error| {
        StoreError::start(format!("{} is not a Greenroom backup", source.display())).caused_by(error)
    };
    let mut connection =
        SqliteConnectOptions::new().filename(source).read_only(true).connect().await.map_err(not_a_backup)?;
    let _: String = sqlx::query_scalar("SELECT value FROM meta WHERE key = 'epoch'")
        .fetch_one(&mut connection)
        .await
        .map_err(not_a_backup)?;
    let check: String =
        sqlx::query_scalar("PRAGMA quick_check").fetch_one(&mut connection).await.map_err(not_a_backup)?;
    if check != "ok" {
        return Err(StoreError::start(format!("{} is damaged: {check}", source.display())));
    }
    let (rooms, events): (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM rooms), (SELECT count(*) FROM events)")
            .fetch_one(&mut connection)
            .await?;
    connection.close().await?;
    Ok(BackupContents { rooms: unsigned(rooms)?, events: unsigned(events)? })
}

/// A rename is durable only once its folder is synced.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::File::open(folder)?.sync_all(),
        _ => fs::File::open(".")?.sync_all(),
    }
}
