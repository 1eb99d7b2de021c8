//! Two servers on one database: refused on a file, side by side on PostgreSQL.

use super::scene::{Audience, answered, journal, room, say, within};
use domain::{position::Position, run::RunStatus};
use greenroom::serve::Running;
use testkit::{
    client::{Api, SseReader},
    database::TestDatabase,
    server::{TestServer, config},
};

doors! {
    database: invariant_13_hints_are_hints_what_one_server_does_the_other_learns;
}

async fn invariant_13_hints_are_hints_what_one_server_does_the_other_learns(database: TestDatabase) {
    let settings = [("feed.heartbeat_seconds", "1"), ("runs.lease_seconds", "3")];
    let first = TestServer::start_with(database, &settings).await;
    let owned: Vec<_> = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let here = first.api().clone();
    let room = room(&here).await;
    let run = say(&here, room, "!hang").await;
    Audience::of(&here, room).await.first_word(run).await;
    let second = Running::start(&config(first.database(), &owned)).await;
    if first.database().is_sqlite() {
        let refused = second.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("another Greenroom server"), "{refused}");
        here.cancel_run(run).await.unwrap();
        return first.finish().await;
    }
    let second = second.unwrap();
    // No bell of one server rings at the other: both look by themselves.
    let there = Api::new(format!("http://{}", second.address)).unwrap();
    let mut reader = SseReader::connect(&there, room, &Position::START).await.unwrap();
    assert_eq!(there.run(run).await.unwrap().status, RunStatus::Running, "a new server leaves alone what is alive");
    assert_eq!(there.cancel_run(run).await.unwrap().status, RunStatus::Cancelled, "asked there, stopped here");
    for event in &journal(&here, room).await {
        assert_eq!(within("the other's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    // And the other way, in a room whose tail the first server holds: its reader is late by a heartbeat at most.
    let mut reader = SseReader::connect(&here, room, &Position::START).await.unwrap();
    answered(&there, room, "!count 3").await;
    for event in &journal(&there, room).await {
        assert_eq!(within("the first's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    drop(reader);
    second.stop().await;
    first.finish().await;
}
