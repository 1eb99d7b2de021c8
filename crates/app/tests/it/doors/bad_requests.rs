//! Bad requests are answered clearly and harm nothing.

use super::scene::{answer, answered, get, head, journal, post, room, say_with};
use domain::{ids::RoomId, run::RunStatus};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use testkit::client::Api;
use uuid::Uuid;

doors! {
    server: bodies, targets, names, hosts_and_origins;
}

/// Everything there is, as one value: what is unharmed is equal before and after.
async fn everything(api: &Api, room: RoomId) -> Value {
    get(api, "/healthz").await.is(200);
    get(api, "/readyz").await.is(200);
    let [agents, rooms, runs] = ["/api/agents", "/api/rooms", "/api/runs"].map(|path| get(api, path));
    let events = journal(api, room).await.len();
    json!([agents.await.is(200), rooms.await.is(200), runs.await.is(200), events, head(api, room).await])
}

async fn bodies(api: &Api) {
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
        let refused = answer(raw(&messages, body)).await;
        assert_eq!(refused.status, 400, "{shown}");
        refused.is_refused(400, "invalid_request");
    }
    for (body, pointer) in [
        (json!({"text": 1}), "/text"),
        (json!({"text": null}), "/text"),
        (json!({"text": ["a"]}), "/text"),
        (json!({"text": "a", "when_busy": 1}), "/when_busy"),
        (json!({"text": "a", "when_busy": "later"}), "/when_busy"),
        (json!({"text": "a", "mentions": "all"}), "/mentions"),
        (json!({"text": "a", "mentions": ["x"]}), "/mentions/0"),
        (json!({"text": "a", "attachments": [{}]}), "/attachments/0"),
        (json!({"text": "a", "attachments": [{"name": "a\nb", "media_type": "t", "url": "u"}]}), "/attachments/0/name"),
    ] {
        let problem = post(api, &messages, &body).await.is_refused(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    for body in [json!({"text": "a", "txet": "b"}), json!({}), json!({"text": ""}), json!({"text": " \n\t"})] {
        post(api, &messages, &body).await.is_refused(400, "invalid_request");
    }
    let long = json!({"text": "x".repeat(512 * 1024 + 1)});
    post(api, &messages, &long).await.is_refused(400, "invalid_request");
    answer(raw(&messages, vec![b' '; 20 * 1024 * 1024])).await.is_refused(413, "payload_too_large");
    answer(raw("/api/rooms", vec![b'['; 20 * 1024 * 1024])).await.is_refused(413, "payload_too_large");
    answer(raw("/healthz", vec![b'['; 20 * 1024 * 1024])).await.is_refused(413, "payload_too_large");
    let form = api.request(Method::POST, &messages).header(header::CONTENT_TYPE, "text/plain").body(r#"{"text":"a"}"#);
    answer(form).await.is_refused(415, "unsupported_media_type");
    assert_eq!(everything(api, room).await, before);
    let most = json!({"text": format!("!count 1 {}", " ".repeat(512 * 1024 - 9))});
    say_with(api, room, most).await.is(202);
    assert_eq!(answered(api, room, "!count 2").await.status, RunStatus::Completed);
}

async fn targets(api: &Api) {
    let room = room(api).await;
    let before = everything(api, room).await;
    let unknown = Uuid::now_v7().to_string();
    for id in [unknown.as_str(), "x", "1", "%00", "%ff", "..%2f..", "00000000-0000-0000-0000-000000000000", "{id}"] {
        for path in ["rooms/ID", "rooms/ID/events", "rooms/ID/messages", "agents/ID", "runs/ID", "runs/ID/stream"] {
            let path = path.replace("ID", id);
            get(api, &format!("/api/{path}")).await.is_refused(404, "not_found");
        }
        for path in ["rooms/ID/messages", "execute/agent/ID"] {
            let body = json!({"text": "a", "message": "a"});
            let refused = post(api, &format!("/api/{}", path.replace("ID", id)), &body).await;
            // Whether the body fits is not asked before whether there is anything to put it into; both are refusals.
            assert!(matches!(refused.status, 400 | 404), "{refused:?}");
        }
    }
    get(api, "/api/nowhere").await.is_refused(404, "not_found");
    answer(api.request(Method::PUT, "/api/rooms")).await.is_refused(405, "method_not_allowed");
    for query in
        ["rooms?limit=0", "rooms?limit=1001", "runs?limit=0", "runs?status=asleep", "runs?room_id=x", "runs?of=me"]
    {
        get(api, &format!("/api/{query}")).await.is_refused(400, "invalid_request");
    }
    get(api, &format!("/api/runs?room_id={unknown}")).await.is(200);
    get(api, "/api/ws").await.is_refused(400, "invalid_request");
    assert_eq!(everything(api, room).await, before);
}

/// Invariant 16: what ends a line or turns it around is in no name.
async fn names(api: &Api) {
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
        let problem = post(api, "/api/rooms", &json!({"name": bad})).await.is_refused(400, "invalid_request");
        assert_eq!(problem["pointer"], "/name", "{problem}");
        post(api, "/api/agents", &json!({"name": bad, "provider": "scripted"}))
            .await
            .is_refused(400, "invalid_request");
        let change = api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(&json!({"name": bad}));
        answer(change).await.is_refused(400, "invalid_request");
    }
    post(api, "/api/rooms", &json!({"name": "é".repeat(121)})).await.is_refused(400, "invalid_request");
    post(api, "/api/rooms", &json!({"name": "r", "agents": vec![Uuid::now_v7(); 33]}))
        .await
        .is_refused(400, "invalid_request");
    post(api, "/api/rooms", &json!({"name": "r", "project_id": Uuid::now_v7()}))
        .await
        .is_refused(400, "invalid_request");
    post(api, "/api/rooms", &json!({"name": "r", "policy": {"mood": 1}})).await.is_refused(400, "invalid_request");
    assert_eq!(everything(api, room).await, before);
    let good = post(api, "/api/rooms", &json!({"name": "  \u{1f980} é"})).await.is(201);
    assert_eq!(good["name"], "\u{1f980} é");
}

async fn hosts_and_origins(api: &Api) {
    let room = room(api).await;
    let before = everything(api, room).await;
    let ask = |name: &'static str, value: &str| -> RequestBuilder {
        api.request(Method::GET, "/api/rooms").header(name, value)
    };
    for host in ["evil.example.org", "127.0.0.1.evil.example.org", "0.0.0.0", "192.168.0.1:80"] {
        answer(ask("host", host)).await.is_refused(403, "forbidden_host");
    }
    for origin in ["http://evil.example.org", "null", "https://localhost.evil.example.org", "garbage"] {
        answer(ask("origin", origin)).await.is_refused(403, "forbidden_origin");
        let post = api.request(Method::POST, "/api/rooms").header("origin", origin).json(&json!({"name": "r"}));
        answer(post).await.is_refused(403, "forbidden_origin");
    }
    answer(ask("sec-fetch-site", "cross-site")).await.is_refused(403, "forbidden_origin");
    answer(ask("origin", api.base())).await.is(200);
    answer(ask("host", "localhost:1")).await.is(200);
    // Somebody else's words, carried by a proxy on this machine.
    answer(ask("x-forwarded-for", "203.0.113.9")).await.is_refused(401, "unauthorized");
    assert_eq!(everything(api, room).await, before);
}
