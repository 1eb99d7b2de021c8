//! The server crashes while writing: acknowledged events are stored, and the journal has no gap.

use crate::scene::{append, follow, journal, read_until, room, said, says};
use domain::{ids::RoomId, position::Seq};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use store::Store;
use testkit::database::TestDatabase;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

#[test]
fn sqlite_invariant_01_durable_before_visible_a_crash_loses_no_acknowledged_event() {
    a_crash_loses_no_acknowledged_event(&TestDatabase::sqlite());
}

#[test]
fn postgres_invariant_01_durable_before_visible_a_crash_loses_no_acknowledged_event() {
    a_crash_loses_no_acknowledged_event(&TestDatabase::postgres());
}

type Acknowledged = Arc<Mutex<BTreeMap<(RoomId, Seq), String>>>;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()
}

fn a_crash_loses_no_acknowledged_event(database: &TestDatabase) {
    let first = runtime();
    let rooms: Vec<RoomId> = first.block_on(async {
        let store = database.open().await;
        let rooms = vec![room(&store).await, room(&store).await];
        store.shut_down().await;
        rooms
    });
    drop(first);
    let acknowledged: Acknowledged = Arc::default();
    let seen: Acknowledged = Arc::default();
    for crash in 0..8 {
        let runtime = runtime();
        runtime.block_on(write_for_a_while(database, &rooms, crash, &acknowledged, &seen));
        // Tasks are dropped wherever they are, the writer inside its transaction.
        runtime.shutdown_timeout(Duration::from_secs(30));
        let runtime = self::runtime();
        runtime.block_on(async {
            let store = database.open().await;
            let mut stored = BTreeMap::new();
            for &room in &rooms {
                let events = journal(&store, room).await;
                stored.extend(events.iter().map(|event| ((room, event.seq), said(event))));
            }
            for promised in [&acknowledged, &seen] {
                for (position, text) in promised.lock().unwrap().iter() {
                    assert_eq!(stored.get(position), Some(text), "crash {crash} lost {position:?}");
                }
            }
            store.shut_down().await;
        });
    }
    assert!(acknowledged.lock().unwrap().len() > 8);
}

/// Returns while writers and readers are still active.
async fn write_for_a_while(
    database: &TestDatabase,
    rooms: &[RoomId],
    crash: u64,
    acknowledged: &Acknowledged,
    seen: &Acknowledged,
) {
    let store = database.open().await;
    let mut tasks = JoinSet::new();
    for (n, &room) in (0..).zip(rooms.iter().cycle().take(6)) {
        let (store, acknowledged): (Store, _) = ((*store).clone(), acknowledged.clone());
        tasks.spawn(async move {
            for k in 0.. {
                let texts: Vec<String> = (0..3).map(|part| format!("{crash}.{n}.{k}.{part}")).collect();
                let Ok(committed) = store.commit(append(room, texts.iter().map(says).collect())).await else { return };
                let positions = (committed.first_seq..).map(|seq| (room, seq));
                acknowledged.lock().unwrap().extend(positions.zip(texts));
            }
        });
    }
    let (reading, seen): (Store, _) = ((*store).clone(), seen.clone());
    let watched = rooms[0];
    let start = reading.head(&crate::scene::me(), watched).await.unwrap();
    let mut follower = follow(&reading, watched, start).await;
    // A different time for each crash.
    while follower.seq() < start + 10 + crash * 7 {
        let next = follower.seq() + 1;
        for frame in read_until(&mut follower, next).await {
            let event: serde_json::Value = serde_json::from_slice(frame.json()).unwrap();
            let text = event["data"]["message"].as_str().unwrap().to_owned();
            seen.lock().unwrap().insert((watched, frame.seq), text);
        }
    }
    tasks.detach_all();
}
