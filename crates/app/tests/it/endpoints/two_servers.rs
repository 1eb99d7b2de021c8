//! Two servers on one database: rejected on SQLite, supported on PostgreSQL.

use super::requests::{RoomFollower, journal, post_and_wait, post_text, room, within};
use domain::{position::Position, run::RunStatus};
use greenroom::serve::RunningServer;
use testkit::{
    client::{SseReader, TestClient},
    database::TestDatabase,
    server::{TestServer, config},
};

on_both_databases! {
    database: invariant_13_hints_are_hints_servers_see_each_others_changes;
}

async fn invariant_13_hints_are_hints_servers_see_each_others_changes(database: TestDatabase) {
    let settings = [("feed.heartbeat_seconds", "1"), ("runs.lease_seconds", "3")];
    let first = TestServer::start_with(database, &settings).await;
    let owned: Vec<_> = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let here = first.api().clone();
    let room = room(&here).await;
    let run = post_text(&here, room, "!hang").await;
    RoomFollower::start(&here, room).await.first_delta(run).await;
    let second = RunningServer::start(&config(first.database(), &owned)).await;
    if first.database().is_sqlite() {
        let refused = second.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("another Greenroom server"), "{refused}");
        here.cancel_run(run).await.unwrap();
        return first.finish().await;
    }
    let second = second.unwrap();
    // The servers do not notify each other; both poll.
    let there = TestClient::new(format!("http://{}", second.address)).unwrap();
    let mut reader = SseReader::connect(&there, room, &Position::START).await.unwrap();
    assert_eq!(there.run(run).await.unwrap().status, RunStatus::Running, "a new server must not touch active runs");
    assert_eq!(
        there.cancel_run(run).await.unwrap().status,
        RunStatus::Cancelled,
        "a cancel on the second server must stop the run on the first"
    );
    for event in &journal(&here, room).await {
        assert_eq!(within("the other's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    // The other direction, in a room whose tail is cached by the first server: its reader is late by at most a
    // heartbeat.
    let mut reader = SseReader::connect(&here, room, &Position::START).await.unwrap();
    post_and_wait(&there, room, "!count 3").await;
    for event in &journal(&there, room).await {
        assert_eq!(within("the first's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    drop(reader);
    second.stop().await;
    first.finish().await;
}
