//! Bodies and query strings are read strictly, and every refusal says where the mistake is in words of the API.

use super::requests::{ApiResponse, agent, get, post, response_to, room};
use reqwest::{Method, header};
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: arrays_are_not_objects, a_fraction_of_zero_is_whole, a_key_is_there_once,
            mistakes_have_a_pointer_and_no_rust, a_patch_is_checked_like_the_settings, unknown_parameters_are_refused;
}

async fn send(api: &TestClient, method: Method, path: &str, body: &str) -> ApiResponse {
    let request = api.request(method, path).header(header::CONTENT_TYPE, "application/json");
    response_to(request.body(body.to_owned())).await
}

/// Derived code would read the fields in the order of the source.
async fn arrays_are_not_objects(api: &TestClient) {
    let room = room(api).await;
    let agent = agent(api, "a", json!({})).await;
    for (method, path, body, pointer) in [
        (Method::POST, "/api/rooms".to_owned(), json!(["x", []]), ""),
        (Method::POST, "/api/agents".to_owned(), json!(["x", "scripted"]), ""),
        (Method::POST, format!("/api/rooms/{room}/messages"), json!(["hi"]), ""),
        (Method::POST, format!("/api/execute/agent/{agent}"), json!(["hi"]), ""),
        (Method::PATCH, format!("/api/rooms/{room}"), json!(["new name"]), ""),
        (Method::PATCH, format!("/api/agents/{agent}"), json!(["new name"]), ""),
        (Method::POST, "/api/rooms".to_owned(), json!({"name": "x", "policy": ["reject"]}), "/policy"),
        (Method::PATCH, format!("/api/agents/{agent}"), json!({"tools": [["*"]]}), "/tools"),
        (
            Method::POST,
            format!("/api/rooms/{room}/messages"),
            json!({"text": "x", "attachments": [["a", "text/plain", "/api/uploads/x"]]}),
            "/attachments/0",
        ),
    ] {
        let problem = send(api, method, &path, &body.to_string()).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{path}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("an object"), "{path}: {detail}");
    }
    let rooms = get(api, "/api/rooms").await.expect_status(200);
    assert_eq!(rooms["rooms"][0]["name"], "A room", "nothing was created or changed: {rooms}");
}

async fn a_fraction_of_zero_is_whole(api: &TestClient) {
    let body = json!({"name": "a", "provider": "scripted", "limits": {"turns": 4.0}});
    let agent = post(api, "/api/agents", &body).await.expect_status(201);
    assert_eq!(agent["limits"]["turns"], 4);
    let body = json!({"name": "a", "provider": "scripted", "limits": {"turns": 4.5}});
    let problem = post(api, "/api/agents", &body).await.expect_problem(400, "invalid_request");
    assert_eq!(problem["pointer"], "/limits/turns");
    // Where a body is a patch that is applied later, too.
    let body = json!({"name": "a", "policy": {"max_rounds": 4.0}});
    assert_eq!(post(api, "/api/rooms", &body).await.expect_status(201)["policy"]["max_rounds"], 4);
    let body = json!({"name": "a", "url": "https://a.example/mcp", "timeout": 4.0});
    assert_eq!(post(api, "/api/mcp-servers", &body).await.expect_status(201)["timeout"], 4);
}

async fn a_key_is_there_once(api: &TestClient) {
    let agent = agent(api, "a", json!({})).await;
    let path = format!("/api/agents/{agent}");
    for (method, path, body, pointer) in [
        (Method::PATCH, path.as_str(), r#"{"name":"b","name":"c"}"#, "/name"),
        (Method::PATCH, &path, r#"{"limits":{"turns":1,"turns":2}}"#, "/limits/turns"),
        (Method::POST, "/api/agents", r#"{"name":"b","provider":"scripted","name":"c"}"#, "/name"),
        (
            Method::POST,
            "/api/mcp-servers",
            r#"{"name":"b","url":"https://a.example","url":"https://b.example"}"#,
            "/url",
        ),
    ] {
        let problem = send(api, method, path, body).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("there twice"), "{problem}");
    }
    assert_eq!(get(api, &path).await.expect_status(200)["name"], "a");
}

async fn mistakes_have_a_pointer_and_no_rust(api: &TestClient) {
    let room = room(api).await;
    let nobody = "0199c1de-7d3f-7000-8000-000000000001";
    let messages = format!("/api/rooms/{room}/messages");
    for (path, body, status, pointer) in [
        ("/api/rooms", json!({}), 400, "/name"),
        ("/api/rooms", json!({"name": 5}), 400, "/name"),
        ("/api/rooms", json!({"name": "x", "nmae": 1}), 400, "/nmae"),
        ("/api/rooms", json!({"name": "x", "agents": [5]}), 400, "/agents/0"),
        ("/api/rooms", json!({"name": "x", "agents": ["x"]}), 400, "/agents/0"),
        // What does not exist is alike everywhere.
        ("/api/rooms", json!({"name": "x", "agents": [nobody]}), 422, "/agents/0"),
        (&messages, json!({"text": "x", "mentions": [nobody]}), 422, "/mentions/0"),
        ("/api/agents", json!({"name": "x", "provider": "scripted", "skills": ["none"]}), 422, "/skills"),
        ("/api/agents", json!({"name": "x", "provider": "scripted", "limits": {"turns": 0}}), 400, "/limits/turns"),
        ("/api/agents", json!({"name": "x", "provider": "scripted", "model": ""}), 400, "/model"),
        ("/api/agents", json!({"name": "x", "provider": "none"}), 422, "/provider"),
        (&messages, json!({"text": " "}), 422, "/text"),
        (&messages, json!({"text": "x", "when_busy": "never"}), 400, "/when_busy"),
        ("/api/mcp-servers", json!({"name": "x", "urll": "https://a.example"}), 400, "/urll"),
        ("/api/mcp-servers", json!({"name": "x", "url": 5}), 400, "/url"),
    ] {
        let code = if status == 400 { "invalid_request" } else { "unprocessable" };
        let problem = post(api, path, &body).await.expect_problem(status, code);
        assert_eq!(problem["pointer"], pointer, "{path} {body}: {problem}");
        in_api_words(&problem);
    }
    for path in ["/api/runs?limit=abc", "/api/runs?all=yes", "/api/runs?status=gone", "/api/runs?room=x"] {
        let problem = get(api, path).await.expect_problem(400, "invalid_request");
        let name = path.split(['?', '=']).nth(1).unwrap();
        assert_eq!(problem["parameter"], name, "{problem}");
        in_api_words(&problem);
    }
}

#[track_caller]
fn in_api_words(problem: &Value) {
    let detail = problem["detail"].as_str().unwrap();
    for rust in ["struct ", "enum ", "u32", "u64", "usize", "variant", "digit", "ident", "Spec", "sequence", "untagged"]
    {
        assert!(!detail.contains(rust), "{rust:?} in {detail:?}");
    }
}

async fn a_patch_is_checked_like_the_settings(api: &TestClient) {
    let agent = agent(api, "a", json!({"system_prompt": "Be short."})).await;
    let path = format!("/api/agents/{agent}");
    for (body, pointer) in
        [(r#"{"nmae":"b"}"#, "/nmae"), (r#"{"name":null}"#, "/name"), (r#"{"skills":"x"}"#, "/skills")]
    {
        let problem = send(api, Method::PATCH, &path, body).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{body}: {problem}");
    }
    let changed = send(api, Method::PATCH, &path, r#"{"name":"b","system_prompt":null}"#).await.expect_status(200);
    assert_eq!((&changed["name"], &changed["system_prompt"]), (&json!("b"), &Value::Null));
}

async fn unknown_parameters_are_refused(api: &TestClient) {
    for path in ["/api/rooms?befor=x", "/api/runs?befor=x", "/api/audit?befor=x", "/api/approvals?befor=x"] {
        let problem = get(api, path).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["parameter"], "befor", "{path}: {problem}");
    }
}
