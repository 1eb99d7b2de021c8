//! What a consumer of HTTP expects besides the bodies: Accept, Location, ETag, compression, ranges, OPTIONS.

use super::requests::{ApiResponse, agent, get, post, response_to, room};
use reqwest::{Method, header};
use serde_json::json;
use std::io::Read as _;
use testkit::client::TestClient;

on_both_databases! {
    server: accept_is_negotiated, created_objects_have_a_location, a_known_response_is_not_sent_again,
            json_is_compressed_and_streams_are_not, compressed_bodies_are_refused, a_part_of_a_file_can_be_read,
            an_upload_needs_bytes, options_and_trailing_slashes_are_answered, problems_name_their_request,
            health_checks_are_not_counted;
}

async fn with(api: &TestClient, method: Method, path: &str, name: &str, value: &str) -> ApiResponse {
    response_to(api.request(method, path).header(name, value)).await
}

async fn accept_is_negotiated(api: &TestClient) {
    let path = format!("/api/rooms/{}/events", room(api).await);
    for accept in [
        "application/json, text/event-stream;q=0",
        "application/json, text/event-stream;q=0.1",
        "*/*",
        "text/html, application/*;q=0.5",
    ] {
        let answer = with(api, Method::GET, &path, "accept", accept).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"), "{accept}");
    }
    for accept in ["TEXT/EVENT-STREAM", "application/json;q=0.1, text/event-stream"] {
        let stream = api.request(Method::GET, &path).header("accept", accept).send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream", "{accept}");
    }
    with(api, Method::GET, &path, "accept", "application/xml").await.expect_problem(406, "not_acceptable");
}

async fn created_objects_have_a_location(api: &TestClient) {
    let skill = json!({"name": "greet", "description": "Greets people when they arrive.", "body": "Say hello."});
    for (path, body) in [
        ("/api/agents", json!({"name": "a", "provider": "scripted"})),
        ("/api/rooms", json!({"name": "a"})),
        ("/api/projects", json!({"name": "a", "sandbox": "none"})),
        ("/api/skills", skill),
        ("/api/mcp-servers", json!({"name": "hub", "url": "https://hub.example.org/mcp"})),
    ] {
        let created = post(api, path, &body).await;
        let found = created.expect_status(201);
        let shown = get(api, created.header("location")).await.expect_status(200);
        assert_eq!(shown["name"], found["name"], "{path}");
    }
    let created = response_to(api.request(Method::POST, "/api/uploads?name=a.txt").body("hello")).await;
    created.expect_status(201);
    assert_eq!(get(api, created.header("location")).await.text, "hello");
}

async fn a_known_response_is_not_sent_again(api: &TestClient) {
    let room = room(api).await;
    let path = format!("/api/rooms/{room}");
    let first = get(api, &path).await;
    let tag = first.header("etag").to_owned();
    let again = with(api, Method::GET, &path, "if-none-match", &tag).await;
    assert_eq!((again.status, again.text.as_str(), again.header("etag")), (304, "", tag.as_str()));
    response_to(api.request(Method::PATCH, &path).json(&json!({"name": "other"}))).await.expect_status(200);
    let changed = with(api, Method::GET, &path, "if-none-match", &tag).await;
    assert_eq!(changed.expect_status(200)["name"], "other");
    assert_ne!(changed.header("etag"), tag);
}

async fn json_is_compressed_and_streams_are_not(api: &TestClient) {
    let plain = get(api, "/openapi.json").await;
    assert!(!plain.headers.contains_key("content-encoding"));
    let request = api.request(Method::GET, "/openapi.json").header("accept-encoding", "gzip");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert!(response.headers()["vary"].to_str().unwrap().contains("accept-encoding"));
    let bytes = response.bytes().await.unwrap();
    assert!(bytes.len() * 4 < plain.text.len(), "{} of {}", bytes.len(), plain.text.len());
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text);

    let path = format!("/api/rooms/{}/events", room(api).await);
    let stream = api.request(Method::GET, &path).header("accept", "text/event-stream");
    let stream = stream.header("accept-encoding", "gzip").send().await.unwrap();
    assert!(!stream.headers().contains_key("content-encoding") && !stream.headers().contains_key("etag"));
}

async fn compressed_bodies_are_refused(api: &TestClient) {
    let request = || api.request(Method::POST, "/api/rooms").json(&json!({"name": "a"}));
    let zipped = response_to(request().header(header::CONTENT_ENCODING, "gzip")).await;
    zipped.expect_problem(415, "unsupported_media_type");
    let wide = api.request(Method::POST, "/api/rooms").header(header::CONTENT_TYPE, "application/json; charset=utf-16");
    let wide = wide.body("{}");
    response_to(wide).await.expect_problem(415, "unsupported_media_type");
    response_to(request().header(header::EXPECT, "magic")).await.expect_problem(417, "expectation_failed");
    response_to(request().header(header::CONTENT_ENCODING, "identity")).await.expect_status(201);
}

async fn a_part_of_a_file_can_be_read(api: &TestClient) {
    let created = response_to(api.request(Method::POST, "/api/uploads?name=a.txt").body("0123456789")).await;
    let path = created.header("location").to_owned();
    let whole = get(api, &path).await;
    assert_eq!((whole.status, whole.header("accept-ranges")), (200, "bytes"));
    for (range, content, text) in
        [("bytes=2-4", "bytes 2-4/10", "234"), ("bytes=7-", "bytes 7-9/10", "789"), ("bytes=-1", "bytes 9-9/10", "9")]
    {
        let part = with(api, Method::GET, &path, "range", range).await;
        assert_eq!((part.status, part.text.as_str()), (206, text), "{range}");
        assert_eq!((part.header("content-range"), part.header("content-length")), (content, &*text.len().to_string()));
    }
    let beyond = with(api, Method::GET, &path, "range", "bytes=10-").await;
    beyond.expect_problem(416, "range_not_satisfiable");
    assert_eq!(beyond.header("content-range"), "bytes */10");
}

async fn an_upload_needs_bytes(api: &TestClient) {
    let empty = response_to(api.request(Method::POST, "/api/uploads?name=a.txt")).await;
    empty.expect_problem(400, "invalid_request");
}

async fn options_and_trailing_slashes_are_answered(api: &TestClient) {
    let options = response_to(api.request(Method::OPTIONS, "/api/rooms")).await;
    assert_eq!((options.status, options.text.as_str()), (204, ""));
    assert!(options.header("allow").contains("GET") && options.header("allow").contains("POST"));
    // The client follows the redirect with its method and body.
    let created = post(api, "/api/rooms/", &json!({"name": "a"})).await.expect_status(201);
    assert_eq!(created["name"], "a");
    assert!(get(api, "/api/rooms/?limit=1").await.expect_status(200)["rooms"].is_array());
    get(api, "/api/nothing").await.expect_problem(404, "not_found");
    get(api, "/api//").await.expect_problem(404, "not_found");
}

async fn problems_name_their_request(api: &TestClient) {
    let agent = agent(api, "a", json!({})).await;
    let missing = get(api, &format!("/api/rooms/{agent}")).await;
    let problem = missing.expect_problem(404, "not_found");
    assert_eq!(problem["type"], "urn:greenroom:problem:not_found");
    assert_eq!(missing.json()["instance"], format!("urn:greenroom:request:{}", missing.header("x-request-id")));
    assert_eq!(missing.header("content-length"), missing.text.len().to_string());
}

/// A monitor behind the same proxy as a busy caller must get its answer.
async fn health_checks_are_not_counted(api: &TestClient) {
    for _ in 0..600 {
        get(api, "/healthz").await.expect_status(200);
    }
}
