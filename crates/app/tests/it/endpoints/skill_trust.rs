//! The skills of a project's own folders: off until a person trusts exactly what is there.

use super::requests::{data, delete, get, journal, message_of, post, post_and_wait};
use crate::direct::DirectFixture;
use domain::{event::EventType, ids::RoomId};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};
use testkit::database::TestDatabase;

on_both_databases! {
    database: skills_of_a_project_are_used_once_they_are_trusted;
}

fn write_skill(folder: &Path, path: &str, text: &str) {
    let folder = folder.join(path);
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    // What it asks for beyond Agent Skills is not given to it.
    let front = format!("---\nname: {name}\ndescription: About {name}.\nallowed-tools: Bash\n---\n");
    fs::write(folder.join("SKILL.md"), format!("{front}{text}\n")).unwrap();
}

/// The notices about skills in the room, in order.
async fn notices(fixture: &DirectFixture, room: RoomId) -> Vec<String> {
    let events = journal(fixture.api(), room).await;
    let statuses = events.iter().filter(|event| event.kind == EventType::Status);
    statuses.map(|event| data(event)["status"].as_str().unwrap().to_owned()).collect()
}

async fn skills_of_a_project_are_used_once_they_are_trusted(database: TestDatabase) {
    let fixture = DirectFixture::open_with(database, "test-key").await;
    let api = fixture.api();
    let room = fixture.room("anthropic", json!({})).await;
    let path = format!("/api/rooms/{room}/skill-trust");
    let none = get(api, &path).await.expect_status(200);
    assert_eq!((&none["state"], &none["digest"], &none["skills"]), (&json!("none"), &Value::Null, &json!([])));
    post(api, &path, &json!({"digest": "0".repeat(64)})).await.expect_problem(422, "unprocessable");

    let folder: PathBuf = fixture.data_folder().join("rooms").join(room.to_string());
    write_skill(&folder, ".claude/skills/review", "Look for PLUGH.");
    write_skill(&folder, ".agents/skills/test", "Run the tests.");
    fs::write(folder.join(".agents/skills/test/cases.txt"), "1").unwrap();
    let seen = get(api, &path).await.expect_status(200);
    assert_eq!(seen["state"], "untrusted");
    let skills: Vec<_> = seen["skills"].as_array().unwrap().iter().map(|skill| &skill["path"]).collect();
    assert_eq!(skills, [".claude/skills/review", ".agents/skills/test"]);
    assert_eq!(seen["skills"][1]["files"], json!(["cases.txt"]));
    assert!(seen["skills"][0]["document"].as_str().unwrap().contains("PLUGH"), "{seen}");

    // Untrusted: the model hears nothing of them, and people are told.
    fixture.answer_to(room, "hello").await;
    assert!(!fixture.last_request_text().contains("About review."));
    assert_eq!(notices(&fixture, room).await, ["skills_untrusted"]);

    // Trusted: the model has them, and can load one.
    post(api, &path, &json!({"digest": "0".repeat(64)})).await.expect_problem(409, "conflict");
    let trusted = post(api, &path, &json!({"digest": seen["digest"]})).await.expect_status(200);
    assert_eq!((&trusted["state"], &trusted["digest"]), (&json!("trusted"), &seen["digest"]));
    assert!(trusted["trusted_at"].is_string() || trusted["trusted_at"].is_number(), "{trusted}");
    let run = post_and_wait(api, room, "!call skill {\"name\":\"review\"}").await;
    let text = message_of(api, &run).await.text;
    assert!(text.contains("Look for PLUGH."), "{text}");
    let request = fixture.last_request_text();
    assert!(request.contains("About review.") && request.contains("About test."), "{request}");
    assert!(!text.contains("allowed-tools"), "{text}");
    assert_eq!(notices(&fixture, room).await.len(), 1, "nothing more is said");

    // A change of any file needs new trust; the digest of before does not give it.
    fs::write(folder.join(".agents/skills/test/cases.txt"), "2").unwrap();
    assert_eq!(get(api, &path).await.expect_status(200)["state"], "untrusted");
    post(api, &path, &json!({"digest": seen["digest"]})).await.expect_problem(409, "conflict");
    fixture.answer_to(room, "and now?").await;
    assert!(!fixture.last_request_text().contains("About review."));
    assert_eq!(notices(&fixture, room).await, ["skills_untrusted", "skills_untrusted"]);

    // Back to the content that was trusted, then revoked.
    fs::write(folder.join(".agents/skills/test/cases.txt"), "1").unwrap();
    assert_eq!(get(api, &path).await.expect_status(200)["state"], "trusted");
    assert_eq!(delete(api, &path).await.status, 204);
    assert_eq!(get(api, &path).await.expect_status(200)["state"], "untrusted");
    let audit = get(api, "/api/audit?limit=20").await.expect_status(200).to_string();
    assert!(audit.contains("project_skills"), "{audit}");
    fixture.close().await;
}
