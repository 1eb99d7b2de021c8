//! A paused reader gets everything later and does not slow down others.

use super::{
    requests::{head, room, within},
    slow::{SlowSocket, SlowStream},
};
use domain::{
    ids::{RoomId, RunId},
    position::Seq,
};
use std::time::Duration;
use testkit::{
    client::{TestClient, TestPost},
    database::TestDatabase,
    server::TestServer,
};
use tokio::time::{Instant, sleep_until};

on_both_databases! {
    database: invariant_10_isolation_paused_reader_gets_everything_and_delays_nobody;
}

const MESSAGES: usize = 10;
const DELTAS: usize = 10_000;
const PAUSE: Duration = Duration::from_secs(10);

/// Alternates text and thinking, which are not joined. Returns the last run.
async fn post_all(api: &TestClient, room: RoomId) -> RunId {
    let pair = r#"{"text":"a"},{"thinking":"b"}"#;
    let script = format!("!script [{}]", vec![pair; DELTAS / 2].join(","));
    let mut last = None;
    for _ in 0..MESSAGES {
        last = Some(api.post_message(room, &TestPost::new(&script)).await.unwrap().runs[0].id);
    }
    last.unwrap()
}

async fn invariant_10_isolation_paused_reader_gets_everything_and_delays_nobody(database: TestDatabase) {
    // The tail holds a hundredth of the events: fast readers use it, slow readers use the store.
    let server = TestServer::start_with(database, &[("store.tail_bytes", "16777216")]).await;
    let api = server.api();
    let room = room(api).await;
    let (stream, socket, live) = within("the readers", async {
        (SlowStream::open(api, room).await, SlowSocket::open(api, room).await, SlowStream::open(api, room).await)
    })
    .await;
    let paused_until = Instant::now() + PAUSE;
    let last = post_all(api, room).await;

    // Another reader in the same room gets everything while the two are paused.
    let of_last = format!("\"run_id\":\"{last}\"");
    let ends = |_: Seq, frame: &testkit::client::ReceivedFrame| {
        frame.event.as_deref() == Some("run_completed") && frame.data.contains(&of_last)
    };
    let seen = within("the live reader", live.read_until(ends)).await;
    assert!(seen > (MESSAGES * DELTAS) as Seq, "more than 100,000 events: {seen}");
    assert_eq!(seen, head(api, room).await);
    sleep_until(paused_until).await;
    within("the paused ones", async { tokio::join!(stream.read_until(|seq, _| seq == seen), socket.read_until(seen)) })
        .await;
    server.assert_nothing_unfinished().await;
    // Every seq was seen three times, so the journal is not read again.
    server.stop().await;
}
