//! Erasing what was deleted: in steps that can be repeated, and that hold up no other room.

use crate::scene::{TestRun, append, by, claim, held, me, room, says, within};
use domain::ids::RoomId;
use sqlx::Connection as _;
use std::{collections::BTreeSet, time::Duration};
use store::{Backend, Erasure, ErasureStep, Store};
use testkit::{database::TestDatabase, database_dump::DatabaseDump};
use tokio::{task::JoinSet, time::Instant};

contract! {
    many threads:
        m8_commits_of_other_rooms_go_on_meanwhile;
    one thread:
        m8_an_interrupted_erasure_goes_on_at_the_next_start,
        m8_a_room_with_an_unfinished_run_waits,
        m8_every_table_with_a_room_is_erased,
        m8_the_file_shrinks,
        m8_ended_tokens_are_deleted;
}

const NOW: Duration = Duration::ZERO;
/// Deleting them takes several steps.
const LARGE: usize = 100_000;

async fn due(store: &Store) -> Vec<Erasure> {
    store.due_erasures(NOW, 0, 10).await.unwrap()
}

/// A deleted room with large events.
async fn deleted_room(store: &Store, events: usize) -> RoomId {
    let deleted = room(store).await;
    for _ in 0..events {
        store.commit(append(deleted, vec![says(format!("markqx{}", "x".repeat(LARGE)))])).await.unwrap();
    }
    store.delete_room(&by(&me()), deleted, None).await.unwrap();
    deleted
}

async fn erase(store: &Store, erasure: &Erasure) -> usize {
    let files = store.find_erased_files(erasure).await.unwrap();
    let mut steps = 1;
    while within(store.erase_rows(erasure, &files)).await.unwrap() == ErasureStep::More {
        steps += 1;
    }
    store.finish_erasure(erasure).await.unwrap();
    steps
}

async fn m8_an_interrupted_erasure_goes_on_at_the_next_start(database: TestDatabase) {
    let store = database.open().await;
    let kept = room(&store).await;
    store.commit(append(kept, vec![says("keptqx")])).await.unwrap();
    let deleted = deleted_room(&store, 30).await;
    assert!(store.due_erasures(Duration::from_secs(3600), 0, 10).await.unwrap().is_empty(), "within the grace period");
    let [erasure] = &due(&store).await[..] else { panic!("one room is due") };
    let files = store.find_erased_files(erasure).await.unwrap();
    for _ in 0..2 {
        assert_eq!(store.erase_rows(erasure, &files).await.unwrap(), ErasureStep::More);
    }
    store.shut_down().await;

    let store = database.open().await;
    let again = due(&store).await;
    assert_eq!((again[0].object, again[0].files.as_ref()), (erasure.object, Some(&files)));
    assert!(erase(&store, &again[0]).await > 2, "in several steps");
    // Once more: another server may do the same.
    assert_eq!(erase(&store, &again[0]).await, 1);
    assert!(due(&store).await.is_empty());
    let dump = DatabaseDump::read(&database).await;
    assert!(dump.tables_with("markqx", &[]).is_empty());
    assert!(dump.tables_with_id(deleted.0, &["audit", "erasures"]).is_empty(), "{dump:?}");
    assert_eq!(dump.tables_with("keptqx", &[]), ["events"]);
    let erased = store.audit_log(&me(), 10).await.unwrap().into_iter().filter(|entry| entry.action == "erase").count();
    assert_eq!(erased, 1);
    store.shut_down().await;
}

async fn m8_a_room_with_an_unfinished_run_waits(database: TestDatabase) {
    let store = database.open().await;
    let busy = room(&store).await;
    let run = TestRun::queued(&store, busy).await;
    let lease = claim(&store, "w").await.remove(0);
    store.delete_room(&by(&me()), busy, None).await.unwrap();
    let erasure = due(&store).await.remove(0);
    let files = store.find_erased_files(&erasure).await.unwrap();
    assert_eq!(store.erase_rows(&erasure, &files).await.unwrap(), ErasureStep::Waiting);
    store.commit(run.ending(busy, held(&lease))).await.unwrap();
    erase(&store, &erasure).await;
    let late = store.commit(append(busy, vec![says("late")])).await;
    assert!(matches!(late, Err(store::StoreError::NotFound)), "{late:?}");
    // The run's row is kept for its cost, and is shown nowhere.
    assert!(store.run(&me(), run.id).await.is_err());
    assert_eq!(DatabaseDump::read(&database).await.rows("runs"), 1);
    store.shut_down().await;
}

/// A new table with such a column must be erased too, or be named here with the reason why not.
async fn m8_every_table_with_a_room_is_erased(database: TestDatabase) {
    let store = database.open().await;
    let tables: Vec<String> = match database.backend() {
        Backend::Sqlite { file } => {
            let mut connection =
                sqlx::SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
            let sql = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
                       WHERE m.type = 'table' AND c.name = 'room_id'";
            sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap()
        }
        Backend::Postgres { url } => {
            let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
            let sql = "SELECT table_name::text FROM information_schema.columns \
                       WHERE table_schema = 'public' AND column_name = 'room_id'";
            sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap()
        }
    };
    let erased = ["participants", "journals", "events", "messages", "runs", "provider_sessions", "room_tools"];
    let erased = erased.into_iter().chain([
        "remembered_rules",
        "skill_rooms",
        "skill_rounds",
        "signals",
        "tapes",
        "run_contexts",
        "search_entries",
        "search_cursors",
    ]);
    // An entry outlives what was changed; unfinished runs make the erasure wait.
    let known: BTreeSet<&str> = erased.chain(["audit", "queue"]).collect();
    assert_eq!(tables.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
    store.shut_down().await;
}

async fn m8_commits_of_other_rooms_go_on_meanwhile(database: TestDatabase) {
    let store = database.open().await;
    let kept = room(&store).await;
    deleted_room(&store, 100).await;
    let erasure = due(&store).await.remove(0);
    let (mut erasing, shared) = (JoinSet::new(), (*store).clone());
    erasing.spawn(async move { erase(&shared, &erasure).await });
    let (mut commits, mut longest) = (0, Duration::ZERO);
    let steps = loop {
        let begun = Instant::now();
        within(store.commit(append(kept, vec![says("on")]))).await.unwrap();
        (commits, longest) = (commits + 1, longest.max(begun.elapsed()));
        if let Some(steps) = erasing.try_join_next() {
            break steps.unwrap();
        }
    };
    assert!(steps > 15, "10 MB are erased in {steps} steps");
    assert!(commits >= 5, "{commits} commits during {steps} steps");
    assert!(longest < Duration::from_secs(1), "a commit took {longest:?}");
    store.shut_down().await;
}

async fn m8_the_file_shrinks(database: TestDatabase) {
    let store = database.open().await;
    deleted_room(&store, 100).await;
    let erasure = due(&store).await.remove(0);
    erase(&store, &erasure).await;
    let mut steps = 0;
    while store.free_space().await.unwrap() {
        steps += 1;
    }
    assert!(within(store.empty_log()).await.unwrap());
    if database.is_sqlite() {
        let bytes = std::fs::metadata(database.file()).unwrap().len();
        assert!(steps > 5 && bytes < 2_000_000, "{bytes} bytes after {steps} steps");
        for file in std::fs::read_dir(database.folder()).unwrap() {
            let path = file.unwrap().path();
            let content = std::fs::read(&path).unwrap();
            assert!(!content.windows(6).any(|part| part == b"markqx"), "{}", path.display());
        }
    }
    store.shut_down().await;
}

/// A file of an earlier version cannot shrink; its backup can.
#[tokio::test]
async fn m8_a_backup_of_an_old_file_can_shrink() {
    let database = TestDatabase::sqlite();
    let auto_vacuum = async |file: &std::path::Path| -> i64 {
        let mut connection = sqlx::SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
        sqlx::query_scalar("PRAGMA auto_vacuum").fetch_one(&mut connection).await.unwrap()
    };
    let url = format!("sqlite://{}?mode=rwc", database.file().display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("CREATE TABLE older (id INTEGER)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let store = database.open().await;
    deleted_room(&store, 3).await;
    let erasure = due(&store).await.remove(0);
    erase(&store, &erasure).await;
    assert!(!store.free_space().await.unwrap());
    let backup = database.folder().join("backup");
    store::backup::backup(&store, &backup).await.unwrap();
    assert_eq!((auto_vacuum(&database.file()).await, auto_vacuum(&backup).await), (0, 2));
    store.shut_down().await;
}

async fn m8_ended_tokens_are_deleted(database: TestDatabase) {
    let store = database.open().await;
    let new = |hash| store::NewToken::unlimited(domain::name::Name::parse("t").unwrap(), [hash; 32]);
    let member = store::Membership::alone(&me());
    let revoked = store.create_token(&by(&me()), &member, &new(1)).await.unwrap();
    let valid = store.create_token(&by(&me()), &member, &new(2)).await.unwrap();
    store.revoke_token(&by(&me()), revoked, None).await.unwrap();
    store.delete_ended_tokens(Duration::from_secs(3600)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 2, "within the grace period");
    store.delete_ended_tokens(NOW).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().into_iter().map(|token| token.id).collect::<Vec<_>>(), [valid]);
    store.shut_down().await;
}
