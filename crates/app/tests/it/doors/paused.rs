//! A reader that stops reading for a while gets everything, and nobody else waits for it.

use super::{
    scene::{head, room, within},
    slow::{SlowSocket, SlowStream},
};
use domain::{
    ids::{RoomId, RunId},
    position::Seq,
};
use std::time::Duration;
use testkit::{
    client::{Api, Post},
    database::TestDatabase,
    server::TestServer,
};
use tokio::time::{Instant, sleep_until};

doors! {
    database: invariant_10_isolation_a_paused_reader_gets_everything_and_nobody_waits_for_it;
}

const MESSAGES: usize = 10;
const DELTAS: usize = 10_000;
const PAUSE: Duration = Duration::from_secs(10);

/// Text and thinking in turns, which do not become one event. Returns the last run.
async fn post_all(api: &Api, room: RoomId) -> RunId {
    let pair = r#"{"text":"a"},{"thinking":"b"}"#;
    let script = format!("!script [{}]", vec![pair; DELTAS / 2].join(","));
    let mut last = None;
    for _ in 0..MESSAGES {
        last = Some(api.post_message(room, &Post::new(&script)).await.unwrap().runs[0].id);
    }
    last.unwrap()
}

async fn invariant_10_isolation_a_paused_reader_gets_everything_and_nobody_waits_for_it(database: TestDatabase) {
    // A tail that holds a hundredth of it: who keeps up reads that, who is behind reads the store.
    let server = TestServer::start_with(database, &[("store.tail_bytes", "16777216")]).await;
    let api = server.api();
    let room = room(api).await;
    let (stream, socket, live) = within("the readers", async {
        (SlowStream::open(api, room).await, SlowSocket::open(api, room).await, SlowStream::open(api, room).await)
    })
    .await;
    let paused_until = Instant::now() + PAUSE;
    let last = post_all(api, room).await;

    // Somebody else in the same room sees everything while the two read nothing at all.
    let of_last = format!("\"run_id\":\"{last}\"");
    let ends = |_: Seq, frame: &testkit::client::Frame| {
        frame.event.as_deref() == Some("run_completed") && frame.data.contains(&of_last)
    };
    let seen = within("the live reader", live.read_until(ends)).await;
    assert!(seen > (MESSAGES * DELTAS) as Seq, "100,000 events and what goes with them: {seen}");
    assert_eq!(seen, head(api, room).await);
    sleep_until(paused_until).await;
    within("the paused ones", async { tokio::join!(stream.read_until(|seq, _| seq == seen), socket.read_until(seen)) })
        .await;
    server.assert_nothing_unfinished().await;
    // Every seq was seen three times; reading them all again would add nothing.
    server.stop().await;
}
