//! What the store insists on before it promises anything: settings that keep what was acknowledged, and one server.

use crate::scene::{append, journal, me, room, says};
use sqlx::Connection as _;
use store::{Access, Backend, Config, Error, Planted, Store};
use testkit::database::{OpenStore, TestDatabase};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    one thread:
        a_second_server_is_refused_where_there_can_be_only_one,
        the_engine_syncs_what_it_commits,
        weaker_settings_are_overridden,
        a_planted_bug_is_refused_by_an_honest_build,
        it_opens_again_and_again,
        servers_that_start_at_once_agree,
        it_can_say_whether_it_is_writable,
        an_address_that_leads_nowhere_says_so_without_its_password;
}

async fn a_second_server_is_refused_where_there_can_be_only_one(database: TestDatabase) {
    let first = database.open().await;
    let second = OpenStore::open(&database.config()).await;
    assert_eq!(first.is_sole_user(), database.is_sqlite());
    if !database.is_sqlite() {
        assert!(second.is_ok(), "several servers share a PostgreSQL");
        return;
    }
    let Err(Error::Start(text)) = second else { panic!("two servers on one file") };
    assert!(text.contains("another Greenroom server") && text.contains("--data-dir"), "{text}");
    let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
    let tool = Store::open(&database.config(), Access::Beside, &mut tasks, &cancel).await.unwrap();
    assert!(!tool.is_sole_user() && tasks.is_empty(), "a tool works beside it");
    tool.close().await;
    drop(tool);
    first.shut_down().await;
    database.open().await;
}

async fn the_engine_syncs_what_it_commits(database: TestDatabase) {
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
        // The connection that writes sets its own pragmas and refuses to start with weaker ones: see `open`.
        return;
    };
    let name = database.name();
    database.administer(&format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    database.administer(&format!("ALTER ROLE CURRENT_USER IN DATABASE {name} SET synchronous_commit = off"));
    let separator = if url.contains('?') { '&' } else { '?' };
    for url in [url.clone(), format!("{url}{separator}options=-c%20synchronous_commit%3Doff")] {
        let mut plain = sqlx::PgConnection::connect(&url).await.unwrap();
        let setting: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut plain).await.unwrap();
        assert_eq!(setting, "off", "the trap is set");
        plain.close().await.unwrap();
        // It opens only when its own connections say otherwise.
        let config = Config { backend: Backend::Postgres { url }, ..database.config() };
        let store = OpenStore::open(&config).await.unwrap();
        let room = room(&store).await;
        store.commit(append(room, vec![says("1")])).await.unwrap();
        assert_eq!(journal(&store, room).await.len(), 1);
        store.shut_down().await;
    }
}

async fn a_planted_bug_is_refused_by_an_honest_build(database: TestDatabase) {
    if cfg!(feature = "planted-bugs") {
        return;
    }
    for planted in [Planted::EmitBeforeCommit, Planted::SynchronousOff] {
        let config = Config { planted: Some(planted), ..database.config() };
        assert!(matches!(OpenStore::open(&config).await, Err(Error::Start(text)) if text.contains("planted")));
    }
}

async fn it_opens_again_and_again(database: TestDatabase) {
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

async fn servers_that_start_at_once_agree(database: TestDatabase) {
    let config = database.config();
    let starts = (0..4).map(|_| OpenStore::open(&config));
    let started: Vec<OpenStore> = futures_util::future::join_all(starts).await.into_iter().flatten().collect();
    assert_eq!(started.len(), if database.is_sqlite() { 1 } else { 4 });
    let epochs: std::collections::HashSet<_> = started.iter().map(|store| store.epoch().clone()).collect();
    assert_eq!(epochs.len(), 1);
}

async fn it_can_say_whether_it_is_writable(database: TestDatabase) {
    let store = database.open().await;
    store.check_writable().await.unwrap();
    store.check_writable().await.unwrap();
    assert_eq!(store.rooms(&me(), 10).await.unwrap(), []);
    let closed: Store = (*store).clone();
    store.shut_down().await;
    assert!(matches!(closed.check_writable().await, Err(Error::Unavailable(_))));
}

async fn an_address_that_leads_nowhere_says_so_without_its_password(database: TestDatabase) {
    let backend = if database.is_sqlite() {
        Backend::Sqlite { file: database.file().join("not-a-folder-yet").join("\0") }
    } else {
        Backend::Postgres { url: "postgres://user:hunter2@[bad/name".into() }
    };
    assert!(!format!("{backend:?}").contains("hunter2"));
    let Err(Error::Start(text)) = OpenStore::open(&Config { backend, ..database.config() }).await else {
        panic!("it cannot open")
    };
    assert!(!text.contains("hunter2"), "{text}");
}

/// What the disk holds when the server dies, with the room that its log was given.
#[tokio::test]
async fn sqlite_a_log_with_room_is_read_up_to_what_was_written() {
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
    assert_eq!(length(), before, "it does not grow");
    for (from, to) in [(&file, &its_file), (&log, &its_log)] {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
    let after = after.open().await;
    let found = journal(&after, room).await;
    assert_eq!(found.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2], "{found:?}");
}
