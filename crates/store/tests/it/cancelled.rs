//! Callers go away in the middle: a browser closes, a deadline passes. What they leave behind must harm nobody.

use crate::{
    idempotent::spec,
    scene::{LEASE, Run, append, at, attempt, claim, follow, held, journal, me, name, read_until, room, says, within},
};
use domain::{position::Seq, room::RoomPolicy};
use std::{future::Future, pin::pin};
use store::{Backend, Store, journal::Stop, queue::Dead};
use testkit::database::TestDatabase;

contract! {
    many threads:
        a_commit_nobody_waits_for_stands_whole_or_not_at_all,
        writers_that_go_away_leave_no_open_transaction,
        readers_that_go_away_leave_no_stale_snapshot;
}

/// Polls a few times, each time waiting for it to want to go on, and then goes away.
async fn abandon<F: Future>(future: F, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        let woken = std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_ready()));
        if woken.await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn a_commit_nobody_waits_for_stands_whole_or_not_at_all(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..100 {
        let pair = vec![says(format!("{n} first")), says(format!("{n} second"))];
        abandon(store.commit(append(room, pair)), n % 4).await;
    }
    let last = store.commit(append(room, vec![says("last")])).await.unwrap().first;
    let events = journal(&store, room).await;
    assert_eq!((events.len() as Seq, last % 2), (last, 1), "pairs, and the last");
    assert_eq!(read_until(&mut follow(&store, room, 0).await, last).await.len() as Seq, last);
}

/// Connections of this database that sit in a transaction nobody will end.
async fn left_open(database: &TestDatabase) -> i64 {
    let Backend::Postgres { url } = database.backend() else { return 0 };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    // A rollback under way is given time to arrive; a transaction that was forgotten stays.
    within(async {
        let mut left = i64::MAX;
        for _ in 0..200 {
            left = sqlx::query_scalar(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND pid <> pg_backend_pid() AND state <> 'idle'",
            )
            .fetch_one(&mut connection)
            .await
            .unwrap();
            if left == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        left
    })
    .await
}

async fn writers_that_go_away_leave_no_open_transaction(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let agent = store.create_agent(&me(), spec("agent"), None).await.unwrap().id;
    let run = Run::queued(&store, room).await;
    let policy = RoomPolicy::default();
    for polls in 0..60 {
        let key = attempt(&format!("key {polls}"), 1);
        let text = name(&format!("name {polls}"));
        abandon(store.create_agent(&me(), spec(&format!("agent {polls}")), Some(&key)), polls).await;
        abandon(store.update_agent(&me(), agent, spec(text.as_str()), None), polls).await;
        abandon(store.update_room(&me(), room, &text, &policy, None), polls).await;
        abandon(store.renew("w", LEASE), polls).await;
        abandon(store.take_over("w", Dead::Expired, LEASE), polls).await;
        abandon(store.ask_to_stop(&[Run::new().id], Stop::Cancel), polls).await;
        abandon(store.check_writable(), polls).await;
        // Every other writer still gets through.
        store.commit(append(room, vec![says(polls.to_string())])).await.unwrap();
    }
    assert_eq!(left_open(&database).await, 0);
    assert_eq!(journal(&store, room).await.len(), 61);
    let lease = claim(&store, "w").await.remove(0);
    store.commit(run.ending(room, held(&lease))).await.unwrap();
}

async fn readers_that_go_away_leave_no_stale_snapshot(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for polls in 0..60 {
        for _ in 0..3 {
            abandon(store.page(&me(), room, &at(0), 1000, true), polls).await;
            abandon(store.history(&me(), room, 0, None, 10), polls).await;
            abandon(store.rooms(&me(), 10), polls).await;
            abandon(async { follow(&store, room, 0).await.next().await.map(|_| ()) }, polls).await;
        }
        let head = store.commit(append(room, vec![says(polls.to_string())])).await.unwrap().first;
        // Asked on every connection there is: none of them still looks at an earlier moment.
        let looks = (0..12).map(|_| async { store.head(&me(), room).await });
        for look in within(futures_util::future::join_all(looks)).await {
            assert_eq!(look.unwrap(), head);
        }
        store.check_writable().await.unwrap();
    }
    assert_eq!(left_open(&database).await, 0);
    let again: &Store = &store;
    assert_eq!(journal(again, room).await.len(), 60);
}
