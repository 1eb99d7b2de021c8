//! Cancelled callers: a browser closes, a deadline passes. They must not affect others.

use crate::{
    idempotent::spec,
    scene::{
        LEASE, TestRun, append, at, attempt, by, claim, follow, held, journal, me, name, read_until, renaming, room,
        says, within,
    },
};
use domain::{position::Seq, room::RoomPolicy};
use std::{future::Future, pin::pin};
use store::{Backend, Store, journal::StopRequest, queue::DeadLeases};
use testkit::database::TestDatabase;

contract! {
    many threads:
        a_commit_of_a_cancelled_caller_is_stored_whole_or_not_at_all,
        cancelled_writers_leave_no_open_transaction,
        cancelled_readers_leave_no_stale_snapshot;
}

/// Polls the future a few times, waiting for each wake-up, and then drops it.
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

async fn a_commit_of_a_cancelled_caller_is_stored_whole_or_not_at_all(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..100 {
        let pair = vec![says(format!("{n} first")), says(format!("{n} second"))];
        abandon(store.commit(append(room, pair)), n % 4).await;
    }
    let last = store.commit(append(room, vec![says("last")])).await.unwrap().first_seq;
    let events = journal(&store, room).await;
    assert_eq!((events.len() as Seq, last % 2), (last, 1), "pairs, plus the last event");
    assert_eq!(read_until(&mut follow(&store, room, 0).await, last).await.len() as Seq, last);
}

/// The number of connections with an abandoned open transaction.
async fn open_transactions(database: &TestDatabase) -> i64 {
    let Backend::Postgres { url } = database.backend() else { return 0 };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    // Give a pending rollback time to finish; an abandoned transaction stays open.
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

async fn cancelled_writers_leave_no_open_transaction(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let agent = store.create_agent(&by(&me()), spec("agent"), None).await.unwrap().id;
    let run = TestRun::queued(&store, room).await;
    let policy = RoomPolicy::default();
    for polls in 0..60 {
        let key = attempt(&format!("key {polls}"), 1);
        let text = name(&format!("name {polls}"));
        abandon(store.create_agent(&by(&me()), spec(&format!("agent {polls}")), Some(&key)), polls).await;
        abandon(store.update_agent(&by(&me()), agent, spec(text.as_str()), None), polls).await;
        abandon(store.commit(renaming(room, &text, &policy, None)), polls).await;
        abandon(store.renew_leases("w", LEASE), polls).await;
        abandon(store.take_over("w", DeadLeases::Expired, LEASE), polls).await;
        abandon(store.request_stop(&by(&me()), &[TestRun::new().id], StopRequest::Cancel), polls).await;
        abandon(store.check_writable(), polls).await;
        // All other writers still succeed.
        store.commit(append(room, vec![says(polls.to_string())])).await.unwrap();
    }
    assert_eq!(open_transactions(&database).await, 0);
    assert_eq!(journal(&store, room).await.len(), 61);
    let lease = claim(&store, "w").await.remove(0);
    store.commit(run.ending(room, held(&lease))).await.unwrap();
}

async fn cancelled_readers_leave_no_stale_snapshot(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for polls in 0..60 {
        for _ in 0..3 {
            abandon(store.page(&me(), room, &at(0), 1000, true), polls).await;
            abandon(store.history(&me(), room, 0, None, 10), polls).await;
            abandon(store.rooms(&me(), 10), polls).await;
            abandon(async { follow(&store, room, 0).await.next().await.map(|_| ()) }, polls).await;
        }
        let head = store.commit(append(room, vec![says(polls.to_string())])).await.unwrap().first_seq;
        // Query every connection: none has an old snapshot.
        let looks = (0..12).map(|_| async { store.head(&me(), room).await });
        for look in within(futures_util::future::join_all(looks)).await {
            assert_eq!(look.unwrap(), head);
        }
        store.check_writable().await.unwrap();
    }
    assert_eq!(open_transactions(&database).await, 0);
    let again: &Store = &store;
    assert_eq!(journal(again, room).await.len(), 60);
}
