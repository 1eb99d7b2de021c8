use crate::stage::{Stage, TOKEN, header};
use axum::http::Request;
use server::{Config, listen::Peer};
use std::{num::NonZeroU32, sync::atomic::Ordering};

fn from(address: &str) -> impl FnOnce(Request<axum::body::Body>) -> Request<axum::body::Body> {
    let remote = address.parse().unwrap();
    move |mut request| {
        let local = ([127, 0, 0, 1], 7878).into();
        request.extensions_mut().insert(Peer { remote, local });
        request
    }
}

#[tokio::test]
async fn without_accounts_whoever_is_on_this_machine_is_the_local_owner() {
    let stage = Stage::new();
    for local in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let answer = stage.ask("/test/whoami", from(local)).await;
        assert_eq!(answer.json(), serde_json::json!({"owner": "local", "token": false}), "{local}");
    }
    for far in ["192.168.1.7:1", "[2001:db8::1]:1", "0.0.0.0:1"] {
        assert_eq!(stage.ask("/test/whoami", from(far)).await.problem(401), "unauthorized", "{far}");
    }
    let nobody = stage.ask("/test/whoami", |mut request| {
        request.extensions_mut().clear();
        request
    });
    assert_eq!(nobody.await.problem(401), "unauthorized", "no connection, no trust");
}

#[tokio::test]
async fn a_proxy_on_this_machine_is_not_the_local_owner() {
    let stage = Stage::with(Config { public_hosts: vec!["green.example.org".into()], ..Config::default() });
    for name in ["forwarded", "x-forwarded-for"] {
        let answer = stage.ask("/test/whoami", |request| header(request, name, "for=203.0.113.9")).await;
        assert_eq!(answer.problem(401), "unauthorized", "{name}");
    }
    let by_name = stage.ask("/test/whoami", |mut request| {
        request.headers_mut().clear();
        header(request, "host", "green.example.org")
    });
    assert_eq!(by_name.await.problem(401), "unauthorized");
}

#[tokio::test]
async fn a_token_says_who_asks_from_anywhere() {
    let stage = Stage::with_accounts();
    let answer = stage
        .ask("/test/whoami", |request| {
            header(from("192.168.1.7:1")(request), "authorization", &format!("Bearer {TOKEN}"))
        })
        .await;
    assert_eq!(answer.json(), serde_json::json!({"owner": "ada", "token": true}));
    let missing = stage.get("/test/whoami").await;
    let wrong = stage.ask("/test/whoami", |request| header(request, "authorization", "Bearer nope")).await;
    assert_eq!((missing.problem(401), missing.text), (wrong.problem(401), wrong.text), "both get the same answer");
}

#[tokio::test(start_paused = true)]
async fn the_first_account_closes_the_open_door_within_a_second() {
    let stage = Stage::new();
    assert_eq!(stage.get("/test/whoami").await.status, 200);
    assert_eq!(stage.get("/test/whoami").await.status, 200);
    assert_eq!(stage.desk.questions.load(Ordering::SeqCst), 1, "the store is not asked each time");
    stage.desk.exist.store(true, Ordering::SeqCst);
    tokio::time::advance(std::time::Duration::from_millis(1001)).await;
    assert_eq!(stage.get("/test/whoami").await.problem(401), "unauthorized");
}

#[tokio::test]
async fn a_store_that_does_not_answer_lets_nobody_in_and_tells_nothing() {
    let stage = Stage::new();
    stage.desk.broken.store(true, Ordering::SeqCst);
    let answer = stage.get("/test/whoami").await;
    assert_eq!(answer.problem(503), "unavailable");
    assert!(!answer.text.contains("secret"), "{}", answer.text);
}

#[tokio::test]
async fn asking_too_often_is_a_429_that_says_when_to_come_back() {
    let two = NonZeroU32::new(2).unwrap();
    let slow = Config { requests_per_second: NonZeroU32::MIN, request_burst: two, ..Config::default() };
    let stage = Stage::with(slow.clone());
    assert_eq!(stage.get("/healthz").await.status, 200);
    assert_eq!(stage.get("/test/whoami").await.status, 200);
    for target in ["/healthz", "/test/whoami", "/nothing"] {
        let answer = stage.get(target).await;
        assert_eq!(answer.problem(429), "too_many_requests", "{target}");
        assert_eq!(answer.header("retry-after"), "1", "{target}");
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=2;w=2", "{target}");
    }
    assert_eq!(stage.ask("/healthz", from("127.0.0.9:1")).await.status, 200, "another caller is not touched");

    let guessed = Stage::with(slow);
    guessed.desk.exist.store(true, Ordering::SeqCst);
    assert_eq!(guessed.get("/test/whoami").await.problem(401), "unauthorized");
    assert_eq!(guessed.get("/test/whoami").await.problem(401), "unauthorized");
    assert_eq!(guessed.get("/test/whoami").await.problem(429), "too_many_requests", "guesses are counted");
    let known = guessed.ask("/test/whoami", |r| header(r, "authorization", &format!("Bearer {TOKEN}"))).await;
    assert_eq!(known.status, 200, "and do not lock out who has a token");
}
