//! Backup beside a running server, restore, and readers that are told to start over.

use super::{
    binary::Binary,
    scene::{Audience, answered, ended, get, journal, room, say, within},
};
use domain::{position::Position, run::RunStatus};
use std::time::Duration;
use testkit::{
    client::{Api, Said, SeenEvent, SseReader, WsReader},
    database::TestDatabase,
    server::assert_sound,
};

doors! {
    database: invariant_08_epoch_after_a_restore_old_positions_start_over;
}

const STOP: Duration = Duration::from_secs(30);

/// By every door: a reader with an old position is told, and then gets all there is.
async fn starts_over(api: &Api, room: domain::ids::RoomId, old: &Position) -> Vec<SeenEvent> {
    let written = format!("{}-{}", old.epoch.as_ref().unwrap(), old.seq);
    get(api, &format!("/api/rooms/{room}/events?after={written}")).await.is_refused(409, "position_reset");
    let all = journal(api, room).await;
    let mut stream = SseReader::connect(api, room, old).await.unwrap();
    assert!(matches!(within("a reset", stream.next()).await.unwrap(), Some(Said::Reset(_))));
    for event in &all {
        assert_eq!(within("the journal", stream.next_event()).await.unwrap().as_ref(), Some(event));
    }
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, old).await.unwrap();
    let (mut resets, mut seen) = (0, Vec::new());
    while seen.len() < all.len() {
        match within("the journal", socket.next()).await.unwrap().unwrap().1 {
            Said::Reset(_) => resets += 1,
            Said::Event(event) => seen.push(event),
            Said::Heartbeat(_) => {}
        }
    }
    assert_eq!((resets, &seen), (1, &all));
    all
}

async fn invariant_08_epoch_after_a_restore_old_positions_start_over(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let done = answered(&api, room, "!count 5").await;
    let running = say(&api, room, "!count 5000 5").await;
    let mut audience = Audience::of(&api, room).await;
    let before = audience.until("a part of the answer", |event| event.seq > 20).await.seq;
    let backup = binary.path("rooms.backup");
    let backed_up = binary.beside(&["backup", backup.to_str().unwrap()]).await;
    let until = audience.until("more of it", |event| event.seq > before + 40).await;
    let epoch = api.events(room, &Position::START, 1).await.unwrap().epoch;
    let old = Position { epoch: Some(epoch.clone()), seq: until.seq };

    if !database.is_sqlite() {
        // PostgreSQL has tools of its own; what it needs from here is the new epoch.
        assert_eq!(backed_up.code, Some(1));
        assert!(backed_up.side.contains("pg_dump") && backed_up.side.contains("--new-epoch"), "{}", backed_up.side);
        server.terminate(STOP).await.unwrap();
        assert_eq!(binary.beside(&["restore", "--new-epoch"]).await.code, Some(0));
        let (server, api) = binary.serve().await;
        assert_sound(&starts_over(&api, room, &old).await);
        server.terminate(STOP).await.unwrap();
        return;
    }
    assert_eq!(backed_up.code, Some(0), "{}", backed_up.side);
    let refused = binary.beside(&["restore", backup.to_str().unwrap(), "--replace"]).await;
    assert_eq!(refused.code, Some(1), "not while a server runs: {}", refused.out);
    server.terminate(STOP).await.unwrap();
    let refused = binary.beside(&["restore", backup.to_str().unwrap()]).await;
    assert_eq!(refused.code, Some(2), "not without --replace: {}", refused.out);
    let restored = binary.beside(&["restore", backup.to_str().unwrap(), "--replace"]).await;
    assert_eq!(restored.code, Some(0), "{}", restored.side);

    let (server, api) = binary.serve().await;
    let all = starts_over(&api, room, &old).await;
    assert_sound(&all);
    let known = audience.seen.iter().take_while(|event| event.seq <= before);
    assert!(known.zip(&all).all(|(seen, now)| seen == now), "everything up to the backup is there");
    assert!(all.len() as u64 > before);
    assert_eq!(api.run(done.id).await.unwrap(), done);
    let run = ended(&api, running).await;
    assert_eq!(run.status, RunStatus::Interrupted, "what was under way then has ended");
    assert_eq!(answered(&api, room, "!count 3").await.status, RunStatus::Completed);
    server.terminate(STOP).await.unwrap();
}
