//! The same Idempotency-Key twice gives one result; with another request it is a conflict.

use super::scene::{Answer, answer, ended, get, head, journal, room, runs_of};
use domain::{event::EventType, ids::RoomId};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::Api;

doors! {
    server: invariant_07_idempotent_a_message, invariant_07_idempotent_twenty_at_once_make_one_message,
            invariant_07_idempotent_twenty_at_once_make_one_of_each, invariant_07_idempotent_a_refused_message_leaves_its_key,
            keys_that_are_none;
}

async fn with_key(api: &Api, method: Method, path: &str, key: &str, body: &Value) -> Answer {
    answer(api.request(method, path).header("idempotency-key", key).json(body)).await
}

async fn say(api: &Api, room: RoomId, key: &str, body: &Value) -> Answer {
    with_key(api, Method::POST, &format!("/api/rooms/{room}/messages"), key, body).await
}

async fn messages(api: &Api, room: RoomId) -> usize {
    journal(api, room).await.iter().filter(|event| event.kind == EventType::MessagePosted).count()
}

async fn invariant_07_idempotent_a_message(api: &Api) {
    let (room, other) = (room(api).await, room(api).await);
    let body = json!({"text": "!count 3"});
    let first = say(api, room, "key-1", &body).await.is(202);
    assert_eq!(say(api, room, "key-1", &body).await.is(202), first, "while it runs");
    ended(api, runs_of(&first)[0]).await;
    assert_eq!(say(api, room, "key-1", &body).await.is(202), first, "and afterwards");
    let before = head(api, room).await;
    for different in [json!({"text": "!count 4"}), json!({"text": "!count 3", "when_busy": "enqueue"})] {
        say(api, room, "key-1", &different).await.is_refused(409, "idempotency_conflict");
    }
    say(api, other, "key-1", &body).await.is_refused(409, "idempotency_conflict");
    with_key(api, Method::POST, "/api/rooms", "key-1", &json!({"name": "r"}))
        .await
        .is_refused(409, "idempotency_conflict");
    assert_eq!((head(api, room).await, messages(api, room).await, messages(api, other).await), (before, 1, 0));
    let second = say(api, room, "key-2", &body).await.is(202);
    assert_ne!(second["message"]["id"], first["message"]["id"]);
    ended(api, runs_of(&second)[0]).await;
}

async fn invariant_07_idempotent_twenty_at_once_make_one_message(api: &Api) {
    let room = room(api).await;
    let body = json!({"text": "!count 3", "when_busy": "interrupt"});
    let answers = futures_util::future::join_all((0..20).map(|_| say(api, room, "k", &body))).await;
    let first = answers[0].is(202);
    for answer in &answers {
        assert_eq!(answer.is(202), first);
    }
    ended(api, runs_of(&first)[0]).await;
    assert_eq!(messages(api, room).await, 1);
}

async fn invariant_07_idempotent_twenty_at_once_make_one_of_each(api: &Api) {
    let scripted = api.scripted_agent().await.unwrap();
    let twenty = async |method: Method, path: &str, key: &str, body: &Value| -> Vec<Answer> {
        futures_util::future::join_all((0..20).map(|_| with_key(api, method.clone(), path, key, body))).await
    };
    let agent = json!({"name": "Ada", "provider": "scripted"});
    let agents = twenty(Method::POST, "/api/agents", "agent", &agent).await;
    let rooms = twenty(Method::POST, "/api/rooms", "room", &json!({"name": "r", "agents": [scripted]})).await;
    for made in [&agents, &rooms] {
        assert!(made.iter().all(|answer| answer.is(201)["id"] == made[0].json()["id"]));
    }
    assert_eq!(get(api, "/api/agents").await.is(200)["agents"].as_array().unwrap().len(), 2);
    assert_eq!(get(api, "/api/rooms").await.is(200)["rooms"].as_array().unwrap().len(), 1);

    let path = |of: &str, made: &[Answer]| format!("/api/{of}/{}", made[0].json()["id"].as_str().unwrap());
    let patched = twenty(Method::PATCH, &path("agents", &agents), "patch-agent", &json!({"name": "Eve"})).await;
    assert!(patched.iter().all(|answer| answer.is(200)["name"] == "Eve"));
    let patched = twenty(Method::PATCH, &path("rooms", &rooms), "patch-room", &json!({"name": "s"})).await;
    assert!(patched.iter().all(|answer| answer.is(200)["name"] == "s"));
    let other = with_key(api, Method::PATCH, &path("rooms", &rooms), "patch-room", &json!({"name": "t"})).await;
    other.is_refused(409, "idempotency_conflict");

    for (path, key) in [(path("agents", &agents), "delete-agent"), (path("rooms", &rooms), "delete-room")] {
        let deleted = twenty(Method::DELETE, &path, key, &Value::Null).await;
        assert!(deleted.iter().all(|answer| answer.status == 204), "{deleted:?}");
        get(api, &path).await.is_refused(404, "not_found");
    }
}

async fn invariant_07_idempotent_a_refused_message_leaves_its_key(api: &Api) {
    let room = room(api).await;
    let hanging = super::scene::say(api, room, "!hang").await;
    let body = json!({"text": "!count 2", "when_busy": "reject"});
    say(api, room, "k", &body).await.is_refused(409, "room_busy");
    api.cancel_run(hanging).await.unwrap();
    let accepted = say(api, room, "k", &body).await.is(202);
    ended(api, runs_of(&accepted)[0]).await;
}

async fn keys_that_are_none(api: &Api) {
    let room = room(api).await;
    let body = json!({"text": "!count 2"});
    for key in ["", "a b", "é", &"k".repeat(256)] {
        let request = api.request(Method::POST, &format!("/api/rooms/{room}/messages")).json(&body);
        let request = request.header("idempotency-key", key.as_bytes());
        answer(request).await.is_refused(400, "invalid_request");
    }
    assert_eq!(messages(api, room).await, 0);
    let longest = say(api, room, &"k".repeat(255), &body).await.is(202);
    ended(api, runs_of(&longest)[0]).await;
}
