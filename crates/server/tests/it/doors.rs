use crate::stage::{Stage, TOKEN, header};
use axum::http::Method;
use server::{
    Config,
    doors::{Door, Policy},
    error::Code,
};
use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

#[tokio::test]
async fn invariant_15_every_documented_route_has_a_policy_and_every_owner_route_wants_a_token() {
    let stage = Stage::with_accounts();
    let api = stage.get("/openapi.json").await.json();
    let (mut documented, mut ids) = (0, BTreeSet::new());
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let listed =
                stage.doors.iter().filter(|door| door.path == *path && door.method.as_str() == method.to_uppercase());
            let policies: Vec<Policy> = listed.map(|door| door.policy).collect();
            assert_eq!(policies.len(), 1, "{method} {path}: {policies:?}");
            assert_eq!(operation["security"].is_array(), policies[0] == Policy::Owner, "{method} {path}");
            for status in ["403", "429", "default"] {
                assert!(operation["responses"][status].is_object(), "{method} {path} lacks {status}");
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let told = response["description"].is_string() || response["$ref"].is_string();
                assert!(told, "{method} {path} {status} is not described");
            }
            let id = operation["operationId"].as_str().unwrap().to_owned();
            assert!(ids.insert(id.clone()), "two operations are called {id}");
            documented += 1;
        }
    }
    let is_documented = |door: &&Door| api["paths"].as_object().unwrap().contains_key(&door.path);
    let beside: Vec<&Door> = stage.doors.iter().filter(|door| !is_documented(door)).collect();
    // How many pages there are depends on whether the web app is in this build.
    assert!(documented >= 11 && beside.len() >= 3 && stage.doors.len() == documented + beside.len());
    for door in beside {
        let is_page = door.method == Method::GET && door.policy == Policy::Public && !door.path.starts_with("/api");
        // These speak a protocol of their own, which `docs/mcp-server.md` tells of.
        let is_mcp = door.policy != Policy::Public && ["/mcp", "/sse", "/message"].contains(&door.path.as_str());
        assert!(is_page || is_mcp, "only pages and MCP are not described: {door:?}");
    }

    for door in stage.doors.iter().filter(|door| door.policy != Policy::Public) {
        let target = door.path.replace(['{', '}'], "");
        for token in [
            None,
            Some("Bearer grm_wrong"),
            Some("Bearer grp_wrong"),
            Some(&*format!("Basic {TOKEN}")),
            Some("Bearer "),
        ] {
            let answer = stage
                .ask(&target, |mut request| {
                    *request.method_mut() = door.method.clone();
                    token.into_iter().fold(request, |request, token| header(request, "authorization", token))
                })
                .await;
            assert_eq!(answer.problem(401), "unauthorized", "{door:?} with {token:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[tokio::test]
async fn the_description_says_what_holds_for_all() {
    let api = Stage::new().get("/openapi.json").await.json();
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
    assert_eq!(api["components"]["schemas"]["Code"]["enum"], serde_json::json!(codes));
    assert_eq!(api["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    assert!(api["components"]["parameters"]["IdempotencyKey"]["name"].is_string());
}

/// What a generator of clients would stumble over.
#[tokio::test]
async fn the_description_is_sound() {
    let answer = Stage::new().get("/openapi.json").await;
    let api = answer.json();
    for reference in answer.text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(api.pointer(pointer).is_some(), "{pointer} is named and not there");
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
async fn nowhere_and_the_wrong_method_are_problems() {
    let stage = Stage::new();
    assert_eq!(stage.get("/api/nothing").await.problem(404), "not_found");
    let wrong = stage.post("/healthz", "{}").await;
    assert_eq!(wrong.problem(405), "method_not_allowed");
    assert_eq!(wrong.header("allow"), "GET,HEAD");
    let wrong = stage.get("/test/notes").await;
    assert_eq!((wrong.problem(405).as_str(), wrong.header("allow")), ("method_not_allowed", "POST"));
}

#[tokio::test]
async fn every_answer_carries_its_headers() {
    let stage = Stage::new();
    for target in ["/healthz", "/nothing", "/test/whoami", "/", "/test/panic"] {
        let answer = stage.ask(target, |request| header(request, "x-request-id", "mine-1")).await;
        assert_eq!(answer.header("x-request-id"), "mine-1", "{target}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{target}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{target}");
        assert!(!answer.header("cache-control").is_empty(), "{target}");
    }
    let replaced = stage.ask("/healthz", |request| header(request, "x-request-id", "not an id")).await;
    assert_eq!(replaced.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn a_panic_is_a_problem_without_its_words() {
    let answer = Stage::new().get("/test/panic").await;
    assert_eq!(answer.problem(500), "internal");
    assert!(!answer.text.contains("hunter2") && !answer.text.contains("panic"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_given_up() {
    let stage = Stage::with(Config { request_deadline: Duration::from_secs(5), ..Config::default() });
    let answer = stage.get("/test/hang").await;
    assert_eq!(answer.problem(503), "unavailable");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn pages_come_whole_and_with_a_content_policy() {
    let stage = Stage::with_accounts();
    for target in ["/", "/docs", "/assets/style.css", "/assets/docs.js", "/assets/index.js", "/assets/example.js"] {
        let answer = stage.get(target).await;
        assert_eq!(answer.status, 200, "{target}");
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{target}");
        assert!(!answer.text.contains("https://") && !answer.text.contains("innerHTML"), "{target}");
        for link in answer.text.split("\"/assets/").skip(1) {
            let name = link.split('"').next().unwrap();
            assert_eq!(stage.get(&format!("/assets/{name}")).await.status, 200, "{target} → {name}");
        }
    }
    assert_eq!(stage.get("/assets/secret.js").await.problem(404), "not_found");
    assert_eq!(stage.get("/assets/%2e%2e%2fCargo.toml").await.problem(404), "not_found");
}

#[tokio::test]
async fn health_readiness_and_metrics() {
    let stage = Stage::new();
    assert_eq!(stage.get("/healthz").await.json(), serde_json::json!({"status": "ok"}));
    assert_eq!(stage.get("/readyz").await.json(), serde_json::json!({"status": "ready"}));
    assert_eq!(stage.get("/readyz").await.status, 200);
    assert_eq!(stage.desk.probes.load(Ordering::SeqCst), 1, "a probe costs a commit and is not repeated at once");

    stage.get("/test/rooms/not-an-id").await;
    stage
        .ask("/odd", |mut request| {
            *request.method_mut() = Method::from_bytes(b"BREW").unwrap();
            request
        })
        .await;
    let metrics = stage.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    let counted = |labels: &str| metrics.text.contains(&format!("greenroom_http_requests_total{{{labels}}}"));
    assert!(counted(r#"method="GET",route="/healthz",status="200""#), "{}", metrics.text);
    assert!(counted(r#"method="GET",route="/test/rooms/{id}",status="404""#), "{}", metrics.text);
    assert!(counted(r#"method="other",route="unmatched",status="404""#), "{}", metrics.text);
    assert!(metrics.text.contains("greenroom_http_request_seconds_bucket"));
}

#[tokio::test]
async fn not_ready_when_it_cannot_commit_or_stops() {
    let stage = Stage::new();
    stage.desk.broken.store(true, Ordering::SeqCst);
    let answer = stage.get("/readyz").await;
    assert_eq!(answer.problem(503), "unavailable");
    assert!(!answer.text.contains("/secret"));
    stage.desk.broken.store(false, Ordering::SeqCst);
    assert_eq!(stage.get("/readyz").await.status, 200, "a failure is not remembered");
    stage.app.stopping.cancel();
    assert_eq!(stage.get("/readyz").await.problem(503), "unavailable");
}
