//! A position that is not in this journal leads to a reset, never to a silent gap (invariant 8). Backup and restore.

use crate::scene::{append, follow, journal, json, me, read_until, room, says, within};
use domain::{
    ids::RoomId,
    position::{Epoch, Position, Seq},
};
use std::{path::PathBuf, sync::Arc};
use store::{Store, StoreAccess, StoreConfig, StoreError, backup, journal::Batch, notify::Notifier};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    many threads:
        a_backup_during_writes_is_consistent_and_a_restore_has_a_new_epoch;
    one thread:
        invariant_08_epoch_a_foreign_or_impossible_position_starts_over,
        invariant_08_epoch_a_page_reports_a_reset,
        invariant_08_epoch_stays_with_the_database,
        invariant_08_epoch_is_new_after_a_restore_by_other_means,
        a_restore_rejects_files_that_are_not_backups,
        a_restore_works_after_an_interrupted_restore;
}

async fn room_with_events(store: &Store, count: Seq) -> RoomId {
    let room = room(store).await;
    for n in 0..count {
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
    }
    room
}

fn foreign(seq: Seq) -> Position {
    Position { epoch: Some(Epoch::generate()), seq }
}

async fn invariant_08_epoch_a_foreign_or_impossible_position_starts_over(database: TestDatabase) {
    let store = database.open().await;
    let room = room_with_events(&store, 5).await;
    let own = |seq| Position { epoch: Some(store.epoch().clone()), seq };
    for position in [foreign(0), foreign(3), foreign(99), own(6), crate::scene::at(6), crate::scene::at(1 << 62)] {
        let mut follower = store.follow(&me(), room, &position, Arc::new(Notifier::default())).await.unwrap();
        assert!(follower.is_behind());
        assert!(matches!(follower.next().await.unwrap(), Batch::Reset { head: 5 }), "{position:?}");
        let seqs: Vec<Seq> = read_until(&mut follower, 5).await.iter().map(|frame| frame.seq).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5], "all events from the start");
    }
    for seq in 0..=5 {
        let mut follower = store.follow(&me(), room, &own(seq), Arc::new(Notifier::default())).await.unwrap();
        assert_eq!(read_until(&mut follower, 5).await.len() as Seq, 5 - seq, "the same epoch continues");
    }
}

async fn invariant_08_epoch_a_page_reports_a_reset(database: TestDatabase) {
    let store = database.open().await;
    let room = room_with_events(&store, 5).await;
    for (position, reset, count) in [
        (foreign(0), true, 0),
        (foreign(2), true, 0),
        (crate::scene::at(6), true, 0),
        (crate::scene::at(5), false, 0),
        (Position { epoch: Some(store.epoch().clone()), seq: 2 }, false, 3),
        (Position::START, false, 5),
    ] {
        let page = store.page(&me(), room, &position, 100, false).await.unwrap();
        assert_eq!((page.reset, page.events.len(), page.head), (reset, count, 5), "{position:?}");
        assert_eq!(&page.epoch, store.epoch());
    }
}

async fn invariant_08_epoch_stays_with_the_database(database: TestDatabase) {
    let store = database.open().await;
    let epoch = store.epoch().clone();
    store.shut_down().await;
    assert_eq!(database.open().await.epoch(), &epoch);
}

async fn invariant_08_epoch_is_new_after_a_restore_by_other_means(database: TestDatabase) {
    let store = database.open().await;
    let (old, room) = (store.epoch().clone(), room_with_events(&store, 2).await);
    store.shut_down().await;
    let new = backup::new_epoch(&database.config()).await.unwrap();
    assert_ne!(new, old);
    let store = database.open().await;
    assert_eq!(store.epoch(), &new);
    let position = Position { epoch: Some(old), seq: 2 };
    let mut follower = store.follow(&me(), room, &position, Arc::new(Notifier::default())).await.unwrap();
    assert!(matches!(follower.next().await.unwrap(), Batch::Reset { head: 2 }));
}

fn file_in_folder_of(database: &TestDatabase, name: &str) -> PathBuf {
    database.file().with_file_name(name)
}

/// Backup and restore of PostgreSQL fail and name its own tools.
async fn assert_postgres_is_rejected(database: &TestDatabase) {
    let store = database.open().await;
    let folder = tempfile::tempdir().unwrap();
    let refused = backup::backup(&store, &folder.path().join("copy")).await;
    assert!(matches!(refused, Err(StoreError::Start(text)) if text.to_string().contains("pg_dump")));
    let refused = backup::restore(&database.config(), &folder.path().join("copy")).await;
    assert!(matches!(refused, Err(StoreError::Start(text)) if text.to_string().contains("pg_restore")));
}

async fn a_backup_during_writes_is_consistent_and_a_restore_has_a_new_epoch(database: TestDatabase) {
    if !database.is_sqlite() {
        return assert_postgres_is_rejected(&database).await;
    }
    let store = database.open().await;
    let old = store.epoch().clone();
    let rooms = [room_with_events(&store, 50).await, room_with_events(&store, 50).await];
    let before: Vec<Vec<Vec<u8>>> = vec![
        journal(&store, rooms[0]).await.iter().map(json).collect(),
        journal(&store, rooms[1]).await.iter().map(json).collect(),
    ];
    let stop = CancellationToken::new();
    let mut writers = JoinSet::new();
    for room in rooms {
        let (store, stop): (Store, _) = ((*store).clone(), stop.clone());
        writers.spawn(async move {
            while !stop.is_cancelled() {
                store.commit(append(room, vec![says("during"), says("the backup")])).await.unwrap();
            }
        });
    }
    // The copy is made by another process, as the CLI does.
    let tool =
        Store::open(&database.config(), StoreAccess::Tool, &mut JoinSet::new(), &stop.child_token()).await.unwrap();
    let copy = file_in_folder_of(&database, "copy.db");
    let mut follower = follow(&store, rooms[0], 50).await;
    read_until(&mut follower, 60).await;
    let copied = within(backup::backup(&tool, &copy)).await.unwrap();
    assert!(copied.rooms == 2 && copied.events >= 110, "{copied:?}");
    let seen = follower.seq();
    read_until(&mut follower, seen + 10).await;
    stop.cancel();
    within(writers.join_all()).await;
    assert!(backup::backup(&tool, &copy).await.is_err(), "a backup is not overwritten");
    tool.close().await;
    drop(follower);
    assert!(backup::restore(&database.config(), &copy).await.is_err(), "a restore needs a stopped server");
    let last = [journal(&store, rooms[0]).await.len(), journal(&store, rooms[1]).await.len()];
    store.shut_down().await;

    let (contents, epoch) = within(backup::restore(&database.config(), &copy)).await.unwrap();
    assert_eq!(contents, copied);
    assert_ne!(epoch, old);
    let store = database.open().await;
    assert_eq!(store.epoch(), &epoch);
    for (n, room) in rooms.into_iter().enumerate() {
        let restored: Vec<Vec<u8>> = journal(&store, room).await.iter().map(json).collect();
        assert!((60..=last[n]).contains(&(restored.len() + usize::from(n == 1) * 10)), "{}", restored.len());
        assert_eq!(restored.len() % 2, 0, "every commit is complete");
        assert_eq!(restored[..50], before[n]);
        let gone = Position { epoch: Some(old.clone()), seq: 60 };
        let mut follower = store.follow(&me(), room, &gone, Arc::new(Notifier::default())).await.unwrap();
        assert!(matches!(follower.next().await.unwrap(), Batch::Reset { .. }), "invariant 8");
        store.commit(append(room, vec![says("life goes on")])).await.unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(database.file().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restoring") || name.contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

async fn a_restore_rejects_files_that_are_not_backups(database: TestDatabase) {
    if !database.is_sqlite() {
        return assert_postgres_is_rejected(&database).await;
    }
    let store = database.open().await;
    let room = room_with_events(&store, 3).await;
    store.shut_down().await;
    let wrong = file_in_folder_of(&database, "wrong.db");
    std::fs::write(&wrong, "not a database").unwrap();
    for source in [wrong, file_in_folder_of(&database, "missing.db")] {
        assert!(matches!(backup::restore(&database.config(), &source).await, Err(StoreError::Start(_))));
    }
    assert_eq!(journal(&*database.open().await, room).await.len(), 3, "the existing events are kept");
}

/// A crash during a restore leaves the old database or the restored one with a new epoch, and does not affect the next
/// restore.
async fn a_restore_works_after_an_interrupted_restore(database: TestDatabase) {
    if !database.is_sqlite() {
        return assert_postgres_is_rejected(&database).await;
    }
    let store = database.open().await;
    let room = room_with_events(&store, 3).await;
    let copy = file_in_folder_of(&database, "copy.db");
    backup::backup(&store, &copy).await.unwrap();
    store.shut_down().await;
    // What an interrupted restore may leave: half a copy, with an unrelated log.
    let half = database.file().with_extension("restoring");
    std::fs::copy(&copy, &half).unwrap();
    let elsewhere = TestDatabase::sqlite();
    let other = elsewhere.open().await;
    room_with_events(&other, 3).await;
    let mut log = elsewhere.file().into_os_string();
    log.push("-wal");
    let mut stale = half.into_os_string();
    stale.push("-wal");
    std::fs::copy(log, &stale).unwrap();
    let (_, epoch) = backup::restore(&database.config(), &copy).await.unwrap();
    let config = StoreConfig { read_connections: 1, ..database.config() };
    let store = testkit::database::OpenStore::open(&config).await.unwrap();
    assert_eq!(store.epoch(), &epoch);
    assert_eq!(journal(&store, room).await.len(), 3);
    assert!(!std::path::Path::new(&stale).exists());
}
