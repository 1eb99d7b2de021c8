//! Opening the store: which engine, is it as durable as it must be, and the handle everyone else holds.

use crate::{
    Error,
    database::Database,
    error::Result,
    journal::{Bell, Checkpointer, Commit, Committed, Follower, Request, Tails, Watch, Watches, Writer},
};
use domain::{
    ids::RoomId,
    owner::Owner,
    position::{Epoch, Position},
};
use sqlx::{
    PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub struct Config {
    pub backend: Backend,
    /// Connections that read; SQLite has one more that writes.
    pub read_connections: u32,
    /// How much of what was just written is kept in memory for live readers.
    pub tail_bytes: usize,
    pub planted: Option<Planted>,
}

#[derive(Clone)]
pub enum Backend {
    Sqlite {
        file: PathBuf,
    },
    /// The URL may hold a password: it is not shown.
    Postgres {
        url: String,
    },
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite { file } => write!(f, "SQLite at {}", file.display()),
            Self::Postgres { .. } => f.write_str("PostgreSQL"),
        }
    }
}

/// Bugs on purpose, to prove that the crash harness sees them. They exist only in builds with the feature
/// `planted-bugs`; any other build refuses to start with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    EmitBeforeCommit,
    SynchronousOff,
}

/// A server owns its database; a command-line tool works beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Server,
    Beside,
}

/// A cheap handle on what is remembered.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    database: Database,
    backend: Backend,
    epoch: Epoch,
    tails: Tails,
    watches: Watches,
    requests: mpsc::Sender<Request>,
    queue_bell: Arc<Notify>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<Planted>,
    /// Held as long as the server lives: one server per SQLite file.
    _lock: Option<File>,
}

/// Commits that may wait for the writer; beyond it, those who write wait.
const WAITING_COMMITS: usize = 4096;
const ACQUIRE: Duration = Duration::from_secs(10);
/// Prepared statements of the connection that writes: commits come in many shapes.
const SHAPES: usize = 256;
const EPOCH: &str = "epoch";
const USED: &str = "used";

impl Store {
    /// Opens, migrates, and spawns the store's own tasks into `tasks`; they end when `cancel` is.
    pub async fn open(
        config: &Config,
        access: Access,
        tasks: &mut JoinSet<()>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        if config.planted.is_some() && !cfg!(feature = "planted-bugs") {
            return Err(Error::Start("this build has no planted bugs; build with --features planted-bugs".into()));
        }
        let (database, lock) = match &config.backend {
            Backend::Sqlite { file } => {
                let lock = if access == Access::Server { Some(lock_beside(file)?) } else { None };
                (open_sqlite(file, config).await?, lock)
            }
            Backend::Postgres { url } => (open_postgres(url, config).await?, None),
        };
        let epoch = epoch_of(&database).await?;
        let (requests, receiver) = mpsc::channel(WAITING_COMMITS);
        let store = Self(Arc::new(Inner {
            database,
            backend: config.backend.clone(),
            epoch,
            tails: Tails::new(config.tail_bytes),
            watches: Watches::default(),
            requests,
            queue_bell: Arc::default(),
            #[cfg(feature = "planted-bugs")]
            planted: config.planted,
            _lock: lock,
        }));
        if access == Access::Server {
            tasks.spawn(Writer::new(store.clone(), receiver).run(cancel.clone()));
            tasks.spawn(Checkpointer { store: store.clone() }.run(cancel.clone()));
        }
        Ok(store)
    }

    /// Saves, then shows, then returns: when this is `Ok`, the events are on disk (invariant 1).
    pub async fn commit(&self, commit: Commit) -> Result<Committed> {
        let (reply, answer) = oneshot::channel();
        let closed = || Error::Unavailable("the store is shutting down".into());
        self.0.requests.send(Request { commit, reply }).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// A reader of a room from a position on. Rings `bell` whenever the room has moved.
    pub async fn follow(&self, owner: &Owner, room: RoomId, after: &Position, bell: Arc<Bell>) -> Result<Follower> {
        Follower::open(self, owner, room, after, bell).await
    }

    /// Tells when something happens in any of an owner's rooms.
    pub fn watch(&self, owner: &Owner) -> Watch {
        Watch::begin(self, owner)
    }

    pub fn epoch(&self) -> &Epoch {
        &self.0.epoch
    }

    /// Rings when the queue may have something to do: a run was queued, ended, or asked to stop.
    pub fn queue_bell(&self) -> &Arc<Notify> {
        &self.0.queue_bell
    }

    /// Nobody else can be running on this database.
    pub fn is_sole_user(&self) -> bool {
        self.0._lock.is_some()
    }

    /// Proves that a write can be committed now.
    pub async fn check_writable(&self) -> Result<()> {
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query(
                "INSERT INTO meta (key, value) VALUES ('ready', '1') \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )
            .execute(&mut *transaction)
            .await?;
        });
        Ok::<(), Error>(())
    }

    /// Nobody has used this store yet.
    pub async fn is_fresh(&self) -> Result<bool> {
        let used: Option<String> = crate::database::reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(USED).fetch_optional(pool).await
        })?;
        Ok(used.is_none())
    }

    pub async fn mark_used(&self) -> Result<()> {
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query("INSERT INTO meta (key, value) VALUES ($1, '1') ON CONFLICT (key) DO NOTHING")
                .bind(USED)
                .execute(&mut *transaction)
                .await?;
        });
        Ok(())
    }

    pub fn backend(&self) -> &Backend {
        &self.0.backend
    }

    pub(crate) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn tails(&self) -> &Tails {
        &self.0.tails
    }

    pub(crate) fn watches(&self) -> &Watches {
        &self.0.watches
    }

    #[cfg(feature = "planted-bugs")]
    pub(crate) fn planted(&self) -> Option<Planted> {
        self.0.planted
    }

    /// SQLite's database; its log is beside it.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.0.backend {
            Backend::Sqlite { file } => Some(file),
            Backend::Postgres { .. } => None,
        }
    }

    /// A restored database is another journal: old cursors must start over (invariant 8).
    pub(crate) async fn renew_epoch(&self) -> Result<Epoch> {
        let epoch = Epoch::generate();
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query("UPDATE meta SET value = $2 WHERE key = $1")
                .bind(EPOCH)
                .bind(epoch.as_str())
                .execute(&mut *transaction)
                .await?;
        });
        Ok(epoch)
    }

    /// Flushes and closes the connections.
    pub async fn close(&self) {
        match self.database() {
            Database::Sqlite { write, read, .. } => {
                read.close().await;
                write.close().await;
            }
            Database::Postgres(pool) => pool.close().await,
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("backend", &self.0.backend).field("epoch", &self.0.epoch).finish_non_exhaustive()
    }
}

pub(crate) fn lock_beside(file: &Path) -> Result<File> {
    let path = file.with_extension("lock");
    let start = |error: &dyn std::fmt::Display| Error::Start(format!("cannot lock {}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| start(&error))?;
    }
    let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(|error| start(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::Start(format!(
            "another Greenroom server is using {}; stop it, or give this one its own --data-dir",
            file.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => Err(start(&error)),
    }
}

async fn open_sqlite(file: &Path, config: &Config) -> Result<Database> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::Start(format!("cannot create the data folder {}: {error}", folder.display())))?;
    }
    let synchronous = match config.planted {
        Some(Planted::SynchronousOff) => SqliteSynchronous::Off,
        _ => SqliteSynchronous::Full,
    };
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .busy_timeout(ACQUIRE)
        .foreign_keys(false)
        // Checkpoints run beside the writer; this is only the net below them.
        .pragma("wal_autocheckpoint", "16000")
        .pragma("temp_store", "MEMORY");
    let cannot_open = |error: sqlx::Error| Error::Start(format!("cannot open {}: {error}", file.display()));
    let write = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE)
        // It is no wire that can break while nobody looks, and it is tested when it is given back. Asking it again before
        // each use would double the time of a short read.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options.clone().statement_cache_capacity(SHAPES))
        .await
        .map_err(cannot_open)?;
    sqlx::migrate!("migrations/sqlite").run(&write).await.map_err(|error| Error::Start(error.to_string()))?;
    if config.planted != Some(Planted::SynchronousOff) {
        assert_durable_sqlite(&write).await?;
    }
    let read = SqlitePoolOptions::new()
        .max_connections(config.read_connections.max(1))
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(Database::Sqlite { write, read, meddled: AtomicU64::new(0) })
}

/// An acknowledged event must survive a power cut. A file system or build that silently gives less is refused.
async fn assert_durable_sqlite(write: &SqlitePool) -> Result<()> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(write).await?;
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(write).await?;
    if !mode.eq_ignore_ascii_case("wal") || synchronous < 2 {
        return Err(Error::Start(format!(
            "SQLite runs with journal_mode={mode}, synchronous={synchronous} here, which can lose acknowledged events; \
             put the data folder on a local disk"
        )));
    }
    Ok(())
}

async fn open_postgres(url: &str, config: &Config) -> Result<Database> {
    // The error of a malformed URL may repeat it, password and all.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| Error::Start("the database URL is not of the form postgres://user@host/name".into()))?
        .application_name("greenroom")
        // A server that froze in the middle of a transaction must not hold its locks against the others for ever.
        .options([("synchronous_commit", "on"), ("idle_in_transaction_session_timeout", "30s")]);
    let pool = PgPoolOptions::new()
        .max_connections(config.read_connections.max(1) + 2)
        .acquire_timeout(ACQUIRE)
        .connect_with(options)
        .await
        .map_err(|error| Error::Start(format!("cannot reach PostgreSQL: {error}")))?;
    sqlx::migrate!("migrations/postgres").run(&pool).await.map_err(|error| Error::Start(error.to_string()))?;
    assert_durable_postgres(&pool).await?;
    Ok(Database::Postgres(pool))
}

async fn assert_durable_postgres(pool: &PgPool) -> Result<()> {
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value: String = sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(pool).await?;
        if matches!(value.as_str(), "off" | "local") {
            return Err(Error::Start(format!(
                "PostgreSQL runs with {setting} = {value}, which can lose acknowledged events; turn it on"
            )));
        }
    }
    Ok(())
}

async fn epoch_of(database: &Database) -> Result<Epoch> {
    let fresh = Epoch::generate();
    let stored: String = crate::database::writing!(database, |transaction| {
        sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING")
            .bind(EPOCH)
            .bind(fresh.as_str())
            .execute(&mut *transaction)
            .await?;
        sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(EPOCH).fetch_one(&mut *transaction).await?
    });
    Epoch::parse(&stored).map_err(|error| Error::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{Backend, Config, open_sqlite};
    use crate::database::Database;

    #[tokio::test]
    async fn invariant_01_durable_before_visible_every_sqlite_connection_syncs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep").join("greenroom.db");
        let backend = Backend::Sqlite { file: file.clone() };
        let config = Config { backend, read_connections: 2, tail_bytes: 0, planted: None };
        let Database::Sqlite { write, read, .. } = open_sqlite(&file, &config).await.unwrap() else { unreachable!() };
        for pool in [&write, &read] {
            let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(pool).await.unwrap();
            let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(pool).await.unwrap();
            assert_eq!((mode.as_str(), synchronous), ("wal", 2), "WAL and FULL");
        }
        let meddling = sqlx::query("DELETE FROM meta").execute(&read).await;
        assert!(meddling.is_err(), "a connection that reads does nothing else");
        read.close().await;
        write.close().await;
    }
}
