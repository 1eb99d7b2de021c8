//! Sequences that others describe, from their beginning to their end: the life of a skill, and a room in which a person
//! interrupts. The others are in `described_run`, `described_chat` and `mcp_tools`.

use super::requests::{
    RoomFollower, agent, counted, data, delete, get, journal, message_of, post, post_and_wait, post_body, response_to,
    room_of, runs_of, wait_for_end, within,
};
use crate::direct::DirectFixture;
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};

on_both_databases! {
    server: room_with_an_interruption;
    database: skill_is_created_trained_synced_and_used;
}

async fn skill_is_created_trained_synced_and_used(database: TestDatabase) {
    let fixture = DirectFixture::open_with(database, "test-key").await;
    let api = fixture.api();
    // Created, in the words of another server.
    let new =
        json!({"name": "greet", "displayName": "Greeting", "description": "Greets people.", "skillmd": "Say hello."});
    let created = post(api, "/api/strapi/skills", &new).await.expect_status(201);
    let id = created["skill"]["id"].as_str().unwrap().to_owned();

    // Trained: a task, a rating, a proposal of the agent itself, accepted by a person.
    let trainee = agent(api, "trainee", json!({})).await;
    let room = post(api, "/api/skills/greet/training", &json!({"agent_id": trainee})).await.expect_status(201);
    let room = room["room_id"].as_str().unwrap().parse().unwrap();
    let first = message_of(api, &post_and_wait(api, room, "hello").await).await;
    let rating = json!({"message_id": first.id, "score": 2, "issues": ["too long"], "improvements": ["be brief"]});
    let rated = post(api, "/api/skills/greet/training/rounds", &rating).await.expect_status(201);
    assert_eq!((&rated["kind"], &rated["version"]), (&json!("rating"), &json!(1)));
    let answer = "Shorter:\n\n````skill\nSay PLUGH.\n````";
    let script = format!("!script {}", json!([{ "text": answer }]));
    let proposing = message_of(api, &post_and_wait(api, room, &script).await).await;
    let proposal = json!({"message_id": proposing.id, "note": "shorter"});
    let proposal = post(api, "/api/skills/greet/training/proposals", &proposal).await.expect_status(201);
    let accept = format!("/api/skills/greet/training/proposals/{}/accept", proposal["id"].as_str().unwrap());
    assert_eq!(post(api, &accept, &json!({})).await.expect_status(200)["accepted_version"], 2);
    let trained = get(api, "/api/skills/greet").await.expect_status(200);
    assert_eq!((&trained["version"], &trained["body"]), (&json!(2), &json!("Say PLUGH.\n")));
    assert!(trained["experience"].is_number(), "{trained}");

    // Synced: the other path and an archive for another server have the new version.
    let there = get(api, &format!("/api/strapi/skills/{id}")).await.expect_status(200);
    assert_eq!(there["skillmd"].as_str().unwrap().trim(), "Say PLUGH.");
    let archive = api.request(Method::GET, "/api/skills/greet/export").send().await.unwrap().bytes().await.unwrap();
    assert_eq!(delete(api, "/api/skills/greet").await.status, 204);
    let import =
        api.request(Method::POST, "/api/skills/import").header("content-type", "application/zip").body(archive);
    let imported = response_to(import).await.expect_status(201);
    assert_eq!(imported["body"].as_str().unwrap().trim(), "Say PLUGH.");

    // Used: by an agent that has it, and by a person who calls it.
    let room = fixture.room("anthropic", json!({"skills": ["greet"]})).await;
    let loaded = fixture.answer_to(room, "!call skill {\"name\":\"greet\"}").await;
    assert!(loaded.contains("Say PLUGH."), "{loaded}");
    fixture.answer_to(room, "/greet the guests").await;
    let request = fixture.last_request_text();
    assert!(request.contains("Use the skill") && request.contains("the guests"), "{request}");
    within("the figures of its use", async {
        loop {
            let usage = get(api, "/api/skills/greet").await.expect_status(200)["usage"].clone();
            if (&usage["offered"], &usage["invoked"]) == (&json!(2), &json!(1)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    fixture.close().await;
}

/// Two agents answer one after the other. A person speaks while the first does: its words so far are kept, the second
/// does not begin, and both answer the new message.
async fn room_with_an_interruption(api: &TestClient) {
    let (ada, bob) = (agent(api, "ada", json!({})).await, agent(api, "bob", json!({})).await);
    let room = room_of(api, &[ada, bob]).await;
    let mut follower = RoomFollower::start(api, room).await;
    let asked =
        post_body(api, room, json!({"text": "!count 5000 5", "when_busy": "interrupt"})).await.expect_status(202);
    let (first, second) = (runs_of(&asked)[0], runs_of(&asked)[1]);
    follower.until("words of the first agent", |event| event.kind == EventType::ContentDelta && event.seq > 15).await;
    let interrupting = json!({"text": "!count 3", "when_busy": "interrupt"});
    let answered = runs_of(&post_body(api, room, interrupting).await.expect_status(202));
    for run in &answered {
        assert_eq!(wait_for_end(api, *run).await.status, RunStatus::Completed);
    }
    assert_eq!(answered.len(), 2, "both answer the new message");

    let interrupted = api.run(first).await.unwrap();
    assert_eq!(interrupted.status, RunStatus::Interrupted);
    let kept = message_of(api, &interrupted).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    assert!(matches!(api.run(second).await.unwrap().status, RunStatus::Interrupted | RunStatus::Cancelled));
    let events = journal(api, room).await;
    let of = |run, kind| events.iter().filter(move |event| event.run_id == Some(run) && event.kind == kind);
    assert_eq!(of(second, EventType::RunStarted).count(), 0, "the second agent had not begun");
    let end = of(first, EventType::RunInterrupted).next().unwrap();
    assert_eq!(data(end)["reason"], "new_message");
    let begun = of(answered[0], EventType::RunStarted).next().unwrap();
    assert!(end.seq < begun.seq, "the old answer ends before the new one begins");
    // The room goes on: agents know what was said before the interruption.
    let next = post_body(api, room, json!({"text": "!count 2"})).await.expect_status(202);
    for run in runs_of(&next) {
        assert_eq!(wait_for_end(api, run).await.status, RunStatus::Completed);
    }
}
