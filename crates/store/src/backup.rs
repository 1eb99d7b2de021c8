//! Backup and restore of an embedded (SQLite) store. PostgreSQL has its own tools; what it needs from here is the new
//! epoch after a restore.

use crate::{
    Access, Backend, Config, Error, Store,
    error::{Result, unsigned},
    open::lock_beside,
};
use domain::position::Epoch;
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    pub rooms: u64,
    pub events: u64,
}

/// Writes a consistent copy of the database to a new file, while the server runs.
pub async fn backup(store: &Store, target: &Path) -> Result<Contents> {
    let Backend::Sqlite { file } = store.backend() else {
        return Err(Error::Start(
            "this database is PostgreSQL: back it up with pg_dump, restore it with pg_restore, and then run \
             `greenroom restore --new-epoch` so that old cursors start over"
                .into(),
        ));
    };
    if target.exists() {
        return Err(Error::Start(format!("{} exists already; name a new file", target.display())));
    }
    let name = target.to_str().ok_or_else(|| Error::Start("the file's name must be UTF-8".into()))?;
    let partial = format!("{name}.partial");
    let failed = |error: &dyn std::fmt::Display| Error::Start(format!("cannot write {name}: {error}"));
    if Path::new(&partial).exists() {
        fs::remove_file(&partial).map_err(|error| failed(&error))?;
    }
    // Its own connection: those that read refuse any writing, and the one that writes is needed.
    let mut connection = SqliteConnectOptions::new().filename(file).connect().await.map_err(|error| failed(&error))?;
    sqlx::query("VACUUM INTO $1").bind(&partial).execute(&mut connection).await.map_err(|error| failed(&error))?;
    connection.close().await?;
    fs::File::open(&partial).and_then(|file| file.sync_all()).map_err(|error| failed(&error))?;
    let contents = check_is_backup(Path::new(&partial)).await?;
    fs::rename(&partial, target).and_then(|()| sync_folder(target)).map_err(|error| failed(&error))?;
    Ok(contents)
}

/// Puts a backup in place of the database and gives it a new epoch. The server must not be running.
pub async fn restore(config: &Config, source: &Path) -> Result<(Contents, Epoch)> {
    let Backend::Sqlite { file } = &config.backend else {
        return Err(Error::Start("this database is PostgreSQL: restore it with pg_restore".into()));
    };
    let contents = check_is_backup(source).await?;
    let lock = lock_beside(file)?;
    let failed = |error: std::io::Error| Error::Start(format!("cannot restore to {}: {error}", file.display()));
    let partial = file.with_extension("restoring");
    // A log that a restore left when it broke off would be applied to this copy.
    remove(&[&partial, &log_of(&partial), &index_of(&partial)]).map_err(failed)?;
    fs::copy(source, &partial).map_err(failed)?;
    // Before it takes its place: a crash must not leave a restored journal under its old epoch (invariant 8).
    let copy = Config { backend: Backend::Sqlite { file: partial.clone() }, ..config.clone() };
    let epoch = new_epoch(&copy).await?;
    if log_of(&partial).exists() {
        return Err(Error::Start(format!("{} is still in use", partial.display())));
    }
    fs::File::open(&partial).and_then(|copy| copy.sync_all()).map_err(failed)?;
    remove(&[&log_of(file), &index_of(file)]).map_err(failed)?;
    fs::rename(&partial, file).and_then(|()| sync_folder(file)).map_err(failed)?;
    drop(lock);
    Ok((contents, epoch))
}

/// SQLite's log beside a database.
fn log_of(file: &Path) -> PathBuf {
    beside(file, "-wal")
}

fn index_of(file: &Path) -> PathBuf {
    beside(file, "-shm")
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
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

/// For a database that was restored by other means.
pub async fn new_epoch(config: &Config) -> Result<Epoch> {
    let cancel = CancellationToken::new();
    let store = Store::open(config, Access::Beside, &mut JoinSet::new(), &cancel).await?;
    let epoch = store.renew_epoch().await;
    store.close().await;
    epoch
}

async fn check_is_backup(source: &Path) -> Result<Contents> {
    let refuse = |error: sqlx::Error| Error::Start(format!("{} is not a Greenroom backup: {error}", source.display()));
    let mut connection =
        SqliteConnectOptions::new().filename(source).read_only(true).connect().await.map_err(refuse)?;
    let _: String = sqlx::query_scalar("SELECT value FROM meta WHERE key = 'epoch'")
        .fetch_one(&mut connection)
        .await
        .map_err(refuse)?;
    let verdict: String = sqlx::query_scalar("PRAGMA quick_check").fetch_one(&mut connection).await.map_err(refuse)?;
    if verdict != "ok" {
        return Err(Error::Start(format!("{} is damaged: {verdict}", source.display())));
    }
    let (rooms, events): (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM rooms), (SELECT count(*) FROM events)")
            .fetch_one(&mut connection)
            .await?;
    connection.close().await?;
    Ok(Contents { rooms: unsigned(rooms)?, events: unsigned(events)? })
}

/// A rename is durable only once its folder is synced.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::File::open(folder)?.sync_all(),
        _ => fs::File::open(".")?.sync_all(),
    }
}
