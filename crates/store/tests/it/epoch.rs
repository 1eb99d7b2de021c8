//! A position that is not in this journal is told so; never a silent hole (invariant 8). Backup and restore.

use crate::scene::{append, follow, journal, json, me, read_until, room, says, within};
use domain::{
    ids::RoomId,
    position::{Epoch, Position, Seq},
};
use std::{path::PathBuf, sync::Arc};
use store::{
    Access, Config, Error, Store, backup,
    journal::{Batch, Bell},
};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    many threads:
        a_backup_while_writing_is_whole_and_a_restore_has_a_new_epoch;
    one thread:
        invariant_08_epoch_a_foreign_or_impossible_position_starts_over,
        invariant_08_epoch_a_page_says_when_to_start_over,
        invariant_08_epoch_stays_with_the_database,
        invariant_08_epoch_is_new_after_a_restore_by_other_means,
        a_restore_refuses_what_is_not_a_backup,
        a_restore_is_not_disturbed_by_one_that_broke_off;
}

async fn filled(store: &Store, count: Seq) -> RoomId {
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
    let room = filled(&store, 5).await;
    let own = |seq| Position { epoch: Some(store.epoch().clone()), seq };
    for position in [foreign(0), foreign(3), foreign(99), own(6), crate::scene::at(6), crate::scene::at(1 << 62)] {
        let mut follower = store.follow(&me(), room, &position, Arc::new(Bell::default())).await.unwrap();
        assert!(follower.is_behind());
        assert!(matches!(follower.next().await.unwrap(), Batch::Reset { head: 5 }), "{position:?}");
        let seqs: Vec<Seq> = read_until(&mut follower, 5).await.iter().map(|frame| frame.seq).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5], "everything from the start");
    }
    for seq in 0..=5 {
        let mut follower = store.follow(&me(), room, &own(seq), Arc::new(Bell::default())).await.unwrap();
        assert_eq!(read_until(&mut follower, 5).await.len() as Seq, 5 - seq, "its own epoch goes on");
    }
}

async fn invariant_08_epoch_a_page_says_when_to_start_over(database: TestDatabase) {
    let store = database.open().await;
    let room = filled(&store, 5).await;
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
    let (old, room) = (store.epoch().clone(), filled(&store, 2).await);
    store.shut_down().await;
    let new = backup::new_epoch(&database.config()).await.unwrap();
    assert_ne!(new, old);
    let store = database.open().await;
    assert_eq!(store.epoch(), &new);
    let position = Position { epoch: Some(old), seq: 2 };
    let mut follower = store.follow(&me(), room, &position, Arc::new(Bell::default())).await.unwrap();
    assert!(matches!(follower.next().await.unwrap(), Batch::Reset { head: 2 }));
}

fn beside(database: &TestDatabase, name: &str) -> PathBuf {
    database.file().with_file_name(name)
}

/// PostgreSQL has its own tools and says so.
async fn refuses_politely(database: &TestDatabase) {
    let store = database.open().await;
    let folder = tempfile::tempdir().unwrap();
    let refused = backup::backup(&store, &folder.path().join("copy")).await;
    assert!(matches!(refused, Err(Error::Start(text)) if text.contains("pg_dump")));
    let refused = backup::restore(&database.config(), &folder.path().join("copy")).await;
    assert!(matches!(refused, Err(Error::Start(text)) if text.contains("pg_restore")));
}

async fn a_backup_while_writing_is_whole_and_a_restore_has_a_new_epoch(database: TestDatabase) {
    if !database.is_sqlite() {
        return refuses_politely(&database).await;
    }
    let store = database.open().await;
    let old = store.epoch().clone();
    let rooms = [filled(&store, 50).await, filled(&store, 50).await];
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
    // The copy is made by another process, as the command does it.
    let tool = Store::open(&database.config(), Access::Beside, &mut JoinSet::new(), &stop.child_token()).await.unwrap();
    let copy = beside(&database, "copy.db");
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
    assert!(backup::restore(&database.config(), &copy).await.is_err(), "not while the server runs");
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
        assert_eq!(restored.len() % 2, 0, "no commit is torn");
        assert_eq!(restored[..50], before[n]);
        let gone = Position { epoch: Some(old.clone()), seq: 60 };
        let mut follower = store.follow(&me(), room, &gone, Arc::new(Bell::default())).await.unwrap();
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

async fn a_restore_refuses_what_is_not_a_backup(database: TestDatabase) {
    if !database.is_sqlite() {
        return refuses_politely(&database).await;
    }
    let store = database.open().await;
    let room = filled(&store, 3).await;
    store.shut_down().await;
    let wrong = beside(&database, "wrong.db");
    std::fs::write(&wrong, "not a database").unwrap();
    for source in [wrong, beside(&database, "missing.db")] {
        assert!(matches!(backup::restore(&database.config(), &source).await, Err(Error::Start(_))));
    }
    assert_eq!(journal(&*database.open().await, room).await.len(), 3, "what was there is still there");
}

/// A crash in the middle of a restore leaves the old database or the new one with its new epoch, and nothing that
/// disturbs the next restore.
async fn a_restore_is_not_disturbed_by_one_that_broke_off(database: TestDatabase) {
    if !database.is_sqlite() {
        return refuses_politely(&database).await;
    }
    let store = database.open().await;
    let room = filled(&store, 3).await;
    let copy = beside(&database, "copy.db");
    backup::backup(&store, &copy).await.unwrap();
    store.shut_down().await;
    // What the broken one may have left: half a copy, with a log that belongs to nothing.
    let half = database.file().with_extension("restoring");
    std::fs::copy(&copy, &half).unwrap();
    let elsewhere = TestDatabase::sqlite();
    let other = elsewhere.open().await;
    filled(&other, 3).await;
    let mut log = elsewhere.file().into_os_string();
    log.push("-wal");
    let mut stale = half.into_os_string();
    stale.push("-wal");
    std::fs::copy(log, &stale).unwrap();
    let (_, epoch) = backup::restore(&database.config(), &copy).await.unwrap();
    let config = Config { read_connections: 1, ..database.config() };
    let store = testkit::database::OpenStore::open(&config).await.unwrap();
    assert_eq!(store.epoch(), &epoch);
    assert_eq!(journal(&store, room).await.len(), 3);
    assert!(!std::path::Path::new(&stale).exists());
}
