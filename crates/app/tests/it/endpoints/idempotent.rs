//! Repeating a request with the same Idempotency-Key gives one result; a different request is a conflict.

use super::requests::{ApiResponse, get, head, journal, response_to, room, runs_of, wait_for_end};
use domain::{event::EventType, ids::RoomId};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: invariant_07_idempotent_message, invariant_07_idempotent_concurrent_posts_make_one_message,
            invariant_07_idempotent_concurrent_requests_make_one_of_each, invariant_07_idempotent_rejected_message_frees_its_key,
            invalid_keys;
}

async fn with_key(api: &TestClient, method: Method, path: &str, key: &str, body: &Value) -> ApiResponse {
    response_to(api.request(method, path).header("idempotency-key", key).json(body)).await
}

async fn post_with_key(api: &TestClient, room: RoomId, key: &str, body: &Value) -> ApiResponse {
    with_key(api, Method::POST, &format!("/api/rooms/{room}/messages"), key, body).await
}

async fn messages(api: &TestClient, room: RoomId) -> usize {
    journal(api, room).await.iter().filter(|event| event.kind == EventType::MessagePosted).count()
}

async fn invariant_07_idempotent_message(api: &TestClient) {
    let (room, other) = (room(api).await, room(api).await);
    let body = json!({"text": "!count 3"});
    let first = post_with_key(api, room, "key-1", &body).await.expect_status(202);
    assert_eq!(post_with_key(api, room, "key-1", &body).await.expect_status(202), first, "while the run is active");
    wait_for_end(api, runs_of(&first)[0]).await;
    assert_eq!(post_with_key(api, room, "key-1", &body).await.expect_status(202), first, "and afterwards");
    let before = head(api, room).await;
    for different in [json!({"text": "!count 4"}), json!({"text": "!count 3", "when_busy": "enqueue"})] {
        post_with_key(api, room, "key-1", &different).await.expect_problem(409, "idempotency_conflict");
    }
    post_with_key(api, other, "key-1", &body).await.expect_problem(409, "idempotency_conflict");
    with_key(api, Method::POST, "/api/rooms", "key-1", &json!({"name": "r"}))
        .await
        .expect_problem(409, "idempotency_conflict");
    assert_eq!((head(api, room).await, messages(api, room).await, messages(api, other).await), (before, 1, 0));
    let second = post_with_key(api, room, "key-2", &body).await.expect_status(202);
    assert_ne!(second["message"]["id"], first["message"]["id"]);
    wait_for_end(api, runs_of(&second)[0]).await;
}

async fn invariant_07_idempotent_concurrent_posts_make_one_message(api: &TestClient) {
    let room = room(api).await;
    let body = json!({"text": "!count 3", "when_busy": "interrupt"});
    let answers = futures_util::future::join_all((0..20).map(|_| post_with_key(api, room, "k", &body))).await;
    let first = answers[0].expect_status(202);
    for answer in &answers {
        assert_eq!(answer.expect_status(202), first);
    }
    wait_for_end(api, runs_of(&first)[0]).await;
    assert_eq!(messages(api, room).await, 1);
}

async fn invariant_07_idempotent_concurrent_requests_make_one_of_each(api: &TestClient) {
    let scripted = api.scripted_agent().await.unwrap();
    let twenty = async |method: Method, path: &str, key: &str, body: &Value| -> Vec<ApiResponse> {
        futures_util::future::join_all((0..20).map(|_| with_key(api, method.clone(), path, key, body))).await
    };
    let agent = json!({"name": "Ada", "provider": "scripted"});
    let agents = twenty(Method::POST, "/api/agents", "agent", &agent).await;
    let rooms = twenty(Method::POST, "/api/rooms", "room", &json!({"name": "r", "agents": [scripted]})).await;
    for made in [&agents, &rooms] {
        assert!(made.iter().all(|answer| answer.expect_status(201)["id"] == made[0].json()["id"]));
    }
    assert_eq!(get(api, "/api/agents").await.expect_status(200)["agents"].as_array().unwrap().len(), 2);
    assert_eq!(get(api, "/api/rooms").await.expect_status(200)["rooms"].as_array().unwrap().len(), 1);

    let path = |of: &str, made: &[ApiResponse]| format!("/api/{of}/{}", made[0].json()["id"].as_str().unwrap());
    let patched = twenty(Method::PATCH, &path("agents", &agents), "patch-agent", &json!({"name": "Eve"})).await;
    assert!(patched.iter().all(|answer| answer.expect_status(200)["name"] == "Eve"));
    let patched = twenty(Method::PATCH, &path("rooms", &rooms), "patch-room", &json!({"name": "s"})).await;
    assert!(patched.iter().all(|answer| answer.expect_status(200)["name"] == "s"));
    let other = with_key(api, Method::PATCH, &path("rooms", &rooms), "patch-room", &json!({"name": "t"})).await;
    other.expect_problem(409, "idempotency_conflict");

    for (path, key) in [(path("agents", &agents), "delete-agent"), (path("rooms", &rooms), "delete-room")] {
        let deleted = twenty(Method::DELETE, &path, key, &Value::Null).await;
        assert!(deleted.iter().all(|answer| answer.status == 204), "{deleted:?}");
        get(api, &path).await.expect_problem(404, "not_found");
    }
}

async fn invariant_07_idempotent_rejected_message_frees_its_key(api: &TestClient) {
    let room = room(api).await;
    let hanging = super::requests::post_text(api, room, "!hang").await;
    let body = json!({"text": "!count 2", "when_busy": "reject"});
    post_with_key(api, room, "k", &body).await.expect_problem(409, "room_busy");
    api.cancel_run(hanging).await.unwrap();
    let accepted = post_with_key(api, room, "k", &body).await.expect_status(202);
    wait_for_end(api, runs_of(&accepted)[0]).await;
}

async fn invalid_keys(api: &TestClient) {
    let room = room(api).await;
    let body = json!({"text": "!count 2"});
    for key in ["", "a b", "é", &"k".repeat(256)] {
        let request = api.request(Method::POST, &format!("/api/rooms/{room}/messages")).json(&body);
        let request = request.header("idempotency-key", key.as_bytes());
        response_to(request).await.expect_problem(400, "invalid_request");
    }
    assert_eq!(messages(api, room).await, 0);
    let longest = post_with_key(api, room, &"k".repeat(255), &body).await.expect_status(202);
    wait_for_end(api, runs_of(&longest)[0]).await;
}
