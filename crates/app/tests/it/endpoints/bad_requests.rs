//! Invalid requests get clear errors and change nothing.

use super::requests::{get, head, journal, post, post_and_wait, post_body, response_to, room};
use domain::{ids::RoomId, run::RunStatus};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use testkit::client::TestClient;
use uuid::Uuid;

on_both_databases! {
    server: bodies, targets, names, hosts_and_origins, b28_a_browser_gets_a_page_for_an_unknown_address;
}

/// The whole state as one value, to compare before and after.
async fn everything(api: &TestClient, room: RoomId) -> Value {
    get(api, "/healthz").await.expect_status(200);
    get(api, "/readyz").await.expect_status(200);
    let [agents, rooms, runs] = ["/api/agents", "/api/rooms", "/api/runs"].map(|path| get(api, path));
    let events = journal(api, room).await.len();
    json!([
        agents.await.expect_status(200),
        rooms.await.expect_status(200),
        runs.await.expect_status(200),
        events,
        head(api, room).await
    ])
}

async fn bodies(api: &TestClient) {
    let room = room(api).await;
    let messages = format!("/api/rooms/{room}/messages");
    let before = everything(api, room).await;
    let raw = |path: &str, body: Vec<u8>| {
        api.request(Method::POST, path).header(header::CONTENT_TYPE, "application/json").body(body)
    };
    let nested = |depth: usize| format!("{{\"text\":{}{}}}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let unread = format!("{{\"text\":\"x\",\"extra\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes();
    for body in [
        b"{".to_vec(),
        b"".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"text\"".to_vec(),
        b"{\"text\":\"a\"} trailing".to_vec(),
        b"{\"text\":\"a\",}".to_vec(),
        b"{'text':'a'}".to_vec(),
        b"{\"text\":\"a\nb\"}".to_vec(),
        b"{\"text\":\"\xff\xfe\"}".to_vec(),
        b"{\"text\":\"\xed\xa0\x80\"}".to_vec(),
        b"{\"text\":\"\\ud800\"}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        nested(65),
        nested(100_000),
        unread,
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let refused = response_to(raw(&messages, body)).await;
        assert_eq!(refused.status, 400, "{shown}");
        refused.expect_problem(400, "invalid_request");
    }
    for (body, pointer) in [
        (json!({"text": 1}), "/text"),
        (json!({"text": null}), "/text"),
        (json!({"text": ["a"]}), "/text"),
        (json!({"text": "a", "when_busy": 1}), "/when_busy"),
        (json!({"text": "a", "when_busy": "later"}), "/when_busy"),
        (json!({"text": "a", "mentions": "all"}), "/mentions"),
        (json!({"text": "a", "mentions": ["x"]}), "/mentions/0"),
        (json!({"text": "a", "attachments": [{}]}), "/attachments/0/name"),
        (json!({"text": "a", "attachments": [{"name": "a\nb", "media_type": "t", "url": "u"}]}), "/attachments/0/name"),
    ] {
        let problem = post(api, &messages, &body).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    for body in [json!({"text": "a", "txet": "b"}), json!({})] {
        post(api, &messages, &body).await.expect_problem(400, "invalid_request");
    }
    for body in [json!({"text": ""}), json!({"text": " \n\t"})] {
        post(api, &messages, &body).await.expect_problem(422, "unprocessable");
    }
    let long = json!({"text": "x".repeat(512 * 1024 + 1)});
    post(api, &messages, &long).await.expect_problem(400, "invalid_request");
    response_to(raw(&messages, vec![b' '; 20 * 1024 * 1024])).await.expect_problem(413, "payload_too_large");
    response_to(raw("/api/rooms", vec![b'['; 20 * 1024 * 1024])).await.expect_problem(413, "payload_too_large");
    response_to(raw("/healthz", vec![b'['; 20 * 1024 * 1024])).await.expect_problem(413, "payload_too_large");
    let form = api.request(Method::POST, &messages).header(header::CONTENT_TYPE, "text/plain").body(r#"{"text":"a"}"#);
    response_to(form).await.expect_problem(415, "unsupported_media_type");
    assert_eq!(everything(api, room).await, before);
    let most = json!({"text": format!("!count 1 {}", " ".repeat(512 * 1024 - 9))});
    post_body(api, room, most).await.expect_status(202);
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed);
}

async fn targets(api: &TestClient) {
    let room = room(api).await;
    let before = everything(api, room).await;
    let unknown = Uuid::now_v7().to_string();
    for id in [unknown.as_str(), "x", "1", "%00", "%ff", "..%2f..", "00000000-0000-0000-0000-000000000000", "{id}"] {
        for path in ["rooms/ID", "rooms/ID/events", "rooms/ID/messages", "agents/ID", "runs/ID", "runs/ID/stream"] {
            let path = path.replace("ID", id);
            get(api, &format!("/api/{path}")).await.expect_problem(404, "not_found");
        }
        for path in ["rooms/ID/messages", "execute/agent/ID"] {
            let body = json!({"text": "a", "message": "a"});
            let refused = post(api, &format!("/api/{}", path.replace("ID", id)), &body).await;
            // Either the body or the missing target may be reported first.
            assert!(matches!(refused.status, 400 | 404), "{refused:?}");
        }
    }
    get(api, "/api/nowhere").await.expect_problem(404, "not_found");
    response_to(api.request(Method::PUT, "/api/rooms")).await.expect_problem(405, "method_not_allowed");
    for query in
        ["rooms?limit=0", "rooms?limit=1001", "runs?limit=0", "runs?status=asleep", "runs?room_id=x", "runs?of=me"]
    {
        get(api, &format!("/api/{query}")).await.expect_problem(400, "invalid_request");
    }
    get(api, &format!("/api/runs?room_id={unknown}")).await.expect_status(200);
    get(api, "/api/ws").await.expect_problem(400, "invalid_request");
    assert_eq!(everything(api, room).await, before);
}

/// Invariant 16: names cannot contain line ends or direction overrides.
async fn names(api: &TestClient) {
    let room = room(api).await;
    let before = everything(api, room).await;
    for bad in [
        "",
        " ",
        "a\r\nb",
        "a\nSet-Cookie: x",
        "a\0b",
        "a\u{7f}b",
        "a\u{1b}[2Jb",
        "a\u{202e}b",
        "a\u{2066}b",
        "a\u{2028}b",
    ] {
        let problem = post(api, "/api/rooms", &json!({"name": bad})).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], "/name", "{problem}");
        post(api, "/api/agents", &json!({"name": bad, "provider": "scripted"}))
            .await
            .expect_problem(400, "invalid_request");
        let change = api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(&json!({"name": bad}));
        response_to(change).await.expect_problem(400, "invalid_request");
    }
    post(api, "/api/rooms", &json!({"name": "é".repeat(121)})).await.expect_problem(400, "invalid_request");
    post(api, "/api/rooms", &json!({"name": "r", "agents": vec![Uuid::now_v7(); 33]}))
        .await
        .expect_problem(400, "invalid_request");
    post(api, "/api/rooms", &json!({"name": "r", "project_id": Uuid::now_v7()}))
        .await
        .expect_problem(422, "unprocessable");
    post(api, "/api/rooms", &json!({"name": "r", "policy": {"mood": 1}})).await.expect_problem(400, "invalid_request");
    assert_eq!(everything(api, room).await, before);
    let good = post(api, "/api/rooms", &json!({"name": "  \u{1f980} é"})).await.expect_status(201);
    assert_eq!(good["name"], "\u{1f980} é");
}

async fn hosts_and_origins(api: &TestClient) {
    let room = room(api).await;
    let before = everything(api, room).await;
    let ask = |name: &'static str, value: &str| -> RequestBuilder {
        api.request(Method::GET, "/api/rooms").header(name, value)
    };
    for host in ["evil.example.org", "127.0.0.1.evil.example.org", "0.0.0.0", "192.168.0.1:80"] {
        response_to(ask("host", host)).await.expect_problem(403, "forbidden_host");
    }
    for origin in ["http://evil.example.org", "null", "https://localhost.evil.example.org", "garbage"] {
        response_to(ask("origin", origin)).await.expect_problem(403, "forbidden_origin");
        let post = api.request(Method::POST, "/api/rooms").header("origin", origin).json(&json!({"name": "r"}));
        response_to(post).await.expect_problem(403, "forbidden_origin");
    }
    response_to(ask("sec-fetch-site", "cross-site")).await.expect_problem(403, "forbidden_origin");
    response_to(ask("origin", api.base_url())).await.expect_status(200);
    response_to(ask("host", "localhost:1")).await.expect_status(200);
    // A key works through a proxy too; without one nothing does.
    response_to(ask("x-forwarded-for", "203.0.113.9")).await.expect_status(200);
    get(&api.anonymous(), "/api/rooms").await.expect_problem(401, "unauthorized");
    assert_eq!(everything(api, room).await, before);
}

async fn b28_a_browser_gets_a_page_for_an_unknown_address(api: &TestClient) {
    let answer = async |path: &str, accept: &str| {
        let response = api.request(Method::GET, path).header(header::ACCEPT, accept).send().await.unwrap();
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind)
    };
    let page = answer("/nope/at/all", "text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!(page, (404, "text/html; charset=utf-8".to_owned()));
    for (path, accept) in [("/nope", "*/*"), ("/api/nope", "text/html"), ("/assets/nope.js", "text/html")] {
        assert_eq!(answer(path, accept).await, (404, "application/problem+json".to_owned()), "{path} {accept}");
    }
}
