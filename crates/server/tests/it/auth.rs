use crate::test_app::{LOCAL_KEY, TOKEN, TestApp, config, header, token_of};
use axum::http::Request;
use domain::permission::Role;
use server::{
    HttpServerConfig,
    auth::{
        AuthSettings,
        client_address::{AddressRange, TrustedProxies},
    },
    listen::ConnectionAddrs,
};
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
    assert_eq!((missing.status, missing.unnamed()), (wrong.status, wrong.unnamed()), "both get the same response");
    assert_eq!(missing.problem(401), "unauthorized");
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
    for (target, left) in [("/openapi.json", 1), ("/openapi.json", 0), ("/test/whoami", 1), ("/test/whoami", 0)] {
        let answer = test_app.get(target).await;
        assert_eq!(answer.status, 200, "{target}");
        assert_eq!(answer.header("ratelimit"), format!("\"default\";r={left}"), "{target}");
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=2;w=2", "{target}");
    }
    for target in ["/openapi.json", "/test/whoami", "/nothing"] {
        let answer = test_app.get(target).await;
        assert_eq!(answer.problem(429), "too_many_requests", "{target}");
        assert_eq!(answer.header("retry-after"), "1", "{target}");
        assert_eq!(answer.header("ratelimit"), "\"default\";r=0;t=1", "{target}");
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=2;w=2", "{target}");
    }
    assert_eq!(test_app.send("/openapi.json", from("127.0.0.9:1")).await.status, 200, "another caller is not affected");
    for target in ["/healthz", "/readyz"].repeat(3) {
        assert_eq!(test_app.get(target).await.status, 200, "a monitor is not counted");
    }

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

/// A server that counts two requests, behind a proxy at 10.0.0.1.
fn behind_a_proxy() -> TestApp {
    let trusted_proxies = TrustedProxies(vec![AddressRange::parse("10.0.0.0/24").unwrap()]);
    let two = NonZeroU32::new(2).unwrap();
    TestApp::with(HttpServerConfig {
        requests_per_second: NonZeroU32::MIN,
        request_burst: two,
        trusted_proxies,
        ..config()
    })
}

#[tokio::test]
async fn l2_visitors_behind_a_trusted_proxy_are_counted_apart() {
    let test_app = behind_a_proxy();
    let visit = async |peer: &'static str, client: &str| {
        let request = |request| header(from(peer)(request), "x-forwarded-for", client);
        test_app.send("/openapi.json", request).await.status.as_u16()
    };
    for _ in 0..2 {
        assert_eq!(visit("10.0.0.1:5000", "203.0.113.1").await, 200);
    }
    assert_eq!(visit("10.0.0.1:5000", "203.0.113.1").await, 429);
    assert_eq!(visit("10.0.0.1:5000", "203.0.113.2").await, 200, "another visitor of the same proxy");
    assert_eq!(visit("10.0.0.1:5000", "203.0.113.7, 203.0.113.1").await, 429, "what the visitor wrote does not count");
    for n in 1..=3 {
        let spoofed = visit("192.0.2.9:5000", &format!("203.0.113.{n}")).await;
        assert_eq!(spoofed, if n < 3 { 200 } else { 429 }, "an untrusted peer is counted by its own address");
    }
}

#[tokio::test]
async fn l2_headers_of_a_proxy_that_name_two_clients_are_refused() {
    let test_app = behind_a_proxy();
    let visit = async |peer: &'static str, forwarded: &str| {
        let request = |request| {
            let request = header(from(peer)(request), "x-forwarded-for", "203.0.113.1");
            header(request, "forwarded", forwarded)
        };
        test_app.send("/openapi.json", request).await.status.as_u16()
    };
    assert_eq!(visit("10.0.0.1:5000", "for=203.0.113.9").await, 400, "the client's own header does not hide it");
    assert_eq!(visit("10.0.0.1:5000", "for=203.0.113.1").await, 200);
    assert_eq!(visit("192.0.2.9:5000", "for=203.0.113.9").await, 200, "of an untrusted peer neither counts");
}

#[tokio::test]
async fn l2_all_tokens_of_a_user_are_counted_together() {
    let test_app = TestApp { sends_key: false, ..behind_a_proxy() };
    test_app.accounts.exist.store(true, Ordering::SeqCst);
    let ask = async |user: &str, role| {
        let token = token_of(user, role);
        let request = |request| header(request, "authorization", &format!("Bearer {token}"));
        test_app.send("/test/whoami", request).await.status.as_u16()
    };
    assert_eq!((ask("ada", Role::Owner).await, ask("ada", Role::Viewer).await), (200, 200), "two tokens");
    assert_eq!(ask("ada", Role::Member).await, 429, "a third token of the same user");
    assert_eq!(ask("eve", Role::Member).await, 200);
}
