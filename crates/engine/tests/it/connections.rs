//! The run path has its own database connections: clients that read a lot do not hold it up (invariant 28).

use crate::harness::{EngineHarness, me};
use domain::{event::EventType, position::Position};
use engine::EventUpdate;
use std::time::Duration;
use testkit::database::TestDatabase;
use tokio::time::{Instant, timeout};

/// Less than the store waits for a connection.
const SOON: Duration = Duration::from_secs(5);

contract! {
    m6_a_run_starts_and_streams_while_clients_hold_all_read_connections,
}

async fn m6_a_run_starts_and_streams_while_clients_hold_all_read_connections(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post(room, "first").await;
    let first = harness.turn().await;
    // Waits in the queue until the first run has ended: it is claimed, prepared and started by the worker.
    let second = harness.post(room, "second").await.runs[0].id;
    let after = Position::START;
    let mut events = harness.engine.queries().room_events(&me().workspace, room, &after).await.unwrap().from_now_on();
    let held = harness.store.hold_client_connections().await.unwrap();
    let blocked = timeout(Duration::from_millis(100), harness.store.room(&me().workspace, room)).await;
    assert!(blocked.is_err(), "clients can read nothing");
    first.answer("s", "one").await;
    let turn = timeout(SOON, harness.unstored_turn()).await.expect("the second turn");
    assert_eq!(turn.request.run_id, second);
    turn.text("two").await;
    let mut seen = Vec::new();
    while !seen.contains(&(Some(second), EventType::ContentDelta)) {
        match events.next_before(Instant::now() + SOON).await.unwrap() {
            EventUpdate::Events(frames) => seen.extend(frames.iter().map(|frame| (frame.run_id, frame.kind))),
            EventUpdate::CaughtUp | EventUpdate::Large { .. } | EventUpdate::Reset { .. } | EventUpdate::RunEnded => {
                panic!("{seen:?}")
            }
        }
    }
    drop(held);
    turn.answer("s", "").await;
    harness.ended(second).await;
    harness.stop().await;
}
