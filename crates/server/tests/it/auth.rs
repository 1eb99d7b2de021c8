use crate::test_app::{LOCAL_KEY, TOKEN, TestApp, config, header};
use axum::http::Request;
use server::{HttpServerConfig, auth::AuthSettings, listen::ConnectionAddrs};
use std::{num::NonZeroU32, sync::atomic::Ordering};

fn from(address: &str) -> impl FnOnce(Request<axum::body::Body>) -> Request<axum::body::Body> {
    let remote = address.parse().unwrap();
    move |mut request| {
        let local = ([127, 0, 0, 1], 7878).into();
        request.extensions_mut().insert(ConnectionAddrs { remote, local });
        request
    }
}

fn no_auth() -> TestApp {
    let open = AuthSettings { no_auth: true, ..config().auth };
    let settings = HttpServerConfig { auth: open, public_hosts: vec!["green.example.org".into()], ..config() };
    TestApp { sends_key: false, ..TestApp::with(settings) }
}

#[tokio::test]
async fn c2_a_local_request_without_a_credential_is_nobody() {
    for test_app in [TestApp { sends_key: false, ..TestApp::new() }, TestApp::with_accounts()] {
        for local in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(test_app.send("/test/whoami", from(local)).await.problem(401), "unauthorized", "{local}");
        }
    }
}

#[tokio::test]
async fn c2_the_local_key_is_the_operator_from_any_address() {
    let test_app = TestApp::new();
    for address in ["127.0.0.1:1", "192.168.1.7:1"] {
        let answer = test_app.send("/test/whoami", from(address)).await;
        assert_eq!(answer.json(), serde_json::json!({"owner": "local", "token": false}), "{address}");
    }
}

#[tokio::test]
async fn without_authentication_a_local_request_is_the_operator() {
    let test_app = no_auth();
    for local in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let answer = test_app.send("/test/whoami", from(local)).await;
        assert_eq!(answer.json(), serde_json::json!({"owner": "local", "token": false}), "{local}");
    }
    for far in ["192.168.1.7:1", "[2001:db8::1]:1", "0.0.0.0:1"] {
        assert_eq!(test_app.send("/test/whoami", from(far)).await.problem(403), "forbidden_host", "{far}");
    }
    let unconnected = test_app.send("/test/whoami", |mut request| {
        request.extensions_mut().clear();
        request
    });
    assert_eq!(unconnected.await.problem(403), "forbidden_host", "a request without a connection is not trusted");
}

#[tokio::test]
async fn c2_a_proxy_on_this_machine_is_not_the_operator() {
    let test_app = no_auth();
    for name in ["forwarded", "x-forwarded-for", "x-forwarded-host", "via", "x-real-ip", "cf-ray"] {
        let answer = test_app.send("/test/whoami", |request| header(request, name, "for=203.0.113.9")).await;
        assert_eq!(answer.problem(403), "forbidden_host", "{name}");
    }
    let by_name = test_app.send("/test/whoami", |mut request| {
        request.headers_mut().clear();
        header(request, "host", "green.example.org")
    });
    assert_eq!(by_name.await.problem(403), "forbidden_host");
    let old = test_app.send("/test/whoami", |mut request| {
        *request.version_mut() = axum::http::Version::HTTP_10;
        request
    });
    assert_eq!(old.await.problem(403), "forbidden_host", "as nginx does without configuration");
}

#[tokio::test]
async fn a_token_authenticates_from_any_address() {
    let test_app = TestApp::with_accounts();
    let answer = test_app
        .send("/test/whoami", |request| {
            header(from("192.168.1.7:1")(request), "authorization", &format!("Bearer {TOKEN}"))
        })
        .await;
    assert_eq!(answer.json(), serde_json::json!({"owner": "ada", "token": true}));
    let missing = test_app.get("/test/whoami").await;
    let wrong = test_app.send("/test/whoami", |request| header(request, "authorization", "Bearer nope")).await;
    assert_eq!((missing.problem(401), missing.text), (wrong.problem(401), wrong.text), "both get the same response");
}

#[tokio::test]
async fn a_broken_store_refuses_everyone_and_reveals_nothing() {
    let test_app = TestApp::with_accounts();
    test_app.accounts.broken.store(true, Ordering::SeqCst);
    let answer = test_app.send("/test/whoami", |r| header(r, "authorization", &format!("Bearer {TOKEN}"))).await;
    assert_eq!(answer.problem(503), "unavailable");
    assert!(!answer.text.contains("secret"), "{}", answer.text);
}

#[tokio::test]
async fn too_many_requests_are_a_429_with_retry_after() {
    let two = NonZeroU32::new(2).unwrap();
    let slow = HttpServerConfig { requests_per_second: NonZeroU32::MIN, request_burst: two, ..config() };
    let test_app = TestApp::with(slow.clone());
    // Without a credential by address, with one by the credential.
    for target in ["/healthz", "/healthz", "/test/whoami", "/test/whoami"] {
        assert_eq!(test_app.get(target).await.status, 200, "{target}");
    }
    for target in ["/healthz", "/test/whoami", "/nothing"] {
        let answer = test_app.get(target).await;
        assert_eq!(answer.problem(429), "too_many_requests", "{target}");
        assert_eq!(answer.header("retry-after"), "1", "{target}");
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=2;w=2", "{target}");
    }
    assert_eq!(test_app.send("/healthz", from("127.0.0.9:1")).await.status, 200, "another caller is not affected");

    let guessed = TestApp { sends_key: false, ..TestApp::with(slow) };
    guessed.accounts.exist.store(true, Ordering::SeqCst);
    assert_eq!(guessed.get("/test/whoami").await.problem(401), "unauthorized");
    assert_eq!(guessed.get("/test/whoami").await.problem(401), "unauthorized");
    assert_eq!(guessed.get("/test/whoami").await.problem(429), "too_many_requests", "failed attempts are counted");
    for secret in [TOKEN, LOCAL_KEY] {
        let known = guessed.send("/test/whoami", |r| header(r, "authorization", &format!("Bearer {secret}"))).await;
        assert_eq!(known.status, 200, "failed attempts lock out neither a valid token nor the operator");
    }
}
