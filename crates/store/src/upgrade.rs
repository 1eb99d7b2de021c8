//! Compares the schema of a database with the migrations of this program, without changing the database or disturbing a
//! server that uses it.

use crate::{Backend, StoreError, error::Result, migrations, row::row};
use sqlx::{
    ConnectOptions as _, Connection as _,
    migrate::Migrator,
    postgres::PgConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteConnection},
};
use std::{ffi::OsString, io::ErrorKind, path::Path, str::FromStr as _, time::Duration};

/// How long to wait for a lock, or for PostgreSQL to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// sqlx's own table. An applied migration has a row in it.
const APPLIED: &str = "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";

/// What a start of this program would find. A schema is the number of its last migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// No database, or an empty one.
    New {
        known: i64,
    },
    UpToDate {
        schema: i64,
    },
    /// A start would apply these migrations, such as `0006_memory`.
    Behind {
        schema: i64,
        known: i64,
        pending: Vec<String>,
    },
    /// A newer program has applied migrations that this one does not have.
    Newer {
        schema: i64,
        known: i64,
    },
    /// The migration of this name is not the one that was applied: it was edited, or comes from another branch.
    Altered {
        migration: String,
    },
    /// The migration of this name was interrupted.
    Unfinished {
        migration: String,
    },
}

struct KnownMigration {
    version: i64,
    name: String,
    checksum: Vec<u8>,
}

row! {
    struct AppliedMigration {
        version: i64,
        checksum: Vec<u8>,
        success: bool,
    }
}

pub async fn schema_state(backend: &Backend) -> Result<SchemaState> {
    let (migrator, applied) = match backend {
        Backend::Sqlite { file } => (migrations::sqlite(), applied_to_sqlite(file).await?),
        Backend::Postgres { url } => (migrations::postgres(), applied_to_postgres(url).await?),
    };
    Ok(compare(&known(&migrator), &applied))
}

fn known(migrator: &Migrator) -> Vec<KnownMigration> {
    let name = |version: i64, description: &str| format!("{version:04}_{}", description.replace(' ', "_"));
    migrator
        .iter()
        .map(|migration| KnownMigration {
            version: migration.version,
            name: name(migration.version, &migration.description),
            checksum: migration.checksum.to_vec(),
        })
        .collect()
}

/// Both lists are in order.
fn compare(known: &[KnownMigration], applied: &[AppliedMigration]) -> SchemaState {
    let newest = known.last().map_or(0, |migration| migration.version);
    let Some(schema) = applied.last().map(|migration| migration.version) else {
        return SchemaState::New { known: newest };
    };
    let find = |version: i64| known.iter().find(|migration| migration.version == version);
    for migration in applied {
        let Some(ours) = find(migration.version) else {
            return SchemaState::Newer { schema, known: newest };
        };
        if !migration.success {
            return SchemaState::Unfinished { migration: ours.name.clone() };
        }
        if ours.checksum != migration.checksum {
            return SchemaState::Altered { migration: ours.name.clone() };
        }
    }
    let is_pending = |ours: &&KnownMigration| applied.iter().all(|migration| migration.version != ours.version);
    let pending: Vec<String> = known.iter().filter(is_pending).map(|migration| migration.name.clone()).collect();
    match pending.is_empty() {
        true => SchemaState::UpToDate { schema },
        false => SchemaState::Behind { schema, known: newest, pending },
    }
}

async fn applied_to_sqlite(file: &Path) -> Result<Vec<AppliedMigration>> {
    let cannot_read = || StoreError::start(format!("cannot read {}", file.display()));
    match std::fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot_read().caused_by(error)),
        Ok(_) => {}
    }
    let mut connection = read_only(file).connect().await.map_err(|error| cannot_read().caused_by(error))?;
    let applied = applied_in(&mut connection).await.map_err(|error| cannot_read().caused_by(error));
    connection.close().await?;
    applied
}

async fn applied_in(connection: &mut SqliteConnection) -> std::result::Result<Vec<AppliedMigration>, sqlx::Error> {
    let tables: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'")
            .fetch_one(&mut *connection)
            .await?;
    match tables {
        0 => Ok(Vec::new()),
        _ => sqlx::query_as(APPLIED).fetch_all(connection).await,
    }
}

/// Without a log, no server is running and all data is in the file. Reading it as an immutable file then creates no log
/// either, which might belong to a user other than the server's.
fn read_only(file: &Path) -> SqliteConnectOptions {
    let mut log = OsString::from(file);
    log.push("-wal");
    SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .immutable(!Path::new(&log).exists())
        .busy_timeout(TIMEOUT)
}

async fn applied_to_postgres(url: &str) -> Result<Vec<AppliedMigration>> {
    // The error of a malformed URL may contain the password.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::start("the database URL is invalid; it must have the form postgres://user@host/name"))?
        .application_name("greenroom")
        .options([("default_transaction_read_only", "on"), ("statement_timeout", "10s")]);
    let cannot_reach = || StoreError::start("cannot reach PostgreSQL");
    let connecting = tokio::time::timeout(TIMEOUT, options.connect()).await;
    let mut connection =
        connecting.map_err(|late| cannot_reach().caused_by(late))?.map_err(|error| cannot_reach().caused_by(error))?;
    let exists: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut connection).await?;
    let applied = match exists {
        false => Vec::new(),
        true => sqlx::query_as(APPLIED).fetch_all(&mut connection).await?,
    };
    connection.close().await?;
    Ok(applied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreAccess, StoreConfig};
    use std::{collections::BTreeMap, path::PathBuf, time::SystemTime};
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    fn state(applied: &[(i64, u8, bool)]) -> SchemaState {
        let known = [(1, "0001_spine"), (2, "0002_skills"), (3, "0003_memory")].map(|(version, name)| KnownMigration {
            version,
            name: name.to_owned(),
            checksum: vec![version as u8],
        });
        let applied = applied.iter().map(|&(version, checksum, success)| AppliedMigration {
            version,
            checksum: vec![checksum],
            success,
        });
        compare(&known, &applied.collect::<Vec<_>>())
    }

    #[test]
    fn every_difference_has_its_state() {
        let behind = |schema, pending: &[&str]| SchemaState::Behind {
            schema,
            known: 3,
            pending: pending.iter().map(|name| name.to_string()).collect(),
        };
        assert_eq!(state(&[]), SchemaState::New { known: 3 });
        assert_eq!(state(&[(1, 1, true), (2, 2, true), (3, 3, true)]), SchemaState::UpToDate { schema: 3 });
        assert_eq!(state(&[(1, 1, true)]), behind(1, &["0002_skills", "0003_memory"]));
        assert_eq!(state(&[(1, 1, true), (3, 3, true)]), behind(3, &["0002_skills"]));
        let newer = SchemaState::Newer { schema: 5, known: 3 };
        assert_eq!(state(&[(1, 1, true), (2, 2, true), (3, 3, true), (4, 4, true), (5, 5, true)]), newer);
        let altered = SchemaState::Altered { migration: "0002_skills".to_owned() };
        assert_eq!(state(&[(1, 1, true), (2, 9, true)]), altered);
        let unfinished = SchemaState::Unfinished { migration: "0002_skills".to_owned() };
        assert_eq!(state(&[(1, 1, true), (2, 2, false)]), unfinished);
    }

    #[test]
    fn migrations_are_named_after_their_files() {
        let names: Vec<String> = known(&migrations::sqlite()).into_iter().map(|migration| migration.name).collect();
        assert_eq!(names[0], "0001_spine");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
        assert!(names.iter().all(|name| folder.join(format!("{name}.sql")).is_file()), "{names:?}");
    }

    /// Names, sizes and times of all files.
    fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| {
                let metadata = entry.metadata().unwrap();
                (entry.path(), (metadata.len(), metadata.modified().unwrap()))
            })
            .collect()
    }

    #[tokio::test]
    async fn a_check_changes_no_file_and_disturbs_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let backend = Backend::Sqlite { file: folder.path().join("greenroom.db") };
        let newest = known(&migrations::sqlite()).last().unwrap().version;
        assert_eq!(schema_state(&backend).await.unwrap(), SchemaState::New { known: newest });
        assert!(files(folder.path()).is_empty());

        let config = StoreConfig {
            backend,
            read_connections: 1,
            tail_bytes: 0,
            secrets_file: folder.path().join("secrets.key"),
            planted_bug: None,
        };
        let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
        let store = Store::open(&config, StoreAccess::Server, &mut tasks, &cancel).await.unwrap();
        let current = SchemaState::UpToDate { schema: newest };
        assert_eq!(schema_state(&config.backend).await.unwrap(), current, "while a server runs");
        store.check_writable().await.unwrap();
        cancel.cancel();
        while tasks.join_next().await.is_some() {}
        store.close().await;

        let before = files(folder.path());
        assert_eq!(schema_state(&config.backend).await.unwrap(), current, "after it has stopped");
        assert_eq!(files(folder.path()), before);
    }

    #[tokio::test]
    async fn an_old_and_a_newer_database_are_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("greenroom.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let all = migrations::sqlite();
        Migrator::with_migrations(all.iter().take(4).cloned().collect()).run(&mut connection).await.unwrap();
        let backend = Backend::Sqlite { file };
        let pending: Vec<String> = known(&all).into_iter().skip(4).map(|migration| migration.name).collect();
        let newest = all.iter().last().unwrap().version;
        let behind = SchemaState::Behind { schema: 4, known: newest, pending };
        assert_eq!(schema_state(&backend).await.unwrap(), behind);
        let row = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                   VALUES (9999, 'later', TRUE, x'00', 0)";
        sqlx::query(row).execute(&mut connection).await.unwrap();
        let newer = SchemaState::Newer { schema: 9999, known: newest };
        assert_eq!(schema_state(&backend).await.unwrap(), newer);
        connection.close().await.unwrap();
    }

    #[tokio::test]
    async fn an_unreadable_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("greenroom.db");
        std::fs::write(&file, "not a database, but longer than the header of one would be, to be read as a page")
            .unwrap();
        let error = schema_state(&Backend::Sqlite { file: file.clone() }).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}", file.display())), "{error}");
        let beneath = schema_state(&Backend::Sqlite { file: file.join("greenroom.db") }).await;
        assert!(beneath.is_err(), "a path through a file");
    }
}
