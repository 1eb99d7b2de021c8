//! The provider's original data: with tool calls always, with every piece of an answer if the room keeps it.

use super::requests::{ApiResponse, agent, get, post_and_wait, response_to, room_of};
use crate::direct::DirectFixture;
use domain::ids::RoomId;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: a_room_keeps_the_original_data_of_every_piece;
}

async fn patch(api: &TestClient, path: &str, body: &Value) -> ApiResponse {
    response_to(api.request(Method::PATCH, path).json(body)).await
}

/// The original data of each piece of an answer.
async fn raw_of_pieces(api: &TestClient, room: RoomId) -> Vec<Value> {
    let page = get(api, &format!("/api/rooms/{room}/events?limit=1000&raw=true")).await.expect_status(200);
    let pieces = page["events"].as_array().unwrap().iter();
    let pieces = pieces.filter(|event| matches!(event["type"].as_str(), Some("content_delta" | "thinking_delta")));
    pieces.map(|event| event["raw"].clone()).collect()
}

async fn a_room_keeps_the_original_data_of_every_piece(api: &TestClient) {
    let ada = agent(api, "ada", json!({})).await;
    let room = room_of(api, &[ada]).await;
    post_and_wait(api, room, "!count 3 20").await;
    let before = raw_of_pieces(api, room).await;
    assert!(!before.is_empty() && before.iter().all(Value::is_null), "{before:?}");
    let path = format!("/api/rooms/{room}");
    assert_eq!(get(api, &path).await.expect_status(200)["policy"]["keep_raw"], false);
    let changed = patch(api, &path, &json!({"policy": {"keep_raw": true}})).await.expect_status(200);
    assert_eq!(changed["policy"]["keep_raw"], true);
    post_and_wait(api, room, "!count 3 20").await;
    let after = raw_of_pieces(api, room).await;
    let (kept, old) = (&after[before.len()..], &after[..before.len()]);
    assert_eq!(old, before, "what was stored stays");
    let said: Vec<&Value> =
        kept.iter().flat_map(|raw| raw.as_array().map_or_else(|| vec![raw], |all| all.iter().collect())).collect();
    let text: String = said.iter().map(|raw| raw["delta"].as_str().unwrap()).collect();
    assert_eq!(text, "1 2 3", "{kept:?}");
    // Only on request.
    let plain = get(api, &format!("/api/rooms/{room}/events?limit=1000")).await.text;
    assert!(!plain.contains("\"raw\""), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_of_model_apis_are_kept() {
    let fixture = DirectFixture::open().await;
    for (provider, field) in [
        ("anthropic", "content_block_delta"),
        ("openai", "chat.completion.chunk"),
        ("openai_responses", "response.output_text.delta"),
        ("google", "candidates"),
    ] {
        let room = fixture.room(provider, json!({})).await;
        fixture.answer_to(room, "!count 3").await;
        assert!(raw_of_pieces(fixture.api(), room).await.iter().all(Value::is_null), "{provider}");
        let path = format!("/api/rooms/{room}");
        patch(fixture.api(), &path, &json!({"policy": {"keep_raw": true}})).await.expect_status(200);
        let before = raw_of_pieces(fixture.api(), room).await.len();
        fixture.answer_to(room, "!count 3").await;
        let kept = raw_of_pieces(fixture.api(), room).await.split_off(before);
        assert!(!kept.is_empty() && kept.iter().all(|raw| raw.to_string().contains(field)), "{provider}: {kept:?}");
    }
    fixture.close().await;
}
