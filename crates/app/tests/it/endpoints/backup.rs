//! Backup next to a running server, restore, and readers that start over.

use super::{
    binary::Binary,
    requests::{
        RoomFollower, get, journal, message_of, post, post_and_wait, post_body, post_text, response_to, room, runs_of,
        wait_for_end, within,
    },
};
use domain::{position::Position, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use testkit::{
    client::{SeenEvent, SeenItem, SseReader, TestClient, WsReader},
    database::TestDatabase,
    server::assert_journal_valid,
};

on_both_databases! {
    database: invariant_08_epoch_after_a_restore_old_positions_start_over,
              a_restored_server_has_its_uploads_workspaces_and_skills;
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

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The folders that `greenroom backup` names.
fn named_folders(output: &str) -> Vec<String> {
    let names = output.lines().filter_map(|line| line.strip_prefix("  ")?.split_once('/'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// A server on another machine: the database, and the folders that the backup named. PostgreSQL's database stays where
/// it is, as after a `pg_restore`.
async fn a_restored_server_has_its_uploads_workspaces_and_skills(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let data = binary.launch.data_dir.clone();
    fs::create_dir_all(data.join("skills/greeting")).unwrap();
    fs::write(data.join("skills/greeting/SKILL.md"), "---\nname: greeting\ndescription: Greets.\n---\nHi").unwrap();
    let (server, api) = binary.serve().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let sent = api.request(Method::POST, "/api/uploads?name=a.bin").body(bytes.clone());
    let upload = response_to(sent).await.expect_status(201);
    let room = room(&api).await;
    let attach = |text: &str| {
        let attachment = json!({"name": "a", "media_type": "a/b", "url": upload["url"]});
        json!({"text": text, "attachments": [attachment]})
    };
    let posted = post_body(&api, room, attach("look")).await.expect_status(202);
    let run = wait_for_end(&api, runs_of(&posted)[0]).await;
    let text = message_of(&api, &run).await.text;
    let attached = text.split_whitespace().find(|word| word.starts_with("attachments/")).unwrap().to_owned();
    let in_room = |data: &Path| data.join("rooms").join(room.to_string());
    assert_eq!(fs::read(in_room(&data).join(&attached)).unwrap(), bytes);
    fs::write(in_room(&data).join("draft.md"), "written by an agent").unwrap();
    let project = post(&api, "/api/projects", &json!({"name": "p"})).await.expect_status(201);
    let file = format!("/api/projects/{}/files/content?path=src/main.py", project["id"].as_str().unwrap());
    response_to(api.request(Method::PUT, &file).body("print(1)")).await.expect_status(200);

    let backup = binary.path("all.backup");
    let backed_up = binary.run_command(&["backup", backup.to_str().unwrap()]).await;
    assert_eq!(backed_up.code, Some(if database.is_sqlite() { 0 } else { 1 }), "{}", backed_up.stderr);
    let mut folders = named_folders(&backed_up.stdout);
    folders.sort();
    assert_eq!(folders, ["projects", "rooms", "skills", "uploads"], "{}", backed_up.stdout);
    // What is written after the backup was copied is not in it.
    let elsewhere = tempfile::tempdir().unwrap();
    let restored_data = elsewhere.path().join("data");
    for folder in &folders {
        copy_folder(&data.join(folder), &restored_data.join(folder));
    }
    server.terminate(STOP).await.unwrap();

    let mut restored =
        Binary::on_folder(&database, Some(restored_data.clone())).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let command: &[&str] = match database.is_sqlite() {
        true => &["restore", backup.to_str().unwrap()],
        false => &["restore", "--new-epoch"],
    };
    let output = restored.run_command(command).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let (server, api) = restored.serve().await;
    let stored = api.request(Method::GET, upload["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(stored.bytes().await.unwrap(), bytes, "the upload");
    assert_eq!(fs::read_to_string(in_room(&restored_data).join("draft.md")).unwrap(), "written by an agent");
    assert_eq!(get(&api, &file).await.text, "print(1)", "the file of the project");
    let skills: Value = get(&api, "/api/skills").await.expect_status(200);
    assert!(skills.to_string().contains("greeting"), "the skill of the data folder: {skills}");
    // The old attachment is in the room, and can be attached again.
    let posted = post_body(&api, room, attach("again")).await.expect_status(202);
    let run = wait_for_end(&api, runs_of(&posted)[0]).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
    assert_eq!(fs::read(in_room(&restored_data).join(&attached)).unwrap(), bytes);
    server.terminate(STOP).await.unwrap();
}
