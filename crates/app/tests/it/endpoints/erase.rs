//! Deleting erases (M8, invariant 30): nothing of a deleted room or agent is left in the database or on disk.

use super::{
    binary::Binary,
    requests::{agent, delete, get, post, post_body, response_to, room_of, runs_of, wait_for_end, within},
};
use domain::ids::RoomId;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use testkit::{client::TestClient, database::TestDatabase, database_dump::DatabaseDump};
use tokio::time::sleep;

on_both_databases! {
    database: m8_a_deleted_room_is_erased_after_its_grace_period, m8_a_purged_room_is_erased_at_once,
              m8_an_attachment_of_another_room_stays, m8_a_purged_agent_leaves_no_file;
}

const STOP: Duration = Duration::from_secs(30);
/// The audit log outlives what was changed, with ids and without texts. Servers on one database tell each other what they
/// have erased.
const KEEP_IDS: [&str; 2] = ["audit", "erasures"];

async fn upload(api: &TestClient, content: &str) -> Value {
    let request = api.request(Method::POST, &format!("/api/uploads?name={content}.txt"));
    let request = request.header("content-type", "text/plain").body(content.to_owned());
    response_to(request).await.expect_status(201)
}

/// A room in which everything contains the text: a message, its attachment, and the answer.
async fn used_room(api: &TestClient, text: &str, upload: &Value) -> RoomId {
    let room = room_of(api, &[agent(api, &format!("agent of {text}"), json!({"provider": "scripted"})).await]).await;
    let attachment = json!({"name": "x", "media_type": "text/plain", "url": upload["url"]});
    let body = json!({"text": format!("!tool look {{\"at\":\"{text}\"}}"), "attachments": [attachment]});
    for run in runs_of(&post_body(api, room, body).await.expect_status(202)) {
        wait_for_end(api, run).await;
    }
    room
}

/// The files beneath a folder that contain a text or are named by it.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let is_named = entry.file_name().to_string_lossy().contains(text);
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        }
        let has_text =
            || fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()));
        if is_named || kind.is_file() && has_text() {
            found.push(path);
        }
    }
    found
}

/// Files that are named by an id or contain it, but for the database: its audit log has ids.
fn files_named(data: &Path, id: uuid::Uuid) -> Vec<PathBuf> {
    let is_database = |file: &PathBuf| file.parent() == Some(data);
    files_with(data, &id.to_string()).into_iter().filter(|file| !is_database(file)).collect()
}

/// Waits until the text is in no table and in no file.
async fn wait_until_erased(database: &TestDatabase, data: &Path, text: &str, id: uuid::Uuid) {
    let erased = async {
        loop {
            let dump = DatabaseDump::read(database).await;
            let is_left = !dump.tables_with(text, &[]).is_empty() || !dump.tables_with_id(id, &KEEP_IDS).is_empty();
            if !is_left && files_with(data, text).is_empty() && files_named(data, id).is_empty() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(45), erased).await.is_err() {
        let dump = DatabaseDump::read(database).await;
        panic!(
            "left: {text} in {:?} and {:?}, {id} in {:?} and {:?}",
            dump.tables_with(text, &[]),
            files_with(data, text),
            dump.tables_with_id(id, &KEEP_IDS),
            files_named(data, id)
        );
    }
}

async fn m8_a_deleted_room_is_erased_after_its_grace_period(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let (erased, kept) = ("markerasedqx", "markkeptqx");
    let attached = upload(&api, erased).await;
    let room = used_room(&api, erased, &attached).await;
    let other = used_room(&api, kept, &upload(&api, kept).await).await;
    let usage = get(&api, "/api/usage?by=model").await.expect_status(200);
    let data = binary.launch.data_dir.clone();
    assert!(!files_with(&data.join("rooms"), erased).is_empty(), "the attachment is in the room's folder");
    assert_eq!(delete(&api, &format!("/api/rooms/{room}")).await.status, 204);
    get(&api, &format!("/api/rooms/{room}")).await.expect_problem(404, "not_found");
    server.terminate(STOP).await.unwrap();
    assert!(
        DatabaseDump::read(&database).await.tables_with(erased, &[]).contains(&"events"),
        "within the grace period"
    );

    // The agent was not deleted: its name has the text, so it is renamed before everything is searched.
    let mut binary = binary.with("GREENROOM_STORE__ERASE_AFTER_SECONDS", "0");
    let (server, api) = binary.serve().await;
    let agents = get(&api, "/api/agents").await.expect_status(200);
    let of_erased =
        agents["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == format!("agent of {erased}"));
    let path = format!("/api/agents/{}", of_erased.unwrap()["id"].as_str().unwrap());
    response_to(api.request(Method::PATCH, &path).json(&json!({"name": "renamed"}))).await.expect_status(200);
    wait_until_erased(&database, &data, erased, room.0).await;

    get(&api, attached["url"].as_str().unwrap()).await.expect_problem(404, "not_found");
    assert_eq!(
        get(&api, "/api/usage?by=model").await.expect_status(200)["totals"],
        usage["totals"],
        "the cost is kept"
    );
    let runs = get(&api, "/api/runs").await.expect_status(200);
    assert!(runs["runs"].as_array().unwrap().iter().all(|run| run["room_id"] == other.to_string()), "{runs}");
    let history = get(&api, &format!("/api/rooms/{other}/messages")).await;
    assert!(history.text.contains(kept) && !files_with(&data.join("rooms"), kept).is_empty(), "{history:?}");
    let entry = &get(&api, "/api/audit?action=erase").await.expect_status(200)["entries"][0];
    assert_eq!((&entry["object_id"], &entry["credential"]), (&json!(room.to_string()), &json!("system")));
    server.terminate(STOP).await.unwrap();
}

async fn m8_a_purged_room_is_erased_at_once(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let arguments = ["token", "create", "--user", "mem", "--workspace", "local", "--role", "member", "--scopes", "all"];
    let member = binary.run_command(&arguments).await.stdout.trim().to_owned();
    let (server, api) = binary.serve().await;
    let agent = agent(&api, "slow", json!({"provider": "scripted"})).await;
    let room = room_of(&api, &[agent]).await;
    for run in runs_of(&post_body(&api, room, json!({"text": "!think markpurgedqx"})).await.expect_status(202)) {
        wait_for_end(&api, run).await;
    }
    post(&api, &format!("/api/rooms/{room}/messages"), &json!({"text": "!hang"})).await.expect_status(202);
    let path = format!("/api/rooms/{room}?purge=true");
    delete(&api.clone().with_token(member), &path).await.expect_problem(403, "forbidden");
    assert_eq!(delete(&api, &path).await.status, 204, "its runs are cancelled first");
    wait_until_erased(&database, &binary.launch.data_dir, "markpurgedqx", room.0).await;
    delete(&api, &path).await.expect_problem(404, "not_found");
    let entries = get(&api, "/api/audit?object=room").await.expect_status(200);
    let actions: Vec<&str> =
        entries["entries"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert!(actions.contains(&"purge") && actions.contains(&"erase"), "{actions:?}");

    // What was deleted before can be purged too.
    let room = room_of(&api, &[agent]).await;
    assert_eq!(delete(&api, &format!("/api/rooms/{room}")).await.status, 204);
    assert_eq!(delete(&api, &format!("/api/rooms/{room}?purge=true")).await.status, 204);
    wait_until_erased(&database, &binary.launch.data_dir, "no text", room.0).await;
    server.terminate(STOP).await.unwrap();
}

async fn m8_an_attachment_of_another_room_stays(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let shared = upload(&api, "sharedqx").await;
    let (first, second) = (used_room(&api, "firstqx", &shared).await, used_room(&api, "secondqx", &shared).await);
    let gone = async |room: RoomId| {
        assert_eq!(delete(&api, &format!("/api/rooms/{room}?purge=true")).await.status, 204);
        within("the erasure", async {
            while !DatabaseDump::read(&database).await.tables_with_id(room.0, &KEEP_IDS).is_empty() {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    };
    gone(first).await;
    assert_eq!(get(&api, shared["url"].as_str().unwrap()).await.text, "sharedqx");
    gone(second).await;
    get(&api, shared["url"].as_str().unwrap()).await.expect_problem(404, "not_found");
    server.terminate(STOP).await.unwrap();
}

async fn m8_a_purged_agent_leaves_no_file(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let settings = json!({"provider": "scripted", "system_prompt": "markpromptqx"});
    let id = agent(&api, "gone", settings).await;
    let room = room_of(&api, &[id]).await;
    for run in runs_of(&post_body(&api, room, json!({"text": "hello"})).await.expect_status(202)) {
        wait_for_end(&api, run).await;
    }
    let data = binary.launch.data_dir.clone();
    let home = data.join("agents").join(id.to_string());
    fs::write(home.join("conversation.jsonl"), "markpromptqx").unwrap();
    assert_eq!(delete(&api, &format!("/api/agents/{id}?purge=true")).await.status, 204);
    within("the erasure", async {
        while home.exists() || !DatabaseDump::read(&database).await.tables_with("markpromptqx", &[]).is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let history = get(&api, &format!("/api/rooms/{room}/messages")).await;
    assert!(history.text.contains("hello"), "its messages stay: {history:?}");
    get(&api, "/api/runs").await.expect_status(200);
    server.terminate(STOP).await.unwrap();
}
