//! Backup and restore of an embedded (SQLite) store. PostgreSQL has its own tools; what it needs from here is the new
//! epoch after a restore.

use crate::{
    Access, Backend, Config, Error, Store, database::Database, error::Result, open::lock_beside,
};
use domain::position::Epoch;
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use std::{fs, path::Path};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Writes a consistent copy of the database to a new file, while the server runs.
pub async fn backup(store: &Store, target: &Path) -> Result<()> {
    let Database::Sqlite { read, .. } = store.database() else {
        return Err(Error::Start(
            "this database is PostgreSQL: back it up with pg_dump, restore it with pg_restore, and then run \
             `greenroom restore --new-epoch` so that old cursors start over"
                .into(),
        ));
    };
    if target.exists() {
        return Err(Error::Start(format!(
            "{} exists already; name a new file",
            target.display()
        )));
    }
    let name = target
        .to_str()
        .ok_or_else(|| Error::Start("the file's name must be UTF-8".into()))?;
    let partial = format!("{name}.partial");
    let failed =
        |error: &dyn std::fmt::Display| Error::Start(format!("cannot write {name}: {error}"));
    if Path::new(&partial).exists() {
        fs::remove_file(&partial).map_err(|error| failed(&error))?;
    }
    sqlx::query("VACUUM INTO $1")
        .bind(&partial)
        .execute(read)
        .await
        .map_err(|error| failed(&error))?;
    fs::File::open(&partial)
        .and_then(|file| file.sync_all())
        .map_err(|error| failed(&error))?;
    fs::rename(&partial, target)
        .and_then(|()| sync_folder(target))
        .map_err(|error| failed(&error))
}

/// Puts a backup in place of the database and gives it a new epoch. The server must not be running.
pub async fn restore(config: &Config, source: &Path) -> Result<Epoch> {
    let Backend::Sqlite { file } = &config.backend else {
        return Err(Error::Start(
            "this database is PostgreSQL: restore it with pg_restore".into(),
        ));
    };
    check_is_backup(source).await?;
    let lock = lock_beside(file)?;
    let failed = |error: std::io::Error| {
        Error::Start(format!("cannot restore to {}: {error}", file.display()))
    };
    let partial = file.with_extension("restoring");
    fs::copy(source, &partial).map_err(failed)?;
    fs::File::open(&partial)
        .and_then(|copy| copy.sync_all())
        .map_err(failed)?;
    for suffix in ["-wal", "-shm"] {
        let mut beside = file.clone().into_os_string();
        beside.push(suffix);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    fs::rename(&partial, file)
        .and_then(|()| sync_folder(file))
        .map_err(failed)?;
    let epoch = new_epoch(config).await;
    drop(lock);
    epoch
}

/// For a database that was restored by other means.
pub async fn new_epoch(config: &Config) -> Result<Epoch> {
    let cancel = CancellationToken::new();
    let store = Store::open(config, Access::Beside, &mut JoinSet::new(), &cancel).await?;
    let epoch = store.renew_epoch().await;
    store.close().await;
    epoch
}

async fn check_is_backup(source: &Path) -> Result<()> {
    let refuse = |error: sqlx::Error| {
        Error::Start(format!(
            "{} is not a Greenroom backup: {error}",
            source.display()
        ))
    };
    let mut connection = SqliteConnectOptions::new()
        .filename(source)
        .read_only(true)
        .connect()
        .await
        .map_err(refuse)?;
    let _: String = sqlx::query_scalar("SELECT value FROM meta WHERE key = 'epoch'")
        .fetch_one(&mut connection)
        .await
        .map_err(refuse)?;
    let verdict: String = sqlx::query_scalar("PRAGMA quick_check")
        .fetch_one(&mut connection)
        .await
        .map_err(refuse)?;
    connection.close().await?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Start(format!(
            "{} is damaged: {verdict}",
            source.display()
        )))
    }
}

/// A rename is durable only once its folder is synced.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::File::open(folder)?.sync_all(),
        _ => fs::File::open(".")?.sync_all(),
    }
}
