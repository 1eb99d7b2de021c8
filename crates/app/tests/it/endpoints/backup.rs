//! Backup next to a running server, restore, and readers that start over.

use super::{
    binary::Binary,
    requests::{RoomFollower, get, journal, post_and_wait, post_text, room, wait_for_end, within},
};
use domain::{position::Position, run::RunStatus};
use std::time::Duration;
use testkit::{
    client::{SeenEvent, SeenItem, SseReader, TestClient, WsReader},
    database::TestDatabase,
    server::assert_journal_valid,
};

on_both_databases! {
    database: invariant_08_epoch_after_a_restore_old_positions_start_over;
}

const STOP: Duration = Duration::from_secs(30);

/// On every transport, a reader with an old position gets a reset and then the whole journal.
async fn starts_over(api: &TestClient, room: domain::ids::RoomId, old: &Position) -> Vec<SeenEvent> {
    let written = format!("{}-{}", old.epoch.as_ref().unwrap(), old.seq);
    get(api, &format!("/api/rooms/{room}/events?after={written}")).await.expect_problem(409, "position_reset");
    let all = journal(api, room).await;
    let mut stream = SseReader::connect(api, room, old).await.unwrap();
    assert!(matches!(within("a reset", stream.next()).await.unwrap(), Some(SeenItem::Reset(_))));
    for event in &all {
        assert_eq!(within("the journal", stream.next_event()).await.unwrap().as_ref(), Some(event));
    }
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, old).await.unwrap();
    let (mut resets, mut seen) = (0, Vec::new());
    while seen.len() < all.len() {
        match within("the journal", socket.next()).await.unwrap().unwrap().1 {
            SeenItem::Reset(_) => resets += 1,
            SeenItem::Event(event) => seen.push(event),
            SeenItem::Heartbeat(_) => {}
        }
    }
    assert_eq!((resets, &seen), (1, &all));
    all
}

async fn invariant_08_epoch_after_a_restore_old_positions_start_over(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let done = post_and_wait(&api, room, "!count 5").await;
    let running = post_text(&api, room, "!count 5000 5").await;
    let mut follower = RoomFollower::start(&api, room).await;
    let before = follower.until("a part of the answer", |event| event.seq > 20).await.seq;
    let backup = binary.path("rooms.backup");
    let backed_up = binary.run_command(&["backup", backup.to_str().unwrap()]).await;
    let until = follower.until("more of it", |event| event.seq > before + 40).await;
    let epoch = api.events(room, &Position::START, 1).await.unwrap().epoch;
    let old = Position { epoch: Some(epoch.clone()), seq: until.seq };

    if !database.is_sqlite() {
        // PostgreSQL has its own backup tools; only a new epoch is needed.
        assert_eq!(backed_up.code, Some(1));
        assert!(
            backed_up.stderr.contains("pg_dump") && backed_up.stderr.contains("--new-epoch"),
            "{}",
            backed_up.stderr
        );
        server.terminate(STOP).await.unwrap();
        assert_eq!(binary.run_command(&["restore", "--new-epoch"]).await.code, Some(0));
        let (server, api) = binary.serve().await;
        assert_journal_valid(&starts_over(&api, room, &old).await);
        server.terminate(STOP).await.unwrap();
        return;
    }
    assert_eq!(backed_up.code, Some(0), "{}", backed_up.stderr);
    let refused = binary.run_command(&["restore", backup.to_str().unwrap(), "--replace"]).await;
    assert_eq!(refused.code, Some(1), "restore must fail while a server runs: {}", refused.stdout);
    server.terminate(STOP).await.unwrap();
    let refused = binary.run_command(&["restore", backup.to_str().unwrap()]).await;
    assert_eq!(refused.code, Some(2), "restore must fail without --replace: {}", refused.stdout);
    let restored = binary.run_command(&["restore", backup.to_str().unwrap(), "--replace"]).await;
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);

    let (server, api) = binary.serve().await;
    let all = starts_over(&api, room, &old).await;
    assert_journal_valid(&all);
    let known = follower.seen.iter().take_while(|event| event.seq <= before);
    assert!(known.zip(&all).all(|(seen, now)| seen == now), "everything up to the backup must be restored");
    assert!(all.len() as u64 > before);
    assert_eq!(api.run(done.id).await.unwrap(), done);
    let run = wait_for_end(&api, running).await;
    assert_eq!(run.status, RunStatus::Interrupted, "the run that was active at the backup must have ended");
    assert_eq!(post_and_wait(&api, room, "!count 3").await.status, RunStatus::Completed);
    server.terminate(STOP).await.unwrap();
}
