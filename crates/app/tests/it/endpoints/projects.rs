//! Projects through the API: what a sandbox enforces is said in every answer, rooms work in the project's folder, and a
//! deleted project takes its rooms and its files with it.

use super::{
    binary::Binary,
    requests::{agent, delete, get, post, post_body, response_to, runs_of, wait_for_end, within},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use testkit::{client::TestClient, database::TestDatabase, database_dump::DatabaseDump};
use tokio::time::sleep;

on_both_databases! {
    database: a_project_says_what_its_sandbox_enforces, a_project_is_deleted_with_its_rooms_and_files;
}

const STOP: Duration = Duration::from_secs(30);

async fn project(api: &TestClient, body: Value) -> (String, Value) {
    let created = post(api, "/api/projects", &body).await.expect_status(201);
    (created["id"].as_str().unwrap().to_owned(), created)
}

async fn token(binary: &Binary, user: &str, workspace: &str, role: &str) -> String {
    let arguments = ["token", "create", "--user", user, "--workspace", workspace, "--role", role, "--scopes", "all"];
    binary.run_command(&arguments).await.stdout.trim().to_owned()
}

async fn a_project_says_what_its_sandbox_enforces(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LIMITS__PROJECTS_PER_WORKSPACE", "3");
    let (member, viewer, stranger) = (
        token(&binary, "mem", "local", "member").await,
        token(&binary, "vic", "local", "viewer").await,
        token(&binary, "sue", "elsewhere", "owner").await,
    );
    let (server, api) = binary.serve().await;
    let member = api.clone().with_token(member);
    let (id, created) =
        project(&member, json!({"name": "site", "network": {"allow": ["PyPI.org"]}, "limits": {"files": 9}})).await;
    let isolation = &created["isolation"];
    assert_eq!(
        (&isolation["tier"], &isolation["file"], &isolation["network"]),
        (&json!("native"), &json!("full"), &json!("full"))
    );
    assert!(isolation["warnings"].is_array() && isolation["pids"].is_string(), "{created}");
    assert_eq!((&created["sandbox"], &created["folder"]), (&json!("auto"), &Value::Null));
    assert_eq!(created["network"]["allow"], json!(["pypi.org"]));
    let path = format!("/api/projects/{id}");
    assert_eq!(get(&api, &path).await.expect_status(200), created);
    assert_eq!(get(&api, "/api/projects").await.expect_status(200)["projects"], json!([created]));

    // Whatever weakens the isolation, or reaches beyond the data folder, is the operator's choice.
    for weak in ["none", "landlock"] {
        let body = json!({"name": "weak", "sandbox": weak});
        post(&member, "/api/projects", &body).await.expect_problem(403, "operator_only");
        let change = member.request(Method::PATCH, &path).json(&json!({"sandbox": weak}));
        response_to(change).await.expect_problem(403, "operator_only");
    }
    let checkout = tempfile::tempdir().unwrap();
    let folder = checkout.path().to_str().unwrap();
    post(&member, "/api/projects", &json!({"name": "mine", "folder": folder}))
        .await
        .expect_problem(403, "operator_only");
    let data = binary.launch.data_dir.to_str().unwrap().to_owned();
    for bad in [data.as_str(), "/", "relative", "/nowhere/at/all"] {
        post(&api, "/api/projects", &json!({"name": "bad", "folder": bad})).await.expect_problem(422, "unprocessable");
    }
    let (open, shown) = project(&api, json!({"name": "open", "sandbox": "none", "folder": folder})).await;
    assert_eq!((&shown["isolation"]["tier"], &shown["isolation"]["file"]), (&json!("none"), &json!("none")));
    assert!(shown["isolation"]["warnings"][0].as_str().unwrap().starts_with("No isolation"), "{shown}");
    // Nobody configured Docker here, and nothing weaker is taken instead.
    post(&api, "/api/projects", &json!({"name": "d", "sandbox": "docker"})).await.expect_problem(422, "unprocessable");
    for wrong in [
        json!({"name": "x", "network": {"allow": ["10.0.0.1"]}}),
        json!({"name": "x", "sandbox": "chroot"}),
        json!({"name": "x", "tier": "native"}),
    ] {
        post(&api, "/api/projects", &wrong).await.expect_problem(400, "invalid_request");
    }
    for limits in [json!({"files": 0}), json!({"processes": 1_000_000_000})] {
        let wrong = json!({"name": "x", "limits": limits});
        post(&api, "/api/projects", &wrong).await.expect_problem(422, "unprocessable");
    }
    let change = member.request(Method::PATCH, &path).json(&json!({"name": "page", "network": {"allow": []}}));
    let changed = response_to(change).await.expect_status(200);
    assert_eq!((&changed["name"], &changed["network"]["allow"]), (&json!("page"), &json!([])));
    assert_eq!(changed["limits"], json!({"files": 9}), "what is not named stays");

    // A stranger sees nothing, a viewer changes nothing.
    let stranger = api.clone().with_token(stranger);
    get(&stranger, &path).await.expect_problem(404, "not_found");
    delete(&stranger, &path).await.expect_problem(404, "not_found");
    let room = json!({"name": "spy", "project_id": id});
    post(&stranger, "/api/rooms", &room).await.expect_problem(422, "unprocessable");
    let viewer = api.clone().with_token(viewer);
    get(&viewer, &path).await.expect_status(200);
    post(&viewer, "/api/projects", &json!({"name": "v"})).await.expect_problem(403, "forbidden");

    let keyed =
        || api.request(Method::POST, "/api/projects").header("idempotency-key", "k").json(&json!({"name": "once"}));
    let first = response_to(keyed()).await.expect_status(201);
    assert_eq!(response_to(keyed()).await.expect_status(201)["id"], first["id"]);
    post(&api, "/api/projects", &json!({"name": "fourth"})).await.expect_problem(422, "unprocessable");
    let entries = get(&api, "/api/audit?object=project").await.expect_status(200);
    let detail = entries["entries"].as_array().unwrap().iter().find(|entry| entry["object_id"] == open.as_str());
    assert_eq!(detail.unwrap()["detail"]["sandbox"], "none", "{entries}");
    server.terminate(STOP).await.unwrap();
}

async fn a_project_is_deleted_with_its_rooms_and_files(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let data = binary.launch.data_dir.clone();
    let (id, _) = project(&api, json!({"name": "markprojectqx"})).await;
    let agent = agent(&api, "worker", json!({"provider": "scripted"})).await;
    let mut rooms = Vec::new();
    for name in ["one", "two"] {
        let room = json!({"name": name, "agents": [agent], "project_id": id});
        let room = post(&api, "/api/rooms", &room).await.expect_status(201);
        assert_eq!(room["project_id"], id.as_str());
        rooms.push(room["id"].as_str().unwrap().parse().unwrap());
    }
    let file = api.request(Method::POST, "/api/uploads?name=markfileqx.txt").body("content");
    let upload = response_to(file).await.expect_status(201);
    let attachment = json!({"name": "x", "media_type": "text/plain", "url": upload["url"]});
    let posted = post_body(&api, rooms[0], json!({"text": "look", "attachments": [attachment]})).await;
    for run in runs_of(&posted.expect_status(202)) {
        wait_for_end(&api, run).await;
    }
    let folder = data.join("projects").join(&id).join("workspace");
    assert!(
        folder.join("attachments").is_dir() || fs::read_dir(&folder).unwrap().count() > 0,
        "the attachment is there"
    );
    assert!(!data.join("rooms").join(rooms[0].to_string()).exists(), "the room has no folder of its own");

    let patch = api.request(Method::PATCH, &format!("/api/rooms/{}", rooms[0])).json(&json!({"project_id": null}));
    response_to(patch).await.expect_problem(400, "invalid_request");
    post_body(&api, rooms[1], json!({"text": "!hang"})).await.expect_status(202);
    assert_eq!(delete(&api, &format!("/api/projects/{id}")).await.status, 204, "its runs are cancelled first");
    for path in [format!("/api/projects/{id}"), format!("/api/rooms/{}", rooms[0]), format!("/api/rooms/{}", rooms[1])]
    {
        get(&api, &path).await.expect_problem(404, "not_found");
    }
    let room = json!({"name": "late", "project_id": id});
    post(&api, "/api/rooms", &room).await.expect_problem(422, "unprocessable");
    assert!(folder.exists(), "within the grace period");
    assert_eq!(delete(&api, &format!("/api/projects/{id}?purge=true")).await.status, 204);
    within("the erasure", async {
        loop {
            let dump = DatabaseDump::read(&database).await;
            let left = ["markprojectqx", "markfileqx"].iter().any(|text| !dump.tables_with(text, &[]).is_empty());
            let has_ids = rooms
                .iter()
                .any(|room: &domain::ids::RoomId| !dump.tables_with_id(room.0, &["audit", "erasures"]).is_empty());
            if !left && !has_ids && !data.join("projects").join(&id).exists() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;

    // An existing folder of the machine is not the server's to erase.
    let checkout = tempfile::tempdir().unwrap();
    fs::write(checkout.path().join("mine"), "kept").unwrap();
    let (id, _) = project(&api, json!({"name": "own", "folder": checkout.path()})).await;
    assert_eq!(delete(&api, &format!("/api/projects/{id}?purge=true")).await.status, 204);
    within("the erasure", async {
        let path = "/api/audit?action=erase&object=project";
        loop {
            let erased = get(&api, path).await.expect_status(200);
            if erased["entries"].as_array().unwrap().iter().any(|entry| entry["object_id"] == id.as_str()) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(fs::read_to_string(checkout.path().join("mine")).unwrap(), "kept");
    server.terminate(STOP).await.unwrap();
}
