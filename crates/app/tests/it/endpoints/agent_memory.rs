//! What agents remember: `memorize` and `recall` through the API, and what the end of a turn says about them.

use super::requests::{agent, data, get, journal, message_of, post_and_wait, room_of};
use domain::{event::EventType, ids::RoomId, run::RunStatus};
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: an_agent_remembers_across_rooms_and_the_end_of_the_turn_says_so, the_end_of_a_turn_lists_its_model_calls,
            a_note_has_a_limit;
}

async fn end_of_stream(api: &TestClient, room: RoomId) -> Value {
    let events = journal(api, room).await;
    data(events.iter().rfind(|event| event.kind == EventType::StreamEnd).unwrap())
}

async fn an_agent_remembers_across_rooms_and_the_end_of_the_turn_says_so(api: &TestClient) {
    let (ann, ben) = (agent(api, "Ann", json!({})).await, agent(api, "Ben", json!({})).await);
    let room = room_of(api, &[ann]).await;
    post_and_wait(api, room, r#"!call memorize {"text":"Cyd likes green tea"}"#).await;
    assert_eq!(end_of_stream(api, room).await["memory_entries"], json!(["Cyd likes green tea"]));
    let saved = get(api, &format!("/api/agents/{ann}/memories")).await.expect_status(200);
    assert_eq!(saved["memories"][0]["text"], "Cyd likes green tea");
    for (agent, about, expected) in
        [(ann, "tea", "Cyd likes green tea"), (ann, "coffee", "no such notes"), (ben, "tea", "no such notes")]
    {
        let room = room_of(api, &[agent]).await;
        let run = post_and_wait(api, room, &format!("!call recall {}", json!({"about": about}))).await;
        let text = message_of(api, &run).await.text;
        assert!(text.contains(expected), "{text}");
        assert_eq!(end_of_stream(api, room).await["memory_entries"], json!([]));
    }
}

async fn the_end_of_a_turn_lists_its_model_calls(api: &TestClient) {
    let ann = agent(api, "Ann", json!({})).await;
    let room = room_of(api, &[ann]).await;
    post_and_wait(api, room, "!count 2").await;
    assert_eq!(end_of_stream(api, room).await["anthropic_calls"], json!(["scripted"]));
    post_and_wait(api, room, r#"!script [{"usage":{"model":"one"}},{"text":"x"},{"usage":{"model":"two"}}]"#).await;
    assert_eq!(end_of_stream(api, room).await["anthropic_calls"], json!(["one", "two"]));
}

async fn a_note_has_a_limit(api: &TestClient) {
    let ann = agent(api, "Ann", json!({})).await;
    let room = room_of(api, &[ann]).await;
    let long = format!("!call memorize {}", json!({"text": "x".repeat(9000)}));
    let run = post_and_wait(api, room, &long).await;
    assert_eq!(run.status, RunStatus::Completed);
    let text = message_of(api, &run).await.text;
    assert!(text.contains("at most 8192 bytes"), "{text}");
    assert_eq!(get(api, &format!("/api/agents/{ann}/memories")).await.expect_status(200)["memories"], json!([]));
}
