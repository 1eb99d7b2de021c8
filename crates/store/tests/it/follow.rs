//! The one reader: at any position and speed, it sees the journal, in order and byte for byte as stored.

use crate::scene::{append, at, follow, journal, json, me, read_until, room, says, within};
use domain::{ids::RoomId, position::Seq};
use std::sync::Arc;
use store::{
    Store, StoreConfig, StoreError,
    journal::{Batch, Follower},
    notify::Notifier,
};
use testkit::database::{OpenStore, TestDatabase};
use tokio::task::JoinSet;

contract! {
    many threads:
        invariant_02_gapless_subscribing_before_reading_misses_nothing,
        a_reader_behind_the_tail_misses_nothing_under_load,
        slow_and_fast_readers_see_the_same_events,
        one_notifier_serves_many_rooms;
    one thread:
        a_reader_sees_stored_events_byte_for_byte,
        a_reader_from_any_position_sees_all_later_events,
        h5_large_events_are_read_one_at_a_time_when_there_is_memory,
        a_reader_knows_whether_it_is_behind,
        a_dropped_reader_does_not_affect_others,
        following_an_unknown_room_fails;
}

/// A store with a tail so small that most reads fall back to the database.
async fn with_tiny_tail(database: &TestDatabase, tail_bytes: usize) -> OpenStore {
    OpenStore::open(&StoreConfig { tail_bytes, ..database.config() }).await.unwrap()
}

async fn fill(store: &Store, room: RoomId, count: Seq) {
    for n in 0..count {
        store.commit(append(room, vec![says(format!("event {n}"))])).await.unwrap();
    }
}

async fn a_reader_sees_stored_events_byte_for_byte(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut live = follow(&store, room, 0).await;
    for text in ["plain", "Zoë 🎭", "a\r\n\r\ndata: forged\n\n", "nul \u{0} and \u{2028}", "\"\\/"] {
        store.commit(append(room, vec![says(text).with_raw(Some(r#"{"kept":1}"#.into()))])).await.unwrap();
    }
    let from_tail = read_until(&mut live, 5).await;
    drop(live);
    store.shut_down().await;
    let store = database.open().await;
    let from_store = read_until(&mut follow(&store, room, 0).await, 5).await;
    for ((event, live), stored) in journal(&store, room).await.iter().zip(from_tail).zip(from_store) {
        assert_eq!(live.json(), json(event), "the live frame equals the stored event");
        assert_eq!(live.sse(), stored.sse(), "so does the frame read from the store");
        assert_eq!(live.websocket(), stored.websocket());
        assert_eq!((live.seq, live.kind, live.run_id), (event.seq, event.kind, event.run_id));
        let sse = format!("id: {}-{}\nevent: {}\ndata: ", store.epoch(), event.seq, event.kind);
        let body = live.sse().strip_prefix(sse.as_bytes()).unwrap();
        assert_eq!(body, [json(event), b"\n\n".to_vec()].concat());
        let socket: serde_json::Value = serde_json::from_slice(live.websocket()).unwrap();
        assert_eq!(socket["type"], "event");
        assert_eq!(socket["event"], serde_json::from_slice::<serde_json::Value>(&json(event)).unwrap());
    }
}

async fn a_reader_from_any_position_sees_all_later_events(database: TestDatabase) {
    for tail_bytes in [0, 16 * 8 * 400, 16 * 1024 * 1024] {
        let store = with_tiny_tail(&database, tail_bytes).await;
        let room = room(&store).await;
        fill(&store, room, 20).await;
        let all: Vec<Vec<u8>> = journal(&store, room).await.iter().map(json).collect();
        for after in 0..=20 {
            let mut follower = follow(&store, room, after).await;
            let rest: Vec<Vec<u8>> =
                read_until(&mut follower, 20).await.iter().map(|frame| frame.json().to_vec()).collect();
            assert_eq!(rest, all[usize::try_from(after).unwrap()..], "after {after} with a tail of {tail_bytes}");
            assert!(matches!(follower.next().await.unwrap(), Batch::CaughtUp));
        }
        store.shut_down().await;
    }
}

async fn a_reader_behind_the_tail_misses_nothing_under_load(database: TestDatabase) {
    const COUNT: Seq = 600;
    // About eight events per room: readers fall out of the tail and catch up.
    let store = with_tiny_tail(&database, 16 * 8 * 400).await;
    let room = room(&store).await;
    let mut readers = JoinSet::new();
    for after in [0, 0, 0, 1] {
        let store: Store = (*store).clone();
        readers.spawn(async move {
            if after > 0 {
                let mut first = follow(&store, room, 0).await;
                read_until(&mut first, after).await;
            }
            let mut follower = follow(&store, room, after).await;
            let seen = read_until(&mut follower, COUNT).await;
            (after, seen.iter().map(|frame| frame.json().to_vec()).collect::<Vec<_>>())
        });
    }
    for n in 0..COUNT / 4 {
        let events = (0..4).map(|part| says(format!("{n}.{part}"))).collect();
        store.commit(append(room, events)).await.unwrap();
    }
    let all: Vec<Vec<u8>> = journal(&store, room).await.iter().map(json).collect();
    while let Some(read) = within(readers.join_next()).await {
        let (after, seen) = read.unwrap();
        assert_eq!(seen, all[usize::try_from(after).unwrap()..]);
    }
}

async fn invariant_02_gapless_subscribing_before_reading_misses_nothing(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..300 {
        // Opened while an event is committed: the event is read, or the notifier wakes the reader.
        let opening: Store = (*store).clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut follower = follow(&opening, room, n).await;
            read_until(&mut follower, n + 1).await.len()
        });
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
        assert_eq!(within(tasks.join_next()).await.unwrap().unwrap(), 1);
    }
}

async fn slow_and_fast_readers_see_the_same_events(database: TestDatabase) {
    let store = with_tiny_tail(&database, 16 * 4 * 400).await;
    let room = room(&store).await;
    let (mut fast, mut slow) = (follow(&store, room, 0).await, follow(&store, room, 0).await);
    let (mut seen_fast, mut seen_slow) = (Vec::new(), Vec::new());
    for n in 1..=200 {
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
        seen_fast.extend(read_until(&mut fast, n).await);
        if n % 50 == 0 {
            seen_slow.extend(read_until(&mut slow, n).await);
        }
    }
    assert_eq!(seen_fast.len(), 200);
    assert!(seen_fast.iter().map(|frame| frame.json()).eq(seen_slow.iter().map(|frame| frame.json())));
}

async fn h5_large_events_are_read_one_at_a_time_when_there_is_memory(database: TestDatabase) {
    for tail_bytes in [0, 64 * 1024 * 1024] {
        let store = with_tiny_tail(&database, tail_bytes).await;
        let room = room(&store).await;
        for n in 0..5 {
            store.commit(append(room, vec![says(n.to_string().repeat(200_000))])).await.unwrap();
        }
        let mut follower = follow(&store, room, 0).await;
        for seq in 1..=5 {
            let Batch::Large { bytes } = follower.next().await.unwrap() else { panic!("it is read too early") };
            assert!((200_000..201_000).contains(&bytes), "{bytes}");
            let Batch::Frames(frames) = follower.next_large().await.unwrap() else { panic!("there is more") };
            assert_eq!(frames.iter().map(|frame| frame.seq).collect::<Vec<_>>(), [seq], "a batch is bounded");
        }
        assert!(matches!(follower.next().await.unwrap(), Batch::CaughtUp));
        store.shut_down().await;
    }
}

async fn one_notifier_serves_many_rooms(database: TestDatabase) {
    const COUNT: Seq = 40;
    let store = database.open().await;
    let bell = Arc::new(Notifier::default());
    let mut followers: Vec<Follower> = Vec::new();
    for _ in 0..5 {
        let room = room(&store).await;
        followers.push(store.follow(&me(), room, &at(0), bell.clone()).await.unwrap());
    }
    let mut writers = JoinSet::new();
    for room in followers.iter().map(Follower::room) {
        let store: Store = (*store).clone();
        writers.spawn(async move { fill(&store, room, COUNT).await });
    }
    within(async {
        while followers.iter().any(|follower| follower.seq() < COUNT) {
            bell.notified().await;
            for follower in followers.iter_mut().filter(|follower| follower.is_behind()) {
                while let Batch::Frames(_) = follower.next().await.unwrap() {}
            }
        }
    })
    .await;
    within(writers.join_all()).await;
}

async fn a_reader_knows_whether_it_is_behind(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    fill(&store, room, 3).await;
    store.shut_down().await;
    let store = database.open().await;
    // Nothing was written since the start: the tail is empty.
    let mut follower = follow(&store, room, 1).await;
    assert!(follower.is_behind());
    assert_eq!((follower.seq(), follower.head()), (1, 3));
    read_until(&mut follower, 3).await;
    assert!(!follower.is_behind());
    assert_eq!(follower.head(), 3);
    fill(&store, room, 1).await;
    assert!(follower.is_behind());
    assert_eq!((follower.seq(), follower.head()), (3, 4));
    read_until(&mut follower, 4).await;
    assert!(!follower.is_behind());
    let mut fresh = follow(&store, room, 0).await;
    assert!(fresh.is_behind());
    read_until(&mut fresh, 4).await;
    assert!(!fresh.is_behind());
}

async fn a_dropped_reader_does_not_affect_others(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut stays = follow(&store, room, 0).await;
    for n in 1..=20 {
        let mut goes = follow(&store, room, 0).await;
        let also_goes = follow(&store, room, n - 1).await;
        store.commit(append(room, vec![says(n.to_string())])).await.unwrap();
        read_until(&mut goes, n).await;
        drop((goes, also_goes));
        assert_eq!(read_until(&mut stays, n).await.len(), 1);
    }
}

async fn following_an_unknown_room_fails(database: TestDatabase) {
    let store = database.open().await;
    let bell = Arc::new(Notifier::default());
    let refused = store.follow(&me(), RoomId::generate(), &at(0), bell).await;
    assert!(matches!(refused, Err(StoreError::NotFound)));
}
