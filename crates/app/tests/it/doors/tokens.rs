//! Tokens by the doors: shown once, each owner's own, and the first one turns accounts on.

use super::{
    binary::Binary,
    scene::{answer, delete, get, post, within},
};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;
use tokio::time::sleep;

doors! {
    database: the_first_token_by_a_door_turns_accounts_on, tokens_are_their_owners_own;
}

const STOP: Duration = Duration::from_secs(30);

async fn the_first_token_by_a_door_turns_accounts_on(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    assert_eq!(get(&api, "/api/tokens").await.is(200)["tokens"], json!([]));
    // Another machine, by a proxy on this one, is not here.
    let proxied = api.request(Method::POST, "/api/tokens").header("x-forwarded-for", "192.0.2.7");
    answer(proxied.json(&json!({"name": "x"}))).await.is_refused(401, "unauthorized");
    let first = post(&api, "/api/tokens", &json!({"name": "laptop"})).await.is(201);
    assert_eq!((&first["name"], &first["turned_accounts_on"]), (&json!("laptop"), &json!(true)));
    get(&api, "/api/rooms").await.is_refused(401, "unauthorized");
    let mine = api.clone().with_token(first["token"].as_str().unwrap());
    let second = post(&mine, "/api/tokens", &json!({"name": "phone"})).await.is(201);
    assert_eq!(second["turned_accounts_on"], false);
    let listed = get(&mine, "/api/tokens").await;
    assert!(!listed.text.contains(first["token"].as_str().unwrap()), "shown once: {listed:?}");
    within("its use to be noted", async {
        while get(&mine, "/api/tokens").await.is(200)["tokens"][0]["last_used_at"].is_null() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let listed = get(&mine, "/api/tokens").await.is(200);
    assert_eq!((&listed["tokens"][0]["current"], &listed["tokens"][1]["current"]), (&json!(true), &json!(false)));

    let path = format!("/api/tokens/{}", second["id"].as_str().unwrap());
    assert_eq!(delete(&mine, &path).await.status, 204);
    delete(&mine, &path).await.is_refused(404, "not_found");
    get(&api.with_token(second["token"].as_str().unwrap()), "/api/rooms").await.is_refused(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

async fn tokens_are_their_owners_own(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |user| binary.beside(&["token", "create", "--user", user]).await.out.trim().to_owned();
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = get(&ada, "/api/tokens").await.is(200);
    assert_eq!(hers["tokens"].as_array().unwrap().len(), 1);
    let path = format!("/api/tokens/{}", hers["tokens"][0]["id"].as_str().unwrap());
    let foreign = delete(&bob, &path).await.is_refused(404, "not_found");
    assert_eq!(delete(&bob, &format!("/api/tokens/{}", uuid::Uuid::now_v7())).await.json(), foreign);
    let make = async |name: String| post(&bob, "/api/tokens", &json!({"name": name})).await;
    for bad in ["", " ", "a\nb", &"x".repeat(121)] {
        post(&bob, "/api/tokens", &json!({"name": bad})).await.is_refused(400, "invalid_request");
    }
    // Its secret cannot be shown again, so a repetition says that instead of making another.
    let key = |body| bob.request(Method::POST, "/api/tokens").header("idempotency-key", "k").json(&body);
    answer(key(json!({"name": "one"}))).await.is(201);
    answer(key(json!({"name": "one"}))).await.is_refused(409, "conflict");
    answer(key(json!({"name": "two"}))).await.is_refused(409, "idempotency_conflict");
    assert_eq!(get(&bob, "/api/tokens").await.is(200)["tokens"].as_array().unwrap().len(), 2);
    for n in 2..100 {
        make(n.to_string()).await.is(201);
    }
    let refused = make("one more".into()).await.is_refused(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("100"), "{refused}");
    server.terminate(STOP).await.unwrap();
}
