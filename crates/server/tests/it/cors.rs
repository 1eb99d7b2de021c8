use crate::test_app::{TestApp, TestResponse, config, header};
use axum::{
    body::Body,
    http::{Method, Request},
};
use server::{
    HttpServerConfig,
    auth::{AuthSettings, CorsSettings},
    routing::Policy,
};

const INSPECTOR: &str = "http://localhost:6274";
const APP: &str = "https://app.example.org";

fn allowing(credentials: bool) -> HttpServerConfig {
    let origins = vec![INSPECTOR.to_owned(), APP.to_owned()];
    HttpServerConfig { cors: CorsSettings { origins, credentials }, ..config() }
}

async fn preflight(test_app: &TestApp, origin: &str, target: &str) -> TestResponse {
    test_app
        .send(target, |mut request| {
            *request.method_mut() = Method::OPTIONS;
            let request = header(request, "origin", origin);
            let request = header(request, "access-control-request-method", "POST");
            header(request, "access-control-request-headers", "authorization,mcp-session-id")
        })
        .await
}

#[tokio::test]
async fn cors_is_off_by_default() {
    let test_app = TestApp::new();
    assert_eq!(preflight(&test_app, APP, "/mcp").await.problem(403), "forbidden_origin");
    let local = preflight(&test_app, INSPECTOR, "/mcp").await;
    assert_eq!(local.status.as_u16(), 204, "only the methods of the path, for every client");
    assert!(local.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    let answer = test_app.send("/test/whoami", |request| header(request, "origin", INSPECTOR)).await;
    assert!(answer.headers.get("access-control-allow-origin").is_none() && !answer.header("vary").contains("Origin"));
}

#[tokio::test]
async fn a_preflight_of_a_configured_origin_is_answered_and_of_no_other() {
    let test_app = TestApp::with(allowing(false));
    for origin in [INSPECTOR, APP] {
        for target in ["/mcp", "/test/whoami", "/nothing"] {
            let answer = preflight(&test_app, origin, target).await;
            assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""), "{origin} {target}");
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            assert_eq!(answer.header("access-control-allow-headers"), "authorization,mcp-session-id");
            assert!(answer.header("access-control-allow-methods").contains("DELETE"));
            assert_eq!(answer.header("vary"), "Origin");
            assert!(answer.headers.get("access-control-allow-credentials").is_none());
        }
    }
    for other in
        ["https://app.example.org.evil.example", "http://app.example.org", "https://app.example.org:444", "null"]
    {
        assert_eq!(preflight(&test_app, other, "/mcp").await.problem(403), "forbidden_origin", "{other}");
    }
    let other_port = preflight(&test_app, "http://localhost:6275", "/mcp").await;
    assert!(other_port.headers.get("access-control-allow-origin").is_none(), "{}", other_port.status);
    let plain = test_app
        .send("/test/whoami", |mut request| {
            *request.method_mut() = Method::OPTIONS;
            header(request, "origin", APP)
        })
        .await;
    assert!(
        plain.headers.get("access-control-allow-methods").is_none(),
        "without the name of a method it is no preflight"
    );
}

#[tokio::test]
async fn a_page_of_a_configured_origin_reads_responses_and_problems_with_a_token() {
    let test_app = TestApp::with(allowing(false));
    let ask = |request: Request<Body>| header(header(request, "origin", APP), "sec-fetch-site", "cross-site");
    for (target, status) in [("/test/whoami", 200), ("/test/rooms/not-an-id", 404)] {
        let answer = test_app.send(target, ask).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(answer.header("access-control-allow-origin"), APP);
        let exposed = answer.header("access-control-expose-headers").to_owned();
        assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"), "{exposed}");
    }
}

#[tokio::test]
async fn invariant_21_cors_lets_nobody_in_without_a_credential() {
    for credentials in [false, true] {
        let test_app = TestApp { sends_key: false, ..TestApp::with(allowing(credentials)) };
        for route in test_app.routes.iter().filter(|route| route.policy != Policy::Public) {
            let target = route.path.replace(['{', '}'], "");
            let answer = test_app
                .send(&target, |mut request| {
                    *request.method_mut() = route.method.clone();
                    header(request, "origin", APP)
                })
                .await;
            assert_eq!(answer.problem(401), "unauthorized", "{route:?}");
        }
        let open = AuthSettings { no_auth: true, ..config().auth };
        let test_app = TestApp::with(HttpServerConfig { auth: open, ..allowing(credentials) });
        let test_app = TestApp { sends_key: false, ..test_app };
        for origin in [INSPECTOR, APP] {
            let answer = test_app.send("/test/whoami", |request| header(request, "origin", origin)).await;
            assert_eq!(answer.problem(403), "forbidden_origin", "--no-auth is for pages of this server");
        }
    }
}
