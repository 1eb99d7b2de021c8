//! Opens the store: selects the database, checks its durability, and provides the `Store` handle.

use crate::{
    StoreError,
    counted_audit::{CountedAudit, CountedAuditWriter},
    database::Database,
    error::Result,
    journal::{
        Checkpointer, Commit, CommitRequest, Committed, Follower, JournalWriter, PREPARE_WRITE_CONNECTION, Tails,
    },
    migrations,
    notify::{Notifier, NotifyHub, NotifyService, PostgresRelay},
    private_file,
    search::ChangedRooms,
    secrets::{Secrets, create_secrets_key, read_keys},
};
use domain::{
    ids::RoomId,
    owner::Owner,
    position::{Epoch, Position},
};
use sqlx::{
    PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
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
pub struct StoreConfig {
    pub backend: Backend,
    /// The number of read connections of clients; the worker has others, and SQLite one more for writes.
    pub read_connections: u32,
    /// How many bytes of recent events are kept in memory for live readers.
    pub tail_bytes: usize,
    /// The file with the keys of the secrets; a server creates it.
    pub secrets_file: PathBuf,
    pub planted_bug: Option<PlantedBug>,
}

#[derive(Clone)]
pub enum Backend {
    Sqlite {
        file: PathBuf,
    },
    /// The URL may contain a password: it is never shown.
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

/// Deliberate bugs, to prove that the crash harness detects them. They exist only in builds with the feature
/// `test-hooks`; any other build refuses to start with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    EmitBeforeCommit,
    SynchronousOff,
}

/// A server owns its database; a command-line tool uses it while a server may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreAccess {
    Server,
    Tool,
}

/// A cheaply cloned handle to the store.
#[derive(Clone)]
pub struct Store(Arc<StoreInner>);

/// The connections of a handle, and what all handles share.
struct StoreInner {
    database: Database,
    shared: Arc<StoreShared>,
}

struct StoreShared {
    /// The connections of the writer and the worker: clients that read a lot cannot take them (invariant 28).
    worker_database: Database,
    backend: Backend,
    epoch: Epoch,
    tails: Tails,
    notify_hub: NotifyHub,
    requests: mpsc::Sender<CommitRequest>,
    counted_audit: Arc<CountedAudit>,
    /// Notified when something was deleted, for the eraser.
    deleted: Notify,
    /// For the search index.
    changed_rooms: ChangedRooms,
    secrets: Secrets,
    #[cfg(feature = "test-hooks")]
    planted: Option<PlantedBug>,
    /// Held while the server runs: one server per SQLite file.
    _lock: Option<File>,
}

/// The number of commits that may wait for the writer; further callers wait for a free slot.
const WAITING_COMMITS: usize = 4096;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements of the write connection: commits produce many different scripts.
const CACHED_STATEMENTS: usize = 256;
/// Read connections of the worker, which renews leases and claims and prepares runs.
const WORKER_CONNECTIONS: u32 = 2;
const EPOCH_KEY: &str = "epoch";
const USED_KEY: &str = "used";

impl Store {
    /// Opens and migrates the database, and spawns the store's tasks into `tasks`; they end when `cancel` is cancelled.
    pub async fn open(
        config: &StoreConfig,
        access: StoreAccess,
        tasks: &mut JoinSet<()>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        if config.planted_bug.is_some() && !cfg!(feature = "test-hooks") {
            return Err(StoreError::start("this build has no planted bugs; build with --features test-hooks"));
        }
        let (OpenConnections { database, worker_database }, lock, relay) = match &config.backend {
            Backend::Sqlite { file } => {
                let lock = if access == StoreAccess::Server { Some(lock_database(file)?) } else { None };
                (open_sqlite(file, config).await?, lock, None)
            }
            Backend::Postgres { url } => {
                let options = postgres_options(url)?;
                let connections = open_postgres(options.clone(), config).await?;
                (connections, None, (access == StoreAccess::Server).then(|| PostgresRelay::new(options)))
            }
        };
        let epoch = epoch_of(&database).await?;
        if access == StoreAccess::Server {
            create_secrets_key(&config.secrets_file)?;
        }
        let secrets = Secrets::new(read_keys(&config.secrets_file)?, &config.secrets_file);
        let (requests, receiver) = mpsc::channel(WAITING_COMMITS);
        let shared = Arc::new(StoreShared {
            worker_database,
            backend: config.backend.clone(),
            epoch,
            tails: Tails::new(config.tail_bytes),
            notify_hub: if relay.is_some() { NotifyHub::with_outbox() } else { NotifyHub::default() },
            requests,
            counted_audit: Arc::default(),
            deleted: Notify::new(),
            changed_rooms: ChangedRooms::default(),
            secrets,
            #[cfg(feature = "test-hooks")]
            planted: config.planted_bug,
            _lock: lock,
        });
        let store = Self(Arc::new(StoreInner { database, shared }));
        if access == StoreAccess::Server {
            store.encrypt_old_secrets().await?;
            tasks.spawn(JournalWriter::new(store.for_worker(), receiver).run(cancel.clone()));
            tasks.spawn(Checkpointer { store: store.clone() }.run(cancel.clone()));
            tasks.spawn(CountedAuditWriter { store: store.clone() }.run(cancel.clone()));
        }
        if let Some(relay) = relay {
            tasks.spawn(NotifyService::start(store.clone(), relay).await.run(cancel.clone()));
        }
        Ok(store)
    }

    /// Stores a commit, publishes its events, and returns. After `Ok`, the events are on disk (invariant 1).
    pub async fn commit(&self, commit: Commit) -> Result<Committed> {
        let (reply, answer) = oneshot::channel();
        let closed = || StoreError::unavailable("the store is shutting down");
        self.0.shared.requests.send(CommitRequest { commit, reply }).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Returns a reader of a room, starting after a position. Wakes `notifier` whenever the room has new events.
    pub async fn follow(
        &self,
        owner: &Owner,
        room: RoomId,
        after: &Position,
        notifier: Arc<Notifier>,
    ) -> Result<Follower> {
        Follower::open(self, owner, room, after, notifier).await
    }

    /// The same store on the connections of the worker, which nobody else uses.
    pub fn for_worker(&self) -> Self {
        let shared = Arc::clone(&self.0.shared);
        Self(Arc::new(StoreInner { database: shared.worker_database.clone(), shared }))
    }

    /// Takes all read connections of clients until the result is dropped: what a flood of slow reads does.
    #[cfg(feature = "test-hooks")]
    pub async fn hold_client_connections(&self) -> Result<HeldConnections> {
        let mut held = HeldConnections::default();
        match &self.0.database {
            Database::Sqlite { read, .. } => {
                for _ in 0..read.options().get_max_connections() {
                    held.sqlite.push(read.acquire().await?);
                }
            }
            Database::Postgres(pool) => {
                for _ in 0..pool.options().get_max_connections() {
                    held.postgres.push(pool.acquire().await?);
                }
            }
        }
        Ok(held)
    }

    pub fn epoch(&self) -> &Epoch {
        &self.0.shared.epoch
    }

    /// Returns whether no other server can use this database.
    pub fn is_only_server(&self) -> bool {
        self.0.shared._lock.is_some()
    }

    /// Checks that a write can be committed now.
    pub async fn check_writable(&self) -> Result<()> {
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query(
                "INSERT INTO meta (key, value) VALUES ('ready', '1') \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )
            .execute(&mut *transaction)
            .await?;
        });
        Ok::<(), StoreError>(())
    }

    /// Returns whether this store has never been used.
    pub async fn is_fresh(&self) -> Result<bool> {
        let used: Option<String> = crate::database::reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(USED_KEY).fetch_optional(pool).await
        })?;
        Ok(used.is_none())
    }

    pub async fn mark_used(&self) -> Result<()> {
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query("INSERT INTO meta (key, value) VALUES ($1, '1') ON CONFLICT (key) DO NOTHING")
                .bind(USED_KEY)
                .execute(&mut *transaction)
                .await?;
        });
        Ok(())
    }

    pub fn backend(&self) -> &Backend {
        &self.0.shared.backend
    }

    pub(crate) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn tails(&self) -> &Tails {
        &self.0.shared.tails
    }

    pub(crate) fn notify_hub(&self) -> &NotifyHub {
        &self.0.shared.notify_hub
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.0.shared.secrets
    }

    pub(crate) fn changed_rooms(&self) -> &ChangedRooms {
        &self.0.shared.changed_rooms
    }

    pub(crate) fn delete_notify(&self) -> &Notify {
        &self.0.shared.deleted
    }

    pub(crate) fn counted_audit(&self) -> &Arc<CountedAudit> {
        &self.0.shared.counted_audit
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn planted(&self) -> Option<PlantedBug> {
        self.0.shared.planted
    }

    /// SQLite's database file; its write-ahead log is in the same folder.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.0.shared.backend {
            Backend::Sqlite { file } => Some(file),
            Backend::Postgres { .. } => None,
        }
    }

    /// Sets a new epoch. After a restore, old cursors must start over (invariant 8).
    pub(crate) async fn renew_epoch(&self) -> Result<Epoch> {
        let epoch = Epoch::generate();
        crate::database::writing!(self.database(), |transaction| {
            sqlx::query("UPDATE meta SET value = $2 WHERE key = $1")
                .bind(EPOCH_KEY)
                .bind(epoch.as_str())
                .execute(&mut *transaction)
                .await?;
        });
        Ok(epoch)
    }

    /// Flushes and closes all connections.
    pub async fn close(&self) {
        for database in [&self.0.database, &self.0.shared.worker_database] {
            match database {
                Database::Sqlite { read, .. } => read.close().await,
                Database::Postgres(pool) => pool.close().await,
            }
        }
        // Last, because the last connection to close writes SQLite's log back.
        if let Database::Sqlite { write, .. } = self.database() {
            write.close().await;
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("backend", self.backend()).field("epoch", self.epoch()).finish_non_exhaustive()
    }
}

pub(crate) fn lock_database(file: &Path) -> Result<File> {
    let path = file.with_extension("lock");
    let cannot_lock =
        |error: std::io::Error| StoreError::start(format!("cannot lock {}", path.display())).caused_by(error);
    if let Some(folder) = path.parent() {
        private_file::create_folder(folder).map_err(cannot_lock)?;
    }
    let lock = private_file::options().create(true).truncate(false).write(true).open(&path).map_err(cannot_lock)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::start(format!(
            "another Greenroom server is using {}; stop it, or pass another --data-dir",
            file.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => Err(cannot_lock(error)),
    }
}

/// The connections of clients, and those of the writer and the worker.
struct OpenConnections {
    database: Database,
    worker_database: Database,
}

/// Connections that a test keeps from everybody else.
#[cfg(feature = "test-hooks")]
#[derive(Debug, Default)]
pub struct HeldConnections {
    sqlite: Vec<sqlx::pool::PoolConnection<sqlx::Sqlite>>,
    postgres: Vec<sqlx::pool::PoolConnection<sqlx::Postgres>>,
}

async fn open_sqlite(file: &Path, config: &StoreConfig) -> Result<OpenConnections> {
    if let Some(folder) = file.parent() {
        private_file::create_folder(folder).map_err(|error| {
            StoreError::start(format!("cannot create the data folder {}", folder.display())).caused_by(error)
        })?;
    }
    // SQLite gives its log and its index the mode of the database, and an empty file is an empty database.
    private_file::create(file)
        .map_err(|error| StoreError::start(format!("cannot create {}", file.display())).caused_by(error))?;
    let synchronous = match config.planted_bug {
        Some(PlantedBug::SynchronousOff) => SqliteSynchronous::Off,
        _ => SqliteSynchronous::Full,
    };
    let is_new = file.metadata().is_ok_and(|found| found.len() == 0);
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .busy_timeout(ACQUIRE_TIMEOUT)
        .foreign_keys(true)
        // Checkpoints run in their own task; this is only a safety net.
        .pragma("wal_autocheckpoint", "16000")
        .pragma("temp_store", "MEMORY");
    let cannot_open =
        |error: sqlx::Error| StoreError::start(format!("cannot open {}", file.display())).caused_by(error);
    // What is deleted is overwritten, so that it can be found in no file.
    let mut write_options = options.clone().pragma("secure_delete", "ON").statement_cache_capacity(CACHED_STATEMENTS);
    if is_new {
        // So that the file can shrink when something is erased. On a file with tables it would have no effect.
        write_options = write_options.auto_vacuum(SqliteAutoVacuum::Incremental);
    }
    let write = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A local connection does not break while idle, and it is tested when it is released. Testing it before each
        // use would double the time of a short read.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(|connection, _| {
            Box::pin(async move { sqlx::raw_sql(PREPARE_WRITE_CONNECTION).execute(connection).await.map(drop) })
        })
        .connect_with(write_options)
        .await
        .map_err(cannot_open)?;
    migrate_sqlite(&write, synchronous).await?;
    if config.planted_bug != Some(PlantedBug::SynchronousOff) {
        assert_durable_sqlite(&write).await?;
    }
    let options = options.pragma("query_only", "ON");
    let read_pool = |connections: u32| {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone())
    };
    let (write, external_writes) = (&write, &Arc::new(AtomicU64::new(0)));
    let database = |read| Database::Sqlite { write: write.clone(), read, external_writes: Arc::clone(external_writes) };
    Ok(OpenConnections {
        database: database(read_pool(config.read_connections.max(1))),
        worker_database: database(read_pool(WORKER_CONNECTIONS)),
    })
}

/// Runs the migrations without a sync for each: in WAL mode a power cut then undoes the last of them, and they run again
/// at the next start. The first commit of an event syncs them along with it.
async fn migrate_sqlite(write: &SqlitePool, synchronous: SqliteSynchronous) -> Result<()> {
    let level = |level: &'static str| sqlx::query(level).execute(write);
    level("PRAGMA synchronous = NORMAL").await?;
    migrations::sqlite().run(write).await.map_err(cannot_migrate)?;
    level(match synchronous {
        SqliteSynchronous::Off => "PRAGMA synchronous = OFF",
        _ => "PRAGMA synchronous = FULL",
    })
    .await?;
    Ok(())
}

fn cannot_migrate(error: sqlx::migrate::MigrateError) -> StoreError {
    StoreError::start("cannot migrate the database").caused_by(error)
}

/// An acknowledged event must survive a power cut. A file system or build with weaker guarantees is rejected.
async fn assert_durable_sqlite(write: &SqlitePool) -> Result<()> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(write).await?;
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(write).await?;
    if !mode.eq_ignore_ascii_case("wal") || synchronous < 2 {
        return Err(StoreError::start(format!(
            "SQLite runs with journal_mode={mode}, synchronous={synchronous} here, which can lose acknowledged events; \
             put the data folder on a local disk"
        )));
    }
    Ok(())
}

fn postgres_options(url: &str) -> Result<PgConnectOptions> {
    // The error of a malformed URL may contain the password.
    PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::start("the database URL is invalid; it must have the form postgres://user@host/name"))
}

async fn open_postgres(options: PgConnectOptions, config: &StoreConfig) -> Result<OpenConnections> {
    let options = options
        .application_name("greenroom")
        // A server that hangs inside a transaction must not hold its locks indefinitely.
        .options([("synchronous_commit", "on"), ("idle_in_transaction_session_timeout", "30s")]);
    let limits = |connections: u32| PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIMEOUT);
    // One more than for reads: clients also change agents, tokens and the like.
    let pool = limits(config.read_connections.max(1) + 1)
        .connect_with(options.clone())
        .await
        .map_err(|error| StoreError::start("cannot reach PostgreSQL").caused_by(error))?;
    migrations::postgres().run(&pool).await.map_err(cannot_migrate)?;
    assert_durable_postgres(&pool).await?;
    // One more for the writer.
    let worker_pool = limits(WORKER_CONNECTIONS + 1).connect_lazy_with(options);
    Ok(OpenConnections { database: Database::Postgres(pool), worker_database: Database::Postgres(worker_pool) })
}

async fn assert_durable_postgres(pool: &PgPool) -> Result<()> {
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value: String = sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(pool).await?;
        if matches!(value.as_str(), "off" | "local") {
            return Err(StoreError::start(format!(
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
            .bind(EPOCH_KEY)
            .bind(fresh.as_str())
            .execute(&mut *transaction)
            .await?;
        sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(EPOCH_KEY).fetch_one(&mut *transaction).await?
    });
    Epoch::parse(&stored).map_err(|error| StoreError::unreadable("the epoch").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::{Backend, OpenConnections, StoreConfig, open_sqlite};
    use crate::database::Database;

    #[tokio::test]
    async fn invariant_01_durable_before_visible_every_sqlite_connection_syncs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep").join("greenroom.db");
        let backend = Backend::Sqlite { file: file.clone() };
        let config = StoreConfig {
            backend,
            read_connections: 2,
            tail_bytes: 0,
            secrets_file: folder.path().join("secrets.key"),
            planted_bug: None,
        };
        let OpenConnections { database, worker_database } = open_sqlite(&file, &config).await.unwrap();
        let Database::Sqlite { write, read, .. } = database else { unreachable!() };
        let Database::Sqlite { read: worker_read, .. } = worker_database else { unreachable!() };
        for pool in [&write, &read, &worker_read] {
            let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(pool).await.unwrap();
            let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(pool).await.unwrap();
            assert_eq!((mode.as_str(), synchronous), ("wal", 2), "WAL and FULL");
        }
        let write_attempt = sqlx::query("DELETE FROM meta").execute(&read).await;
        assert!(write_attempt.is_err(), "a read connection cannot write");
        read.close().await;
        worker_read.close().await;
        write.close().await;
    }
}
