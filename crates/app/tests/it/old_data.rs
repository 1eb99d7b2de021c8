//! A data folder that an earlier version wrote, opened by this one.
//!
//! `fixtures/make-data-folder.py` made it with the binary of commit b326654, and killed that server while runs were
//! running, waiting and queued. `manifest.json` in the archive has what the old server returned, and its tokens.

use crate::endpoints::{
    requests::{
        RoomFollower, data, get, journal, message_of, post, post_and_wait, post_body, runs_of, wait_for_end, within,
    },
    search::search_until,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command, str::FromStr, time::Duration};
use tempfile::TempDir;
use testkit::{
    client::{ServerLaunch, TestClient, TestServerProcess},
    server::assert_old_journal_valid,
};

const STOP: Duration = Duration::from_secs(30);
/// What recovery and queued runs change in a room that was busy.
const CHANGED_IN_A_BUSY_ROOM: &[&str] = &["head", "updated_at", "busy", "waiting", "last_message"];

struct OldFolder {
    folder: TempDir,
    manifest: Value,
}

impl OldFolder {
    fn unpack(archive: &str) -> Self {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(archive);
        let folder = tempfile::tempdir().unwrap();
        let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).output().unwrap();
        assert!(unpacked.status.success(), "{}", String::from_utf8_lossy(&unpacked.stderr));
        let manifest = fs::read_to_string(folder.path().join("manifest.json")).unwrap();
        Self { folder, manifest: serde_json::from_str(&manifest).unwrap() }
    }

    /// Starts this version's binary on the folder. The client has the old token.
    async fn serve(&self) -> (TestServerProcess, TestClient) {
        let launch = ServerLaunch::new(env!("CARGO_BIN_EXE_greenroom"), self.folder.path().join("data"));
        let server = within("the server to start", launch.start()).await.unwrap();
        let api = TestClient::new(server.base_url()).unwrap().with_token(text(&self.manifest["token"]));
        (server, api)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

fn id<T: FromStr>(value: &Value) -> T {
    text(value).parse().unwrap_or_else(|_| panic!("not an id: {value}"))
}

fn bytes(base64: &Value) -> Vec<u8> {
    STANDARD.decode(text(base64)).unwrap()
}

/// Asserts that the new value has everything that the old one had. It may have more fields.
#[track_caller]
fn assert_kept(new: &Value, old: &Value) {
    if let Some(path) = difference(new, old) {
        panic!("{path:?} is different\nold: {old:#}\nnew: {new:#}");
    }
}

/// The path to the first value of `old` that is another one in `new`. A missing field equals `null`.
fn difference(new: &Value, old: &Value) -> Option<String> {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old.iter().find_map(|(key, old)| {
            let path = difference(new.get(key).unwrap_or(&Value::Null), old)?;
            Some(format!("/{key}{path}"))
        }),
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => {
            new.iter().zip(old).enumerate().find_map(|(index, (new, old))| {
                let path = difference(new, old)?;
                Some(format!("/{index}{path}"))
            })
        }
        _ => (new != old).then(String::new),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_of_b326654_opens_and_goes_on() {
    let old = OldFolder::unpack("data-b326654.tar.gz");
    let (manifest, rooms) = (&old.manifest, list(&old.manifest["rooms"]));
    let (server, api) = old.serve().await;
    assert_accounts_are_kept(&api, manifest).await;
    assert_unfinished_runs_end(&api, manifest).await;
    assert_runs_are_kept(&api, manifest).await;
    let listed = get(&api, "/api/rooms?limit=1000").await.expect_status(200);
    assert_eq!(list(&listed["rooms"]).len(), rooms.len());
    for room in rooms {
        assert_room_is_kept(&api, room).await;
    }
    get(&api, &format!("/api/rooms/{}", text(&manifest["deleted_room"]))).await.expect_problem(404, "not_found");
    assert_old_messages_are_found(&api, rooms).await;
    for room in rooms {
        assert_room_answers(&api, room).await;
    }
    assert!(server.terminate(STOP).await.unwrap().success());

    // The folder stays usable after a start and a stop of this version.
    let (server, api) = old.serve().await;
    for status in RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
        let left = get(&api, &format!("/api/runs?status={status}")).await.expect_status(200);
        assert_eq!(left["runs"], json!([]));
    }
    for room in rooms {
        assert_old_journal_valid(&journal(&api, id(&room["room"]["id"])).await);
        assert_room_answers(&api, room).await;
    }
    assert!(server.terminate(STOP).await.unwrap().success());
}

async fn assert_accounts_are_kept(api: &TestClient, manifest: &Value) {
    let anonymous = TestClient::new(api.base_url()).unwrap();
    get(&anonymous, "/api/rooms").await.expect_problem(401, "unauthorized");
    let revoked = anonymous.clone().with_token(text(&manifest["revoked_token"]));
    get(&revoked, "/api/rooms").await.expect_problem(401, "unauthorized");
    let tokens = get(api, "/api/tokens").await.expect_status(200);
    assert!(list(&tokens["tokens"]).iter().any(|token| token["name"] == "laptop"), "{tokens}");

    let other = anonymous.with_token(text(&manifest["other_token"]));
    let hers = get(&other, "/api/rooms").await.expect_status(200);
    let ids: Vec<&Value> = list(&hers["rooms"]).iter().map(|room| &room["id"]).collect();
    assert_eq!(ids, [&manifest["other_room"]]);
    let room: RoomId = id(&manifest["other_room"]);
    get(api, &format!("/api/rooms/{room}")).await.expect_problem(404, "not_found");
    assert_old_journal_valid(&journal(&other, room).await);
    assert_eq!(post_and_wait(&other, room, "!count 3").await.status, RunStatus::Completed);

    let agents = get(api, "/api/agents").await.expect_status(200);
    assert_kept(&agents["agents"], &manifest["agents"]);
    get(api, &format!("/api/agents/{}", text(&manifest["deleted_agent"]))).await.expect_problem(404, "not_found");
}

/// They are indexed in the background after the upgrade.
async fn assert_old_messages_are_found(api: &TestClient, rooms: &[Value]) {
    let has_words = |message: &&Value| text(&message["text"]).chars().any(char::is_alphabetic);
    let messages: Vec<&Value> =
        rooms.iter().filter_map(|room| list(&room["messages"]).iter().find(has_words)).collect();
    assert!(!messages.is_empty());
    for message in messages {
        let query: String = text(&message["text"]).chars().take(40).collect();
        within("an old message to be found", async {
            loop {
                let hits = search_until(api, &[("q", &query), ("in", "messages"), ("limit", "100")], 1).await;
                if hits.iter().any(|hit| hit["id"] == message["id"]) {
                    return;
                }
            }
        })
        .await;
    }
}

/// Started runs are interrupted and not repeated; queued runs are executed.
async fn assert_unfinished_runs_end(api: &TestClient, manifest: &Value) {
    let unfinished = manifest["unfinished"].as_object().unwrap();
    assert!(["running", "waiting_for_approval", "queued"].iter().all(|was| unfinished.values().any(|run| run == was)));
    for (run, was) in unfinished {
        let run: RunId = run.parse().unwrap();
        if manifest["hangs_again"] == run.to_string() {
            let room = api.run(run).await.unwrap().room_id;
            RoomFollower::start(api, room).await.first_delta(run).await;
            assert_eq!(api.cancel_run(run).await.unwrap().status, RunStatus::Cancelled);
            continue;
        }
        let ended = wait_for_end(api, run).await;
        if was == "queued" {
            assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
            assert_eq!(message_of(api, &ended).await.text, "1 2 3");
        } else {
            assert_eq!(ended.status, RunStatus::Interrupted, "{ended:?}");
            let events = journal(api, ended.room_id).await;
            let end = events.iter().rfind(|event| event.run_id == Some(run)).unwrap();
            assert_eq!((end.kind, &data(end)["reason"]), (EventType::RunInterrupted, &json!("crash")));
            let starts = events.iter().filter(|event| event.kind == EventType::RunStarted && event.run_id == Some(run));
            assert_eq!(starts.count(), 1, "the run must not be repeated");
        }
    }
}

async fn assert_runs_are_kept(api: &TestClient, manifest: &Value) {
    let found = get(api, "/api/runs?limit=1000").await.expect_status(200);
    let (found, old) = (list(&found["runs"]), list(&manifest["runs"]));
    assert_eq!(found.len(), old.len());
    for old in old.iter().filter(|run| manifest["unfinished"].get(text(&run["id"])).is_none()) {
        let new = found.iter().find(|run| run["id"] == old["id"]);
        assert_kept(new.unwrap_or_else(|| panic!("{old} is lost")), old);
    }
    let usage = get(api, text(&manifest["usage"]["path"])).await.expect_status(200);
    for old in list(&manifest["usage"]["series"]) {
        let new = list(&usage["series"]).iter().find(|series| series["key"] == old["key"]);
        assert_kept(new.unwrap_or_else(|| panic!("{old} is lost")), old);
    }
}

/// Asserts that the journal begins with the old events and goes on without a gap, and that no message has changed.
async fn assert_room_is_kept(api: &TestClient, old: &Value) {
    let room: RoomId = id(&old["room"]["id"]);
    let found = get(api, &format!("/api/rooms/{room}")).await.expect_status(200);
    let mut expected = old["room"].clone();
    if old["room"]["busy"] == true {
        expected.as_object_mut().unwrap().retain(|key, _| !CHANGED_IN_A_BUSY_ROOM.contains(&key.as_str()));
    }
    assert_kept(&found, &expected);

    let (events, old_events) = (journal(api, room).await, list(&old["events"]));
    assert_old_journal_valid(&events);
    assert_eq!((&found["head"], &old["head"]), (&json!(events.len()), &json!(old_events.len())));
    assert!(events.len() >= old_events.len(), "events are lost");
    for (event, old) in events.iter().zip(old_events) {
        assert_kept(&serde_json::from_str(&event.json).unwrap(), old);
    }
    let (epoch, head) = (text(&old["epoch"]), old_events.len());
    let after = get(api, &format!("/api/rooms/{room}/events?after={epoch}-{head}")).await.expect_status(200);
    assert_eq!(list(&after["events"]).len(), events.len() - head, "an old position must be valid");

    let history = get(api, &format!("/api/rooms/{room}/messages?limit=1000")).await.expect_status(200);
    let (messages, old_messages) = (list(&history["messages"]), list(&old["messages"]));
    for old in old_messages {
        let new = messages.iter().find(|message| message["id"] == old["id"]);
        let new = new.unwrap_or_else(|| panic!("{old} is lost"));
        if old["status"] == "streaming" {
            assert_eq!((&new["status"], &new["text"]), (&json!("partial"), &old["text"]));
            let open_calls = list(&new["parts"]).iter().filter(|part| part["type"] == "tool");
            open_calls.for_each(|call| assert_eq!(call["result"]["is_error"], true, "{call}"));
        } else {
            // This version puts a paragraph between the texts before and after a tool call.
            assert_eq!(text(&new["text"]).replace("\n\n", ""), text(&old["text"]).replace("\n\n", ""));
            let mut expected = old.clone();
            expected["text"] = new["text"].clone();
            assert_kept(new, &expected);
        }
    }
    let later = events.iter().skip(head).filter(|event| event.kind == EventType::StreamStart).count();
    assert_eq!(messages.len(), old_messages.len() + later);
    assert!(messages.is_sorted_by_key(|message| message["seq"].as_u64()));
}

async fn assert_room_answers(api: &TestClient, old: &Value) {
    let posted = post_body(api, id(&old["room"]["id"]), json!({"text": "!count 3"})).await.expect_status(202);
    let runs = runs_of(&posted);
    assert_eq!(runs.len(), list(&old["room"]["agents"]).len());
    for run in runs {
        let run = wait_for_end(api, run).await;
        assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, "1 2 3"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_of_b326654_keeps_its_skills_mcp_servers_tools_and_uploads() {
    let old = OldFolder::unpack("data-b326654.tar.gz");
    let manifest = &old.manifest;
    let (server, api) = old.serve().await;
    let hanging: RunId = id(&manifest["hangs_again"]);
    api.cancel_run(hanging).await.unwrap();
    assert_skills_are_kept(&api, manifest).await;
    assert_mcp_servers_are_kept(&api, manifest).await;
    assert_tools_are_remembered(&api, manifest).await;
    assert_uploads_are_kept(&api, manifest, &old.folder.path().join("data")).await;
    assert!(server.terminate(STOP).await.unwrap().success());
}

async fn assert_skills_are_kept(api: &TestClient, manifest: &Value) {
    let skill = get(api, "/api/skills/greet").await.expect_status(200);
    assert_kept(&skill, &manifest["skill"]);
    for old in list(&manifest["skill_versions"]) {
        let version = get(api, &format!("/api/skills/greet/versions/{}", old["version"])).await.expect_status(200);
        assert_kept(&version, old);
    }
    for (path, content) in manifest["skill_files"].as_object().unwrap() {
        let file = get(api, &format!("/api/skills/greet/files/{}", path.replace('/', "%2F"))).await;
        assert_eq!((file.status, file.text.as_bytes()), (200, bytes(content).as_slice()), "{path}");
    }
    assert_kept(&get(api, "/api/skills").await.expect_status(200)["folders"], &manifest["skill_folders"]);
    let training = get(api, "/api/skills/greet/training").await.expect_status(200);
    assert_kept(&training, &manifest["skill_training"]);

    // The open proposal becomes the next version, and a message can invoke it.
    let proposals = list(&training["proposals"]);
    let open = proposals.iter().find(|proposal| proposal["status"] == "open").unwrap();
    let accept = format!("/api/skills/greet/training/proposals/{}/accept", text(&open["id"]));
    let accepted = post(api, &accept, &json!({})).await.expect_status(200);
    assert_eq!(accepted["accepted_version"].as_u64(), skill["version"].as_u64().map(|version| version + 1));
    let room = id(&training["rooms"][0]["room_id"]);
    let run = post_and_wait(api, room, "/greet word=servus").await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    assert!(message_of(api, &run).await.text.contains("Say servus."), "the prompt must have the new version");
}

async fn assert_mcp_servers_are_kept(api: &TestClient, manifest: &Value) {
    let listed = get(api, "/api/mcp-servers").await;
    assert_kept(&listed.expect_status(200)["servers"], &manifest["mcp_servers"]);
    let is_shown = |answer: &str| list(&manifest["secrets"]).iter().any(|secret| answer.contains(text(secret)));
    assert!(!is_shown(&listed.text), "{listed:?}");

    // The header's value is still the old one: an import of the same is no change, of another one it is.
    let mut import = manifest["mcp_import"].clone();
    let same = post(api, "/api/mcp-servers/import", &import).await.expect_status(200);
    assert_eq!(same["servers"][0]["outcome"], "unchanged", "{same}");
    import["mcpServers"]["hub"]["headers"]["authorization"] = json!("Bearer another");
    let another = post(api, "/api/mcp-servers/import", &import).await.expect_status(200);
    assert_eq!(another["servers"][0]["outcome"], "refused", "{another}");

    // The program still gets its key and tells the end of it.
    let tested = post(api, "/api/mcp-servers/local-tools/test", &json!({})).await;
    assert_eq!(tested.expect_status(200)["ok"], false, "it ends at once");
    assert!(tested.text.contains(text(&manifest["mcp_stderr"])), "{tested:?}");
    assert!(!is_shown(&tested.text), "{tested:?}");
}

async fn assert_tools_are_remembered(api: &TestClient, manifest: &Value) {
    let room: RoomId = id(&manifest["remembered_room"]);
    for (run, decision) in manifest["decided"].as_object().unwrap() {
        let run: RunId = run.parse().unwrap();
        let resolved = RoomFollower::start(api, room).await.until_kind(EventType::ApprovalResolved, run).await;
        assert_eq!(&data(&resolved)["decision"], decision);
    }
    let remembered = get(api, &format!("/api/rooms/{room}/remembered")).await.expect_status(200);
    assert_kept(&remembered["remembered"], &manifest["remembered"]);
    let tool = text(&manifest["remembered"][0]["tool"]);
    let run = post_and_wait(api, room, &format!("!ask {tool} {{}}")).await;
    assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, "allowed"));
    let events = journal(api, room).await;
    let mut of_run = events.iter().filter(|event| event.run_id == Some(run.id));
    assert!(of_run.all(|event| event.kind != EventType::ApprovalRequested), "the tool must not ask again");
}

async fn assert_uploads_are_kept(api: &TestClient, manifest: &Value, data_dir: &Path) {
    for old in list(&manifest["uploads"]) {
        let response = api.request(Method::GET, text(&old["url"])).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{old}");
        assert_eq!(response.bytes().await.unwrap(), bytes(&old["content"]), "{old}");
    }
    get(api, text(&manifest["deleted_upload"])).await.expect_problem(404, "not_found");

    // An old upload can be attached to a new message, and is delivered.
    let (room, upload) = (id::<RoomId>(&manifest["remembered_room"]), &manifest["uploads"][0]);
    let attachment = json!({"name": upload["name"], "media_type": upload["media_type"], "url": upload["url"]});
    let body = json!({"text": "Look", "attachments": [attachment]});
    let posted = post_body(api, room, body).await.expect_status(202);
    assert_eq!(posted["message"]["attachments"][0]["name"], upload["name"]);
    assert_eq!(wait_for_end(api, runs_of(&posted)[0]).await.status, RunStatus::Completed);
    let folder = data_dir.join("rooms").join(room.to_string()).join("attachments");
    let delivered = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path().join(text(&upload["name"]));
    assert_eq!(fs::read(delivered).unwrap(), bytes(&upload["content"]));
}
