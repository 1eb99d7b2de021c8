use crate::test_app::{TOKEN, TestApp, config, header};
use axum::http::Method;
use serde_json::json;
use server::{
    HttpServerConfig,
    error::Code,
    routing::{Policy, RouteInfo},
};
use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

#[tokio::test]
async fn invariant_15_every_documented_route_has_a_policy_and_every_owner_route_needs_a_token() {
    let test_app = TestApp::with_accounts();
    let api = test_app.get("/openapi.json").await.json();
    let (mut documented, mut ids) = (0, BTreeSet::new());
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method_name = method.to_uppercase();
            let listed =
                test_app.routes.iter().filter(|route| route.path == *path && route.method.as_str() == method_name);
            let policies: Vec<Policy> = listed.map(|route| route.policy).collect();
            assert_eq!(policies.len(), 1, "{method} {path}: {policies:?}");
            assert_eq!(operation["security"] != json!([]), policies[0] != Policy::Public, "{method} {path}");
            for status in ["403", "429", "default"] {
                assert!(operation["responses"][status].is_object(), "{method} {path} lacks {status}");
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let described = response["description"].is_string() || response["$ref"].is_string();
                assert!(described, "{method} {path} {status} is not described");
            }
            let id = operation["operationId"].as_str().unwrap().to_owned();
            assert!(ids.insert(id.clone()), "two operations have the id {id}");
            documented += 1;
        }
    }
    let is_documented = |route: &&RouteInfo| api["paths"].as_object().unwrap().contains_key(&route.path);
    let undocumented: Vec<&RouteInfo> = test_app.routes.iter().filter(|route| !is_documented(route)).collect();
    // The number of pages depends on whether the web app is embedded in this build.
    assert!(documented >= 11 && undocumented.len() >= 3 && test_app.routes.len() == documented + undocumented.len());
    for route in undocumented {
        let is_page = route.method == Method::GET && route.policy == Policy::Public && !route.path.starts_with("/api");
        // These have their own protocol, described in `docs/mcp-server.md`.
        let is_mcp = route.policy != Policy::Public && ["/mcp", "/sse", "/message"].contains(&route.path.as_str());
        assert!(is_page || is_mcp, "only pages and MCP may be undocumented: {route:?}");
    }

    for route in test_app.routes.iter().filter(|route| route.policy != Policy::Public) {
        let target = route.path.replace(['{', '}'], "");
        for token in [
            None,
            Some("Bearer grm_wrong"),
            Some("Bearer grp_wrong"),
            Some(&*format!("Basic {TOKEN}")),
            Some("Bearer "),
        ] {
            let answer = test_app
                .send(&target, |mut request| {
                    *request.method_mut() = route.method.clone();
                    token.into_iter().fold(request, |request, token| header(request, "authorization", token))
                })
                .await;
            assert_eq!(answer.problem(401), "unauthorized", "{route:?} with {token:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[tokio::test]
async fn the_openapi_document_has_the_shared_parts() {
    let api = TestApp::new().get("/openapi.json").await.json();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
    let post = &api["paths"]["/test/notes"]["post"];
    assert_eq!(post["parameters"][0]["$ref"], "#/components/parameters/IdempotencyKey");
    for status in ["400", "401", "413", "415"] {
        let schema = &post["responses"][status]["content"]["application/problem+json"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/Problem", "{status}");
    }
    let problem = &api["components"]["schemas"]["Problem"];
    for member in ["type", "title", "status", "code", "detail", "pointer", "epoch", "head"] {
        assert!(problem["properties"][member].is_object(), "{member}");
    }
    assert_eq!(problem["required"], serde_json::json!(["type", "title", "status", "code", "detail"]));
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(api["components"]["schemas"]["Code"]["anyOf"][0]["enum"], serde_json::json!(codes));
    assert_eq!(api["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    assert!(api["components"]["parameters"]["IdempotencyKey"]["name"].is_string());
}

/// Checks what a client generator would reject.
#[tokio::test]
async fn the_openapi_document_is_consistent() {
    let answer = TestApp::new().get("/openapi.json").await;
    let api = answer.json();
    for reference in answer.text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(api.pointer(pointer).is_some(), "{pointer} is referenced but does not exist");
    }
    for (path, item) in api["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            for parameter in parameters.iter().filter(|parameter| parameter["name"].is_string()) {
                let in_path = path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap()));
                assert_eq!(
                    parameter["in"] == "path",
                    in_path,
                    "{path}: {parameter}; see into_params(parameter_in = Query)"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_problems() {
    let test_app = TestApp::new();
    assert_eq!(test_app.get("/api/nothing").await.problem(404), "not_found");
    let wrong = test_app.post("/healthz", "{}").await;
    assert_eq!(wrong.problem(405), "method_not_allowed");
    assert_eq!(wrong.header("allow"), "GET,HEAD");
    let wrong = test_app.get("/test/notes").await;
    assert_eq!((wrong.problem(405).as_str(), wrong.header("allow")), ("method_not_allowed", "POST"));
}

#[tokio::test]
async fn every_response_has_the_default_headers() {
    let test_app = TestApp::new();
    for target in ["/healthz", "/nothing", "/test/whoami", "/", "/test/panic"] {
        let answer = test_app.send(target, |request| header(request, "x-request-id", "mine-1")).await;
        assert_eq!(answer.header("x-request-id"), "mine-1", "{target}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{target}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{target}");
        assert!(!answer.header("cache-control").is_empty(), "{target}");
    }
    let replaced = test_app.send("/healthz", |request| header(request, "x-request-id", "not an id")).await;
    assert_eq!(replaced.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn a_panic_is_a_problem_without_its_message() {
    let answer = TestApp::new().get("/test/panic").await;
    assert_eq!(answer.problem(500), "internal");
    assert!(!answer.text.contains("hunter2") && !answer.text.contains("panic"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_times_out() {
    let test_app = TestApp::with(HttpServerConfig { request_deadline: Duration::from_secs(5), ..config() });
    let answer = test_app.get("/test/hang").await;
    assert_eq!(answer.problem(503), "unavailable");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn pages_are_complete_and_have_a_content_security_policy() {
    let test_app = TestApp::with_accounts();
    for target in ["/", "/docs", "/assets/style.css", "/assets/docs.js", "/assets/index.js", "/assets/example.js"] {
        let answer = test_app.get(target).await;
        assert_eq!(answer.status, 200, "{target}");
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{target}");
        assert!(!answer.text.contains("https://") && !answer.text.contains("innerHTML"), "{target}");
        for link in answer.text.split("\"/assets/").skip(1) {
            let name = link.split('"').next().unwrap();
            assert_eq!(test_app.get(&format!("/assets/{name}")).await.status, 200, "{target} → {name}");
        }
    }
    assert_eq!(test_app.get("/assets/secret.js").await.problem(404), "not_found");
    assert_eq!(test_app.get("/assets/%2e%2e%2fCargo.toml").await.problem(404), "not_found");
}

#[tokio::test]
async fn health_readiness_and_metrics() {
    let test_app = TestApp::new();
    assert_eq!(test_app.get("/healthz").await.json(), serde_json::json!({"status": "ok"}));
    assert_eq!(test_app.get("/readyz").await.json(), serde_json::json!({"status": "ready"}));
    assert_eq!(test_app.get("/readyz").await.status, 200);
    assert_eq!(test_app.accounts.probes.load(Ordering::SeqCst), 1, "a probe needs a commit, so its result is cached");

    test_app.get("/test/rooms/not-an-id").await;
    test_app
        .send("/odd", |mut request| {
            *request.method_mut() = Method::from_bytes(b"BREW").unwrap();
            request
        })
        .await;
    let metrics = test_app.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    let counted = |labels: &str| metrics.text.contains(&format!("greenroom_http_requests_total{{{labels}}}"));
    assert!(counted(r#"method="GET",route="/healthz",status="200""#), "{}", metrics.text);
    assert!(counted(r#"method="GET",route="/test/rooms/{id}",status="404""#), "{}", metrics.text);
    assert!(counted(r#"method="other",route="unmatched",status="404""#), "{}", metrics.text);
    assert!(metrics.text.contains("greenroom_http_request_seconds_bucket"));
}

#[tokio::test]
async fn not_ready_when_it_cannot_commit_or_is_stopping() {
    let test_app = TestApp::new();
    test_app.accounts.broken.store(true, Ordering::SeqCst);
    let answer = test_app.get("/readyz").await;
    assert_eq!(answer.problem(503), "unavailable");
    assert!(!answer.text.contains("/secret"));
    test_app.accounts.broken.store(false, Ordering::SeqCst);
    assert_eq!(test_app.get("/readyz").await.status, 200, "a failure is not cached");
    test_app.app.stopping.cancel();
    assert_eq!(test_app.get("/readyz").await.problem(503), "unavailable");
}
