//! Many writers, many rooms: acknowledged events are stored, in one order without a gap.

use crate::scene::{append, at, follow, journal, me, read_until, room, said, says, together, within};
use domain::{ids::RoomId, position::Seq};
use std::collections::{BTreeMap, BTreeSet};
use store::{Store, StoreAccess};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    many threads:
        invariant_01_durable_before_visible_readers_see_only_committed_events,
        invariant_01_durable_before_visible_an_acknowledged_event_can_be_read_at_once,
        invariant_02_gapless_many_writers_in_many_rooms,
        invariant_02_gapless_two_servers_write_to_the_same_rooms;
    one thread:
        waiting_commits_are_stored_as_one_group_in_order,
        a_group_larger_than_any_statement,
        submitted_commits_are_stored_at_shutdown,
        a_commit_after_shutdown_is_rejected;
}

async fn invariant_01_durable_before_visible_readers_see_only_committed_events(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    // Another process that only has the database.
    let beside = Store::open(&database.config(), StoreAccess::Tool, &mut JoinSet::new(), &CancellationToken::new())
        .await
        .unwrap();
    let mut follower = follow(&store, room, 0).await;
    let mut writers = JoinSet::new();
    let writer: Store = (*store).clone();
    writers.spawn(async move {
        for n in 0..200 {
            writer.commit(append(room, vec![says(n.to_string())])).await.unwrap();
        }
    });
    while follower.seq() < 200 {
        let next = follower.seq() + 1;
        read_until(&mut follower, next).await;
        let committed = beside.head(&me(), room).await.unwrap();
        assert!(committed >= follower.seq(), "a reader saw {} when {committed} were committed", follower.seq());
    }
    beside.close().await;
}

async fn invariant_01_durable_before_visible_an_acknowledged_event_can_be_read_at_once(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 1..=50 {
        let event = says(format!("number {n}"));
        let committed = store.commit(append(room, vec![event.clone()])).await.unwrap();
        assert_eq!(committed.first_seq, n);
        let page = store.page(&me(), room, &at(n - 1), 10, false).await.unwrap();
        assert_eq!((page.head, page.events.len()), (n, 1));
        let stored = &page.events[0];
        assert_eq!((stored.id, stored.kind, stored.created_at), (event.id, event.kind, committed.at));
        assert_eq!(stored.data, event.data);
        assert_eq!(store.head(&me(), room).await.unwrap(), n);
    }
}

const ROOMS: usize = 6;
const WRITERS: usize = 12;
const COMMITS: usize = 25;

/// Appends to every room in turn and returns the acknowledged seq of each text.
async fn write(store: Store, rooms: Vec<RoomId>, writer: usize) -> Vec<(RoomId, Seq, String)> {
    let mut acknowledged = Vec::new();
    for n in 0..COMMITS {
        let room = rooms[(writer + n) % rooms.len()];
        let texts: Vec<String> = (0..=n % 3).map(|part| format!("{writer}.{n}.{part}")).collect();
        let first = store.commit(append(room, texts.iter().map(says).collect())).await.unwrap().first_seq;
        acknowledged.extend(texts.into_iter().zip(first..).map(|(text, seq)| (room, seq, text)));
    }
    acknowledged
}

async fn everything_once(stores: &[&Store], rooms: &[RoomId], mut writers: JoinSet<Vec<(RoomId, Seq, String)>>) {
    let mut acknowledged: BTreeMap<(RoomId, Seq), String> = BTreeMap::new();
    while let Some(written) = within(writers.join_next()).await {
        for (room, seq, text) in written.unwrap() {
            assert_eq!(acknowledged.insert((room, seq), text), None, "seq {seq} was assigned twice");
        }
    }
    for &room in rooms {
        for store in stores {
            let events = journal(store, room).await;
            let stored: BTreeMap<_, _> = events.iter().map(|event| ((room, event.seq), said(event))).collect();
            let promised: BTreeMap<_, _> =
                acknowledged.range((room, 0)..=(room, Seq::MAX)).map(|(at, text)| (*at, text.clone())).collect();
            assert_eq!(stored, promised);
        }
    }
}

/// How many events the n-th room gets from all writers together.
fn expected(room: usize) -> Seq {
    let commits = (0..WRITERS).flat_map(|writer| (0..COMMITS).map(move |n| (writer, n)));
    commits.filter(|(writer, n)| (writer + n) % ROOMS == room).map(|(_, n)| (n % 3 + 1) as Seq).sum()
}

async fn invariant_02_gapless_many_writers_in_many_rooms(database: TestDatabase) {
    let store = database.open().await;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        rooms.push(room(&store).await);
    }
    let mut readers = JoinSet::new();
    for (n, &room) in rooms.iter().enumerate() {
        for _ in 0..3 {
            let mut follower = follow(&store, room, 0).await;
            readers.spawn(async move { read_until(&mut follower, expected(n)).await.len() as Seq == expected(n) });
        }
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write((*store).clone(), rooms.clone(), writer));
    }
    everything_once(&[&store], &rooms, writers).await;
    while let Some(complete) = within(readers.join_next()).await {
        assert!(complete.unwrap());
    }
}

async fn invariant_02_gapless_two_servers_write_to_the_same_rooms(database: TestDatabase) {
    let one = database.open().await;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        rooms.push(room(&one).await);
    }
    // Only PostgreSQL allows a second server; both write to the same rooms at the same time.
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let stores: Vec<&Store> = std::iter::once(&*one).chain(two.as_deref()).collect();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(stores[writer % stores.len()].clone(), rooms.clone(), writer));
    }
    everything_once(&stores, &rooms, writers).await;
}

async fn waiting_commits_are_stored_as_one_group_in_order(database: TestDatabase) {
    let store = database.open().await;
    let (a, b) = (room(&store).await, room(&store).await);
    let commits = (0..60).map(|n| append(if n % 3 == 0 { b } else { a }, vec![says(n.to_string())])).collect();
    let outcomes = together(&store, commits).await;
    let moments: BTreeSet<_> = outcomes.iter().map(|outcome| outcome.as_ref().unwrap().at).collect();
    assert_eq!(moments.len(), 1, "all are stored in one transaction");
    let texts: Vec<String> = journal(&store, a).await.iter().map(said).collect();
    assert!(texts.into_iter().eq((0..60).filter(|n| n % 3 != 0).map(|n| n.to_string())));
    assert_eq!(journal(&store, b).await.len(), 20);
}

async fn a_group_larger_than_any_statement(database: TestDatabase) {
    let store = database.open().await;
    let mut rooms = Vec::new();
    for _ in 0..70 {
        rooms.push(room(&store).await);
    }
    let commits = rooms.iter().map(|&room| append(room, vec![says("a"), says("b"), says("c")])).collect();
    for outcome in together(&store, commits).await {
        assert_eq!(outcome.unwrap().first_seq, 1);
    }
    for room in rooms {
        assert_eq!(journal(&store, room).await.len(), 3);
    }
}

async fn submitted_commits_are_stored_at_shutdown(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let outcomes = {
        let commits: Vec<_> = (0..100).map(|n| store.commit(append(room, vec![says(n.to_string())]))).collect();
        let mut all = std::pin::pin!(futures_util::future::join_all(commits));
        // Submitted, but on one thread the writer has not run yet.
        assert!(futures_util::poll!(&mut all).is_pending());
        store.cancel();
        within(all).await
    };
    assert!(outcomes.iter().all(Result::is_ok));
    store.shut_down().await;
    assert_eq!(journal(&*database.open().await, room).await.len(), 100);
}

async fn a_commit_after_shutdown_is_rejected(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let late: Store = (*store).clone();
    store.shut_down().await;
    let refused = within(late.commit(append(room, vec![says("late")]))).await;
    assert!(matches!(refused, Err(store::StoreError::Unavailable(_))));
}
