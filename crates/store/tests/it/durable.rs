//! Requirements at start: durable settings, and one server per SQLite file.

use crate::scene::{append, journal, me, room, says};
use sqlx::Connection as _;
use store::{Backend, PlantedBug, Store, StoreAccess, StoreConfig, StoreError};
use testkit::database::{OpenStore, TestDatabase};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    one thread:
        a_second_server_on_sqlite_is_rejected,
        the_database_syncs_commits,
        weaker_settings_are_overridden,
        a_planted_bug_is_rejected_without_the_feature,
        the_store_can_be_reopened,
        servers_that_start_concurrently_agree_on_the_epoch,
        the_store_reports_whether_it_is_writable,
        an_unreachable_database_error_does_not_contain_the_password;
}

async fn a_second_server_on_sqlite_is_rejected(database: TestDatabase) {
    let first = database.open().await;
    let second = OpenStore::open(&database.config()).await;
    assert_eq!(first.is_only_server(), database.is_sqlite());
    if !database.is_sqlite() {
        assert!(second.is_ok(), "several servers can share PostgreSQL");
        return;
    }
    let Err(StoreError::Start(text)) = second else { panic!("two servers on one file") };
    assert!(text.to_string().contains("another Greenroom server") && text.to_string().contains("--data-dir"), "{text}");
    let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
    let tool = Store::open(&database.config(), StoreAccess::Tool, &mut tasks, &cancel).await.unwrap();
    assert!(!tool.is_only_server() && tasks.is_empty(), "a tool can open the store while the server runs");
    tool.close().await;
    drop(tool);
    first.shut_down().await;
    database.open().await;
}

async fn the_database_syncs_commits(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    store.commit(append(room, vec![says("1")])).await.unwrap();
    match database.backend() {
        Backend::Sqlite { file } => {
            let url = format!("sqlite://{}?mode=ro", file.display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
            assert_eq!(mode, "wal");
            connection.close().await.unwrap();
        }
        Backend::Postgres { url } => {
            let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
            let sessions: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
            )
            .bind("greenroom")
            .fetch_one(&mut connection)
            .await
            .unwrap();
            assert!(sessions > 0);
            connection.close().await.unwrap();
        }
    }
}

async fn weaker_settings_are_overridden(database: TestDatabase) {
    let Backend::Postgres { url } = database.backend() else {
        // The write connection sets its own pragmas and refuses to start with weaker ones: see `open`.
        return;
    };
    let name = database.name();
    database.execute_sql(&format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    database.execute_sql(&format!("ALTER ROLE CURRENT_USER IN DATABASE {name} SET synchronous_commit = off"));
    let separator = if url.contains('?') { '&' } else { '?' };
    for url in [url.clone(), format!("{url}{separator}options=-c%20synchronous_commit%3Doff")] {
        let mut plain = sqlx::PgConnection::connect(&url).await.unwrap();
        let setting: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut plain).await.unwrap();
        assert_eq!(setting, "off", "the weak setting is active");
        plain.close().await.unwrap();
        // Opening succeeds only if the store's connections override the setting.
        let config = StoreConfig { backend: Backend::Postgres { url }, ..database.config() };
        let store = OpenStore::open(&config).await.unwrap();
        let room = room(&store).await;
        store.commit(append(room, vec![says("1")])).await.unwrap();
        assert_eq!(journal(&store, room).await.len(), 1);
        store.shut_down().await;
    }
}

async fn a_planted_bug_is_rejected_without_the_feature(database: TestDatabase) {
    if cfg!(feature = "test-hooks") {
        return;
    }
    for planted in [PlantedBug::EmitBeforeCommit, PlantedBug::SynchronousOff] {
        let config = StoreConfig { planted_bug: Some(planted), ..database.config() };
        assert!(
            matches!(OpenStore::open(&config).await, Err(StoreError::Start(text)) if text.to_string().contains("planted"))
        );
    }
}

async fn the_store_can_be_reopened(database: TestDatabase) {
    let mut room_id = None;
    for n in 0..4 {
        let store = database.open().await;
        let room = match room_id {
            Some(room) => room,
            None => *room_id.insert(room(&store).await),
        };
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
        assert_eq!(journal(&store, room).await.len(), n + 1);
        store.shut_down().await;
    }
}

async fn servers_that_start_concurrently_agree_on_the_epoch(database: TestDatabase) {
    let config = database.config();
    let starts = (0..4).map(|_| OpenStore::open(&config));
    let started: Vec<OpenStore> = futures_util::future::join_all(starts).await.into_iter().flatten().collect();
    assert_eq!(started.len(), if database.is_sqlite() { 1 } else { 4 });
    let epochs: std::collections::HashSet<_> = started.iter().map(|store| store.epoch().clone()).collect();
    assert_eq!(epochs.len(), 1);
}

async fn the_store_reports_whether_it_is_writable(database: TestDatabase) {
    let store = database.open().await;
    store.check_writable().await.unwrap();
    store.check_writable().await.unwrap();
    assert_eq!(store.rooms(&me(), 10).await.unwrap(), []);
    let closed: Store = (*store).clone();
    store.shut_down().await;
    assert!(matches!(closed.check_writable().await, Err(StoreError::Unavailable(_))));
}

async fn an_unreachable_database_error_does_not_contain_the_password(database: TestDatabase) {
    let backend = if database.is_sqlite() {
        Backend::Sqlite { file: database.file().join("not-a-folder-yet").join("\0") }
    } else {
        Backend::Postgres { url: "postgres://user:hunter2@[bad/name".into() }
    };
    assert!(!format!("{backend:?}").contains("hunter2"));
    let Err(StoreError::Start(text)) = OpenStore::open(&StoreConfig { backend, ..database.config() }).await else {
        panic!("opening should fail")
    };
    assert!(!format!("{text} {text:?}").contains("hunter2"), "{text}");
}

/// After a crash with a preallocated log, everything that was committed is read.
#[tokio::test]
async fn sqlite_reads_a_preallocated_log_up_to_its_last_commit() {
    const ROOM: u64 = 6 * 1024 * 1024;
    let (database, after) = (TestDatabase::sqlite(), TestDatabase::sqlite());
    let files = |database: &TestDatabase| {
        let Backend::Sqlite { file } = database.backend() else { unreachable!() };
        let log = std::path::PathBuf::from(format!("{}-wal", file.display()));
        (file, log)
    };
    let ((file, log), (its_file, its_log)) = (files(&database), files(&after));
    let store = database.open().await;
    let room = room(&store).await;
    store.commit(append(room, vec![says("early")])).await.unwrap();
    let made = async {
        while std::fs::metadata(&log).unwrap().len() < ROOM {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), made).await.unwrap();
    let length = || std::fs::metadata(&log).unwrap().len();
    let before = length();
    store.commit(append(room, vec![says("late")])).await.unwrap();
    assert_eq!(length(), before, "the log does not grow");
    for (from, to) in [(&file, &its_file), (&log, &its_log)] {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
    let after = after.open().await;
    let found = journal(&after, room).await;
    assert_eq!(found.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2], "{found:?}");
}
