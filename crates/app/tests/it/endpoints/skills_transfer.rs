//! Skill import and export: archives, and the data folder.

use super::requests::{
    ApiResponse, RoomFollower, agent, data, get, journal, post, post_text, response_to, room_of, wait_for_end,
};
use domain::event::EventType;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: export_can_be_imported, m3_what_an_imported_skill_asks_for_is_off_until_accepted, invalid_archives_are_rejected;
    database: skill_folders_are_listed_and_imported;
}

async fn import(api: &TestClient, query: &str, bytes: Vec<u8>) -> ApiResponse {
    let request = api.request(Method::POST, &format!("/api/skills/import{query}"));
    response_to(request.header("content-type", "application/zip").body(bytes)).await
}

async fn export(api: &TestClient, path: &str) -> Vec<u8> {
    let response = api.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/zip");
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"greet.zip\"");
    response.bytes().await.unwrap().to_vec()
}

async fn export_can_be_imported(api: &TestClient) {
    let spec = json!({"name": "greet", "display_name": "Greeting", "description": "Use when: greeting", "label": "1.10",
                      "body": "Say {{word}} — ```x```\n", "category": "manners", "license": "MIT",
                      "metadata": {"author": "ann"}, "tools": {"allow": [], "ask": ["Write"], "deny": ["Bash"]},
                      "parameters": [{"name": "word", "type": "choice", "choices": ["hi", "true"], "default": "hi",
                                      "required": false, "description": "which: one"}],
                      "mcp_servers": {"files": {"command": "x", "args": ["-y"], "env": {"A": "${A}"},
                                            "disabled": true}}});
    let made = post(api, "/api/skills", &spec).await.expect_status(201);
    let file = api.request(Method::PUT, "/api/skills/greet/files/scripts%2Frun.sh?executable=true");
    response_to(file.body(vec![0_u8, 159, 146, 150])).await.expect_status(200);
    let archive = export(api, "/api/skills/greet/export").await;
    import(api, "", archive.clone()).await.expect_problem(409, "conflict");
    let replaced = import(api, "?replace=true", archive.clone()).await.expect_status(201);
    assert_eq!((&replaced["version"], &replaced["id"]), (&json!(3), &made["id"]));
    response_to(api.request(Method::DELETE, "/api/skills/greet")).await.expect_status(204);
    let back = import(api, "", archive.clone()).await.expect_status(201);
    for (key, value) in spec.as_object().unwrap() {
        assert_eq!(&back[key], value, "{key}");
    }
    assert_eq!(back["files"], json!([{"path": "scripts/run.sh", "bytes": 4, "executable": true}]));
    assert_eq!(export(api, "/api/skills/greet/export").await, archive, "exports must be reproducible");
    let first = export(api, "/api/skills/greet/export?version=1").await;
    assert_eq!(first, archive);
    get(api, "/api/skills/greet/export?version=9").await.expect_problem(404, "not_found");
}

/// An archive once approved its own tools: a message that invoked its skill ran commands unasked.
async fn m3_what_an_imported_skill_asks_for_is_off_until_accepted(api: &TestClient) {
    let server = json!({"command": "sh", "args": ["-c", "id"]});
    let spec = json!({"name": "greet", "description": "Greets", "body": "!ask Bash {\"cmd\":\"id\"}",
                      "mcp_servers": {"files": server}, "tools": {"allow": ["*"]}});
    let made = post(api, "/api/skills", &spec).await.expect_status(201);
    assert_eq!(made["review"], Value::Null, "what a person writes here needs no review");
    let script = api.request(Method::PUT, "/api/skills/greet/files/scripts%2Frun.sh");
    response_to(script.body("id")).await.expect_status(200);
    let archive = export(api, "/api/skills/greet/export").await;
    response_to(api.request(Method::DELETE, "/api/skills/greet")).await.expect_status(204);
    let imported = import(api, "", archive.clone()).await.expect_status(201);
    let asked = json!({"tools": ["*"], "mcp_servers": [{"name": "files", "target": "sh -c id"}],
                       "scripts": ["scripts/run.sh"]});
    assert_eq!(imported["review"], asked);
    assert_eq!(get(api, "/api/skills").await.expect_status(200)["skills"][0]["needs_review"], true);

    // The skill is invoked by a person: it may say what it likes, and every tool is asked for.
    let ada = agent(api, "Ada", json!({"skills": ["greet"]})).await;
    let room = room_of(api, &[ada]).await;
    let view = get(api, &format!("/api/agents/{ada}/effective")).await.expect_status(200);
    assert_eq!(view["servers"], json!([]), "{view}");
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "/greet !ask Bash {}").await;
    let notice = data(&follower.until_kind(EventType::Status, run).await);
    assert_eq!(notice["status"], "skill_not_accepted", "{notice}");
    assert!(notice["message"].as_str().unwrap().contains("/api/skills/greet/accept"), "{notice}");
    wait_for_end(api, run).await;

    let accept = "/api/skills/greet/accept";
    post(api, accept, &json!({"version": 7})).await.expect_problem(409, "conflict");
    post(api, accept, &json!({})).await.expect_problem(400, "invalid_request");
    post(api, "/api/skills/nothing/accept", &json!({"version": 1})).await.expect_problem(404, "not_found");
    for _ in 0..2 {
        let accepted = post(api, accept, &json!({"version": 1})).await.expect_status(200);
        assert_eq!(accepted["review"], Value::Null);
    }
    let view = get(api, &format!("/api/agents/{ada}/effective")).await.expect_status(200);
    assert_eq!(view["servers"][0]["name"], "files", "{view}");
    let run = post_text(api, room, "/greet").await;
    wait_for_end(api, run).await;
    let told = journal(api, room).await;
    let notices = told.iter().filter(|event| event.run_id == Some(run) && event.kind == EventType::Status);
    assert!(notices.into_iter().all(|event| data(event)["status"] != "skill_not_accepted"));

    // The next import is somebody else's text again.
    let again = import(api, "?replace=true", archive).await.expect_status(201);
    assert_eq!(again["review"], asked);
}

async fn invalid_archives_are_rejected(api: &TestClient) {
    for bytes in [b"".to_vec(), b"not a zip".to_vec(), b"PK\x05\x06".repeat(10)] {
        let refused = import(api, "", bytes).await.expect_problem(422, "unprocessable");
        assert!(refused["detail"].as_str().unwrap().contains("zip"), "{refused}");
    }
    for folder in ["nothing", "..", "%2Fetc", "a%2Fb"] {
        import(api, &format!("?folder={folder}"), Vec::new()).await.expect_problem(404, "not_found");
    }
    import(api, "", vec![0; 3 * 1024 * 1024]).await.expect_problem(413, "payload_too_large");
    assert_eq!(get(api, "/api/skills").await.expect_status(200)["skills"], json!([]));
}

async fn skill_folders_are_listed_and_imported(database: TestDatabase) {
    let skills = database.folder().join("skills");
    let server = TestServer::start(database).await;
    let api = server.api();
    for (name, text) in [("review", "---\nname: review\ndescription: Looks\n---\nLook."), ("broken", "no frontmatter")]
    {
        fs::create_dir_all(skills.join(name).join(".git")).unwrap();
        fs::write(skills.join(name).join("SKILL.md"), text).unwrap();
        fs::write(skills.join(name).join("notes.md"), "n").unwrap();
        fs::write(skills.join(name).join(".git/config"), "secret").unwrap();
    }
    let folders = get(api, "/api/skills").await.expect_status(200)["folders"].clone();
    let expected = json!([{"name": "broken", "description": null}, {"name": "review", "description": "Looks"}]);
    assert_eq!(folders, expected);
    let taken = import(api, "?folder=review", Vec::new()).await.expect_status(201);
    assert_eq!((&taken["body"], taken["files"].as_array().unwrap().len()), (&json!("Look."), 1));
    let refused: Value = import(api, "?folder=broken", Vec::new()).await.expect_problem(422, "unprocessable");
    assert!(refused["findings"].as_array().unwrap().iter().any(|finding| finding["pointer"] == "/description"));
    server.finish().await;
}
