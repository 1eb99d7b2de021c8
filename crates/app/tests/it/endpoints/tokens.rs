//! Token endpoints: tokens are shown once and belong to their owner.

use super::{
    binary::Binary,
    requests::{delete, get, post, response_to, within},
};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;
use tokio::time::sleep;

on_both_databases! {
    database: tokens_are_created_listed_and_revoked, tokens_belong_to_their_owner;
}

const STOP: Duration = Duration::from_secs(30);

async fn tokens_are_created_listed_and_revoked(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    assert_eq!(get(&api, "/api/tokens").await.expect_status(200)["tokens"], json!([]));
    post(&api.anonymous(), "/api/tokens", &json!({"name": "x"})).await.expect_problem(401, "unauthorized");
    let first = post(&api, "/api/tokens", &json!({"name": "laptop"})).await.expect_status(201);
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
    let secret = async |user| binary.run_command(&["token", "create", "--user", user]).await.stdout.trim().to_owned();
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = get(&ada, "/api/tokens").await.expect_status(200);
    assert_eq!(hers["tokens"].as_array().unwrap().len(), 1);
    let path = format!("/api/tokens/{}", hers["tokens"][0]["id"].as_str().unwrap());
    let foreign = delete(&bob, &path).await.expect_problem(404, "not_found");
    assert_eq!(delete(&bob, &format!("/api/tokens/{}", uuid::Uuid::now_v7())).await.json(), foreign);
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
