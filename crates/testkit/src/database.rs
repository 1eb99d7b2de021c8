//! A separate database per test, on either engine, and a store opened on it the way a server opens one.
//!
//! Every test starts with an empty database and leaves nothing behind. Both engines use the same type, so that one test
//! runs on both.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    thread,
};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::{Backend, Store, StoreAccess, StoreConfig, StoreError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The address of a PostgreSQL server on which databases may be created and dropped.
const POSTGRES: &str = "GREENROOM_TEST_POSTGRES";

/// A test database. Dropping it removes the database.
#[derive(Debug)]
pub struct TestDatabase {
    location: DatabaseLocation,
}

#[derive(Debug)]
enum DatabaseLocation {
    Sqlite { folder: tempfile::TempDir },
    Postgres { server: String, name: String, folder: tempfile::TempDir },
}

impl TestDatabase {
    /// Creates an SQLite database in a temporary folder.
    #[expect(clippy::expect_used, reason = "a test without a database has failed")]
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { location: DatabaseLocation::Sqlite { folder } }
    }

    /// The data folder of a server on this database.
    pub fn folder(&self) -> &Path {
        let (DatabaseLocation::Sqlite { folder } | DatabaseLocation::Postgres { folder, .. }) = &self.location;
        folder.path()
    }

    /// Creates a database on the server named by the environment.
    #[expect(clippy::disallowed_methods, reason = "xtask hands the address of its PostgreSQL to the tests this way")]
    #[expect(clippy::expect_used, reason = "a test without a database has failed")]
    pub fn postgres() -> Self {
        let Ok(server) = std::env::var(POSTGRES) else {
            panic!(
                "{POSTGRES} is not set; run the tests with cargo xtask test, or start a server with cargo xtask postgres"
            );
        };
        let name = format!("test_{}", Uuid::new_v4().simple());
        match execute_on_server(&server, format!("CREATE DATABASE {name}")) {
            Ok(()) => {
                let folder = tempfile::tempdir().expect("a temporary folder");
                Self { location: DatabaseLocation::Postgres { server, name, folder } }
            }
            Err(error) => panic!("cannot create a database at {POSTGRES}: {error}"),
        }
    }

    pub fn backend(&self) -> Backend {
        match &self.location {
            DatabaseLocation::Sqlite { .. } => Backend::Sqlite { file: self.file() },
            DatabaseLocation::Postgres { server, name, .. } => Backend::Postgres { url: with_database(server, name) },
        }
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.location, DatabaseLocation::Sqlite { .. })
    }

    /// The file of an SQLite database.
    pub fn file(&self) -> PathBuf {
        match &self.location {
            DatabaseLocation::Sqlite { folder } => folder.path().join("greenroom.db"),
            DatabaseLocation::Postgres { .. } => panic!("a PostgreSQL database is not a file"),
        }
    }

    pub fn config(&self) -> StoreConfig {
        StoreConfig {
            backend: self.backend(),
            read_connections: 4,
            tail_bytes: 16 * 1024 * 1024,
            secrets_file: self.folder().join("secrets.key"),
            planted_bug: None,
        }
    }

    /// Opens the store the way a server does.
    #[expect(clippy::expect_used, reason = "a test without its store has failed")]
    pub async fn open(&self) -> OpenStore {
        OpenStore::open(&self.config()).await.expect("a fresh database opens")
    }

    /// Runs SQL on the database directly, bypassing the store.
    #[expect(clippy::expect_used, reason = "a test that cannot prepare its case has failed")]
    pub fn execute_sql(&self, sql: &str) {
        let DatabaseLocation::Postgres { server, name, .. } = &self.location else {
            panic!("SQL can be executed only on PostgreSQL");
        };
        execute_on_server(&with_database(server, name), sql.to_owned()).expect("the statement runs");
    }

    /// The name of the database on its server.
    pub fn name(&self) -> &str {
        match &self.location {
            DatabaseLocation::Sqlite { .. } => "main",
            DatabaseLocation::Postgres { name, .. } => name,
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let DatabaseLocation::Postgres { server, name, .. } = &self.location
            && let Err(error) = execute_on_server(server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        {
            // The whole server is discarded after the tests.
            eprintln!("could not drop the database {name}: {error}");
        }
    }
}

/// Returns the URL of another database on the same server.
fn with_database(server: &str, name: &str) -> String {
    let (address, query) = server.split_once('?').map_or((server, None), |(a, q)| (a, Some(q)));
    let address = match address.rsplit_once('/') {
        Some((host, _)) if !host.ends_with('/') => host,
        _ => address,
    };
    match query {
        Some(query) => format!("{address}/{name}?{query}"),
        None => format!("{address}/{name}"),
    }
}

/// Runs one statement in a separate thread, because a test may be inside a runtime or after its end.
fn execute_on_server(url: &str, sql: String) -> Result<(), String> {
    let url = url.to_owned();
    let work = move || -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&url).await.map_err(|e| e.to_string())?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.map_err(|e| e.to_string())?;
            connection.close().await.map_err(|e| e.to_string())
        })
    };
    thread::spawn(work).join().unwrap_or_else(|_| Err("the statement panicked".into()))
}

/// A store with its background tasks. Dropping it aborts the tasks, like a crash.
#[derive(Debug)]
pub struct OpenStore {
    store: Store,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
}

impl OpenStore {
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
        let store = Store::open(config, StoreAccess::Server, &mut tasks, &cancel).await?;
        Ok(Self { store, tasks, cancel })
    }

    /// Stops gracefully: submitted work is committed, then everything is closed.
    pub async fn shut_down(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.store.close().await;
    }

    /// Cancels the tasks without waiting.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Deref for OpenStore {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn with_database_replaces_only_the_database_name() {
        assert_eq!(with_database("postgres://u@h:1/postgres", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1/a?b=c", "x"), "postgres://u@h:1/x?b=c");
    }
}
