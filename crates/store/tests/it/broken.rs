//! The database is unavailable for a moment, or another process writes to it: no event is lost, duplicated or missed.

use crate::scene::{append, at, by, follow, journal, me, name, room, said, says, within};
use domain::{event::NewEvent, ids::RoomId, position::Seq};
use std::{collections::BTreeMap, sync::Arc};
use store::{Membership, NewToken, Store, StoreAccess, StoreError, journal::Batch, notify::Notifier};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    many threads:
        broken_connections_lose_and_duplicate_nothing,
        a_tool_that_writes_while_the_server_runs_breaks_nothing;
    one thread:
        a_repeated_commit_publishes_events_that_were_stored_but_not_published;
}

const WRITERS: Seq = 6;
const COMMITS: Seq = 60;

/// Retries until the commit is acknowledged, as the run driver does.
async fn commit_until_acknowledged(store: &Store, room: RoomId, events: Vec<NewEvent>) -> Seq {
    loop {
        match store.commit(append(room, events.clone())).await {
            Ok(committed) => return committed.first_seq,
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads everything up to a seq, retrying after connection errors.
async fn read_with_retries(store: Store, room: RoomId, last: Seq, progress: Arc<tokio::sync::Notify>) -> Vec<Seq> {
    let bell = Arc::new(Notifier::default());
    let mut seen = Vec::new();
    let mut follower = loop {
        if let Ok(follower) = store.follow(&me(), room, &at(0), bell.clone()).await {
            break follower;
        }
    };
    while follower.seq() < last {
        match follower.next().await {
            Ok(Batch::Frames(frames)) => {
                seen.extend(frames.iter().map(|frame| frame.seq));
                progress.notify_one();
            }
            Ok(Batch::CaughtUp) => bell.notified().await,
            Ok(Batch::Large { bytes }) => panic!("no event has {bytes} bytes"),
            Ok(Batch::Reset { .. }) => panic!("no reset was due"),
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    seen
}

async fn broken_connections_lose_and_duplicate_nothing(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let progress = Arc::new(tokio::sync::Notify::new());
    let last = WRITERS * COMMITS * 2;
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        readers.spawn(read_with_retries((*store).clone(), room, last, progress.clone()));
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store: Store = (*store).clone();
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0..COMMITS {
                let texts = [format!("{writer}.{n} one"), format!("{writer}.{n} two")];
                let first = commit_until_acknowledged(&store, room, texts.iter().map(says).collect()).await;
                acknowledged.extend((first..).zip(texts));
            }
            acknowledged
        });
    }
    if !database.is_sqlite() {
        for _ in 0..6 {
            within(progress.notified()).await;
            database.execute_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name LIKE 'greenroom%'",
            );
        }
    }
    let mut acknowledged: BTreeMap<Seq, String> = BTreeMap::new();
    while let Some(written) = within(writers.join_next()).await {
        for (seq, text) in written.unwrap() {
            assert_eq!(acknowledged.insert(seq, text), None);
        }
    }
    let stored: BTreeMap<Seq, String> =
        journal(&store, room).await.iter().map(|event| (event.seq, said(event))).collect();
    assert_eq!(stored, acknowledged);
    while let Some(seen) = within(readers.join_next()).await {
        assert!(seen.unwrap().into_iter().eq(1..=last), "each seq once, in order");
    }
}

async fn a_tool_that_writes_while_the_server_runs_breaks_nothing(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let tool = Store::open(&database.config(), StoreAccess::Tool, &mut JoinSet::new(), &CancellationToken::new())
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for n in 0..40_u8 {
            tool.create_token(
                &by(&me()),
                &Membership::alone(&me()),
                &NewToken::unlimited(name("made beside"), [n; 32]),
            )
            .await
            .unwrap();
        }
        tool.close().await;
    });
    for n in 0..80 {
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
    }
    within(tasks.join_all()).await;
    assert_eq!(journal(&store, room).await.len(), 80);
    assert_eq!(store.tokens().await.unwrap().len(), 40);
}

/// A commit with an unknown outcome: it was stored, but not acknowledged.
async fn a_repeated_commit_publishes_events_that_were_stored_but_not_published(database: TestDatabase) {
    if database.is_sqlite() {
        // On SQLite only one server writes, and it publishes what it stores.
        return;
    }
    let (one, two) = (database.open().await, database.open().await);
    let room = room(&one).await;
    one.commit(append(room, vec![says("shown")])).await.unwrap();
    let mut follower = follow(&one, room, 1).await;
    assert!(matches!(follower.next().await.unwrap(), Batch::CaughtUp));
    let event = says("stored");
    two.commit(append(room, vec![event.clone()])).await.unwrap();
    assert_eq!(one.commit(append(room, vec![event])).await.unwrap().first_seq, 2);
    within(follower.notifier().notified()).await;
    assert!(follower.is_behind());
    assert!(matches!(follower.next().await.unwrap(), Batch::Frames(frames) if frames[0].seq == 2));
    assert!(matches!(follower.next().await.unwrap(), Batch::CaughtUp));
}
