//! Token endpoints: tokens are shown once and belong to their owner.

use super::{
    binary::Binary,
    requests::{delete, get, post, post_and_wait, response_to, room, within},
};
use domain::{position::Position, time::Timestamp};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use testkit::{
    client::{SseReader, TestClient, WsReader},
    database::TestDatabase,
};
use tokio::time::{Instant, sleep};

on_both_databases! {
    server: m11_a_token_has_scopes_and_an_end, m11_tokens_are_revoked_with_the_token_that_created_them,
            m11_a_cookie_alone_creates_no_token, l10_revoking_ends_streams_at_once;
    database: tokens_are_created_listed_and_revoked, tokens_belong_to_their_owner, m11_the_command_line_says_what_a_token_may;
}

const ALL: [&str; 4] = ["read", "run", "approve", "admin"];

const STOP: Duration = Duration::from_secs(30);

async fn tokens_are_created_listed_and_revoked(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    assert_eq!(get(&api, "/api/tokens").await.expect_status(200)["tokens"], json!([]));
    post(&api.anonymous(), "/api/tokens", &json!({"name": "x"})).await.expect_problem(401, "unauthorized");
    let first = post(&api, "/api/tokens", &json!({"name": "laptop", "scopes": ALL})).await.expect_status(201);
    assert_eq!(first["name"], "laptop");
    let mine = api.clone().with_token(first["token"].as_str().unwrap());
    let second = post(&mine, "/api/tokens", &json!({"name": "phone"})).await.expect_status(201);
    let listed = get(&mine, "/api/tokens").await;
    assert!(!listed.text.contains(first["token"].as_str().unwrap()), "a token must be shown only once: {listed:?}");
    within("its use to be noted", async {
        while get(&mine, "/api/tokens").await.expect_status(200)["tokens"][0]["last_used_at"].is_null() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let listed = get(&mine, "/api/tokens").await.expect_status(200);
    assert_eq!((&listed["tokens"][0]["current"], &listed["tokens"][1]["current"]), (&json!(true), &json!(false)));

    let path = format!("/api/tokens/{}", second["id"].as_str().unwrap());
    assert_eq!(delete(&mine, &path).await.status, 204);
    delete(&mine, &path).await.expect_problem(404, "not_found");
    get(&api.with_token(second["token"].as_str().unwrap()), "/api/rooms").await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

async fn tokens_belong_to_their_owner(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |user| {
        binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned()
    };
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = get(&ada, "/api/tokens").await.expect_status(200);
    assert_eq!(hers["tokens"].as_array().unwrap().len(), 1);
    let path = format!("/api/tokens/{}", hers["tokens"][0]["id"].as_str().unwrap());
    let foreign = delete(&bob, &path).await.expect_problem(404, "not_found");
    let unknown = delete(&bob, &format!("/api/tokens/{}", uuid::Uuid::now_v7())).await;
    assert_eq!(unknown.expect_problem(404, "not_found"), foreign);
    let make = async |name: String| post(&bob, "/api/tokens", &json!({"name": name})).await;
    for bad in ["", " ", "a\nb", &"x".repeat(121)] {
        post(&bob, "/api/tokens", &json!({"name": bad})).await.expect_problem(400, "invalid_request");
    }
    // The secret cannot be shown again, so a repeated request is a conflict.
    let key = |body| bob.request(Method::POST, "/api/tokens").header("idempotency-key", "k").json(&body);
    response_to(key(json!({"name": "one"}))).await.expect_status(201);
    response_to(key(json!({"name": "one"}))).await.expect_problem(409, "conflict");
    response_to(key(json!({"name": "two"}))).await.expect_problem(409, "idempotency_conflict");
    assert_eq!(get(&bob, "/api/tokens").await.expect_status(200)["tokens"].as_array().unwrap().len(), 2);
    for n in 2..100 {
        make(n.to_string()).await.expect_status(201);
    }
    let refused = make("one more".into()).await.expect_problem(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("100"), "{refused}");
    server.terminate(STOP).await.unwrap();
}

async fn m11_a_token_has_scopes_and_an_end(api: &TestClient) {
    let made = post(api, "/api/tokens", &json!({"name": "default"})).await.expect_status(201);
    assert_eq!(made["scopes"], json!(["read", "run"]));
    let expected = Timestamp::now().as_millis() + 90 * 24 * 3600 * 1000;
    let ends: Timestamp = serde_json::from_value(made["expires_at"].clone()).unwrap();
    assert!((ends.as_millis() - expected).abs() < 60_000, "{made}");
    let mine = api.clone().with_token(made["token"].as_str().unwrap());
    let room = room(&mine).await;
    post_and_wait(&mine, room, "!count 2").await;
    let refused = post(&mine, "/api/agents", &json!({"name": "x", "provider": "scripted"})).await;
    let refused = refused.expect_problem(403, "forbidden");
    assert!(refused["detail"].as_str().unwrap().contains("scope admin"), "{refused}");
    get(&mine, "/api/tokens").await.expect_problem(403, "forbidden");
    get(&mine, "/metrics").await.expect_problem(403, "forbidden");
    let approval = format!("/api/runs/{}/approvals/{}", uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
    post(&mine, &approval, &json!({"decision": "allow"})).await.expect_problem(403, "forbidden");

    let reads = post(api, "/api/tokens", &json!({"name": "reads", "scopes": ["read"]})).await.expect_status(201);
    let reads = api.clone().with_token(reads["token"].as_str().unwrap());
    get(&reads, "/api/rooms").await.expect_status(200);
    post(&reads, "/api/rooms", &json!({"name": "x"})).await.expect_problem(403, "forbidden");
    let never = json!({"name": "never", "scopes": ["read", "admin"], "expires_in_days": null});
    let never = post(api, "/api/tokens", &never).await.expect_status(201);
    assert_eq!(never["expires_at"], json!(null));
    let never = api.clone().with_token(never["token"].as_str().unwrap());
    let more = post(&never, "/api/tokens", &json!({"name": "more", "scopes": ["read", "run"]})).await;
    more.expect_problem(422, "unprocessable");
    for bad in [json!([]), json!(["root"]), json!("read")] {
        post(api, "/api/tokens", &json!({"name": "x", "scopes": bad})).await.expect_problem(400, "invalid_request");
    }
    post(api, "/api/tokens", &json!({"name": "x", "expires_in_days": 0})).await.expect_problem(400, "invalid_request");
}

async fn m11_tokens_are_revoked_with_the_token_that_created_them(api: &TestClient) {
    let make = async |with: &TestClient, name: &str, days: u32| {
        let body = json!({"name": name, "scopes": ALL, "expires_in_days": days});
        post(with, "/api/tokens", &body).await.expect_status(201)
    };
    let client = |made: &serde_json::Value| api.clone().with_token(made["token"].as_str().unwrap());
    let parent = make(api, "parent", 5).await;
    let child = make(&client(&parent), "child", 50).await;
    assert_eq!(child["expires_at"], parent["expires_at"], "a child does not outlive its parent");
    let grandchild = make(&client(&child), "grandchild", 1).await;
    let other = make(api, "other", 5).await;
    let listed = get(api, "/api/tokens").await.expect_status(200);
    let of = |name: &str| listed["tokens"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
    assert_eq!((&of("child")["created_with"], &of("parent")["created_with"]), (&parent["id"], &json!(null)));
    assert_eq!(delete(api, &format!("/api/tokens/{}", parent["id"].as_str().unwrap())).await.status, 204);
    for gone in [&parent, &child, &grandchild] {
        get(&client(gone), "/api/rooms").await.expect_problem(401, "unauthorized");
    }
    get(&client(&other), "/api/rooms").await.expect_status(200);
    let all = get(api, "/api/tokens?all=true").await.expect_status(200);
    let revoked = all["tokens"].as_array().unwrap().iter().filter(|token| token["revoked_at"].is_string()).count();
    assert_eq!((all["tokens"].as_array().unwrap().len(), revoked), (4, 3));
}

async fn m11_a_cookie_alone_creates_no_token(api: &TestClient) {
    let anonymous = api.anonymous();
    let sign_in = anonymous.request(Method::POST, "/api/session").header("origin", api.base_url());
    let signed_in = response_to(sign_in.json(&json!({"token": api.token().unwrap()}))).await;
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let make = |body: serde_json::Value| {
        let request = anonymous.request(Method::POST, "/api/tokens").header("origin", api.base_url());
        response_to(request.header("cookie", &cookie).json(&body))
    };
    let refused = make(json!({"name": "x"})).await.expect_problem(403, "forbidden");
    assert!(refused["detail"].as_str().unwrap().contains("confirm"), "{refused}");
    make(json!({"name": "x", "confirm": "grm_wrong"})).await.expect_problem(403, "forbidden");
    let weak = make(json!({"name": "x", "confirm": api.token().unwrap()})).await.expect_status(201);
    let stronger = json!({"name": "y", "scopes": ALL, "confirm": weak["token"]});
    make(stronger).await.expect_problem(403, "forbidden");
    // As `greenroom auth header` prints it.
    let pasted = format!("Authorization: Bearer {}\n", api.token().unwrap());
    make(json!({"name": "z", "scopes": ALL, "confirm": pasted})).await.expect_status(201);
}

/// Also B23: an open stream went on until the next heartbeat, and delivered what was posted meanwhile.
async fn l10_revoking_ends_streams_at_once(api: &TestClient) {
    let room = room(api).await;
    let made = post(api, "/api/tokens", &json!({"name": "x"})).await.expect_status(201);
    let mine = api.clone().with_token(made["token"].as_str().unwrap());
    let (mut stream, mut socket) =
        (SseReader::connect(&mine, room, &Position::START).await.unwrap(), WsReader::connect(&mine).await.unwrap());
    socket.subscribe(room, &Position::START).await.unwrap();
    within("the stream to be caught up", stream.next_event()).await.unwrap();
    let kept = SseReader::connect(api, room, &Position::START).await.unwrap();
    assert_eq!(delete(api, &format!("/api/tokens/{}", made["id"].as_str().unwrap())).await.status, 204);
    let revoked = Instant::now();
    within("the stream to end", async { while let Ok(Some(_)) = stream.next_frame().await {} }).await;
    within("the socket to close", async { while matches!(socket.next().await, Ok(Some(_))) {} }).await;
    assert!(revoked.elapsed() < Duration::from_secs(5), "before the next heartbeat: {:?}", revoked.elapsed());
    drop(kept);
}

async fn m11_the_command_line_says_what_a_token_may(database: TestDatabase) {
    let binary = Binary::on(&database);
    let nobody = binary.run_command(&["token", "create"]).await;
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(2), ""));
    assert!(nobody.stderr.contains("--user"), "{}", nobody.stderr);
    let made = binary.run_command(&["token", "create", "--user", "ada"]).await;
    assert!(made.stderr.contains("scopes read,run") && made.stderr.contains("expires"), "{}", made.stderr);
    let never = ["token", "create", "--user", "ada", "--scopes", "read,approve", "--expires", "never"];
    let never = binary.run_command(&never).await;
    assert!(never.stderr.contains("NEVER") && never.stderr.contains("scopes read,approve"), "{}", never.stderr);
    let listed = binary.run_command(&["token", "list"]).await.stdout;
    assert!(listed.contains("valid until") && listed.contains("never expires"), "{listed}");
    for bad in [["--scopes", "root"], ["--expires", "soon"]] {
        let refused = binary.run_command(&[&["token", "create", "--user", "ada"][..], &bad].concat()).await;
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
}
