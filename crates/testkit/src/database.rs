//! A database of one's own, on either engine, and a store opened on it the way a server opens one.
//!
//! Every test starts from nothing and leaves nothing behind. Both engines answer to the same type, so that one test
//! runs on both.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    thread,
};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::{Access, Backend, Config, Error, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The address of a PostgreSQL on which databases may be made and dropped.
const POSTGRES: &str = "GREENROOM_TEST_POSTGRES";

/// Removed when dropped.
#[derive(Debug)]
pub struct TestDatabase {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Sqlite { folder: tempfile::TempDir },
    Postgres { server: String, name: String, folder: tempfile::TempDir },
}

impl TestDatabase {
    /// In a temporary folder.
    #[expect(clippy::expect_used, reason = "a test that has no place to work in has failed")]
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { place: Place::Sqlite { folder } }
    }

    /// What belongs to it and is not in the database: a server's data folder.
    pub fn folder(&self) -> &Path {
        let (Place::Sqlite { folder } | Place::Postgres { folder, .. }) = &self.place;
        folder.path()
    }

    /// A fresh database on the server that the environment names.
    #[expect(clippy::disallowed_methods, reason = "xtask hands the address of its PostgreSQL to the tests this way")]
    #[expect(clippy::expect_used, reason = "a test that has no place to work in has failed")]
    pub fn postgres() -> Self {
        let Ok(server) = std::env::var(POSTGRES) else {
            panic!("{POSTGRES} is not set; run through cargo xtask test, or: cargo xtask postgres");
        };
        let name = format!("test_{}", Uuid::new_v4().simple());
        match administer(&server, format!("CREATE DATABASE {name}")) {
            Ok(()) => {
                let folder = tempfile::tempdir().expect("a temporary folder");
                Self { place: Place::Postgres { server, name, folder } }
            }
            Err(error) => panic!("cannot create a database at {POSTGRES}: {error}"),
        }
    }

    pub fn backend(&self) -> Backend {
        match &self.place {
            Place::Sqlite { .. } => Backend::Sqlite { file: self.file() },
            Place::Postgres { server, name, .. } => Backend::Postgres { url: with_database(server, name) },
        }
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.place, Place::Sqlite { .. })
    }

    /// The file of an SQLite database.
    pub fn file(&self) -> PathBuf {
        match &self.place {
            Place::Sqlite { folder } => folder.path().join("greenroom.db"),
            Place::Postgres { .. } => panic!("a PostgreSQL database is not a file"),
        }
    }

    pub fn config(&self) -> Config {
        Config { backend: self.backend(), read_connections: 4, tail_bytes: 16 * 1024 * 1024, planted: None }
    }

    /// As a server opens it.
    #[expect(clippy::expect_used, reason = "a test without its store has failed")]
    pub async fn open(&self) -> OpenStore {
        OpenStore::open(&self.config()).await.expect("a fresh database opens")
    }

    /// Runs statements on the database itself, past the store.
    #[expect(clippy::expect_used, reason = "a test that cannot prepare its case has failed")]
    pub fn administer(&self, sql: &str) {
        let Place::Postgres { server, name, .. } = &self.place else {
            panic!("only PostgreSQL is administered by statements");
        };
        administer(&with_database(server, name), sql.to_owned()).expect("the statement runs");
    }

    /// The database's own name on its server.
    pub fn name(&self) -> &str {
        match &self.place {
            Place::Sqlite { .. } => "main",
            Place::Postgres { name, .. } => name,
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Place::Postgres { server, name, .. } = &self.place
            && let Err(error) = administer(server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        {
            // The server itself is thrown away after the tests.
            eprintln!("left the database {name} behind: {error}");
        }
    }
}

/// The same server, another database.
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

/// Runs one statement from a thread of its own, because a test may be inside a runtime or past its end.
fn administer(url: &str, sql: String) -> Result<(), String> {
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

/// A store with its own tasks, as a server holds it. Dropping it ends the tasks wherever they are, as a crash would.
#[derive(Debug)]
pub struct OpenStore {
    store: Store,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
}

impl OpenStore {
    pub async fn open(config: &Config) -> Result<Self, Error> {
        let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
        let store = Store::open(config, Access::Server, &mut tasks, &cancel).await?;
        Ok(Self { store, tasks, cancel })
    }

    /// Stops as a server stops: what was handed in is committed, then everything is closed.
    pub async fn shut_down(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.store.close().await;
    }

    /// Asks the tasks to end and does not wait for it.
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
    fn only_the_database_changes() {
        assert_eq!(with_database("postgres://u@h:1/postgres", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1/a?b=c", "x"), "postgres://u@h:1/x?b=c");
    }
}
