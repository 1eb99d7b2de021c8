//! Skill import and export: archives, and the data folder.

use super::requests::{ApiResponse, get, post, response_to};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: export_can_be_imported, servers_of_an_archive_are_disabled, invalid_archives_are_rejected;
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

/// The importer has not reviewed what the servers of an archive would start.
async fn servers_of_an_archive_are_disabled(api: &TestClient) {
    let server = json!({"command": "x", "args": ["-y"]});
    let spec = json!({"name": "greet", "description": "Greets", "body": "Hi", "mcp_servers": {"files": server}});
    post(api, "/api/skills", &spec).await.expect_status(201);
    let archive = export(api, "/api/skills/greet/export").await;
    let imported = import(api, "?replace=true", archive).await.expect_status(201);
    assert_eq!(imported["mcp_servers"]["files"]["disabled"], true, "{imported}");
    assert_eq!(imported["mcp_servers"]["files"]["command"], "x");
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
