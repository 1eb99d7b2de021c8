use crate::test_app::{TestApp, config, header};
use axum::{body::Body, http::Method};
use server::HttpServerConfig;

fn small() -> TestApp {
    TestApp::with(HttpServerConfig { max_body_bytes: 100_000, ..config() })
}

#[tokio::test]
async fn a_valid_body_is_parsed() {
    let answer = small().post("/test/notes", r#"{"text":"hi \r\n there","numbers":[1,2]}"#).await.json();
    assert_eq!((&answer["text"], &answer["numbers"][1]), (&"hi \r\n there".into(), &2.into()));
}

#[tokio::test]
async fn every_bad_body_is_a_400_that_says_why() {
    let test_app = small();
    let deep = format!(r#"{{"text":"x","y":{}{}}}"#, "[".repeat(40_000), "]".repeat(40_000));
    for (body, why) in [
        (&b"{\"text\":"[..], "not valid JSON at line 1 column 8"),
        (b"{text:1}", "not valid JSON"),
        (b"{\"text\":\"a\"} trailing", "trailing"),
        (b"", "empty"),
        (b"[]", "does not fit"),
        (b"{\"text\":null}", "`/text` does not fit"),
        (b"{\"text\":\"x\",\"numbers\":[1,2,300]}", "`/numbers/2` does not fit"),
        (b"{\"numbers\":[]}", "`/text` does not fit: it is missing"),
        (b"{\"text\":\"\xff\xfe\"}", "not valid UTF-8 at byte 9"),
        (b"{\"text\":\"\\ud800\"}", "not valid JSON"),
        (deep.as_bytes(), "64 levels"),
    ] {
        let answer = test_app.post("/test/notes", body.to_vec()).await;
        assert_eq!(answer.problem(400), "invalid_request");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(why), "{detail}");
    }
    let pointed = test_app.post("/test/notes", r#"{"text":"x","numbers":["a"]}"#).await.json();
    assert_eq!(pointed["pointer"], "/numbers/0");
    let huge = format!(r#"{{"text":{{"a":"{}"}},"numbers":"{}"}}"#, "b".repeat(9), "c".repeat(90_000));
    assert!(test_app.post("/test/notes", huge).await.text.len() < 2_000, "the body is not echoed in full");
}

#[tokio::test]
async fn too_large_is_413_however_it_is_sent() {
    let test_app = small();
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000));
    let whole = test_app.send("/test/notes", |request| {
        let length = body.len().to_string();
        let mut request = header(header(request, "content-type", "application/json"), "content-length", &length);
        *request.method_mut() = Method::POST;
        request.map(|_| Body::from(body.clone()))
    });
    let whole = whole.await;
    assert_eq!(whole.problem(413), "payload_too_large");
    assert_eq!(whole.json()["max_bytes"], 100_000);

    let chunks = body.as_bytes().chunks(1000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>();
    let chunked = test_app.post("/test/notes", Body::from_stream(futures_util::stream::iter(chunks))).await;
    assert_eq!(chunked.problem(413), "payload_too_large");
    let get = test_app.send("/test/whoami", |request| header(request, "content-length", "99999999999")).await;
    assert_eq!(get.problem(413), "payload_too_large", "on every route");
    let just = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000 - 11));
    assert_eq!(test_app.post("/test/notes", just).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_times_out() {
    let endless = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(small().post("/test/notes", endless).await.problem(408), "request_timeout");
    let broken = futures_util::stream::iter([Ok(b"{".to_vec()), Err(std::io::Error::other("disconnected"))]);
    assert_eq!(small().post("/test/notes", Body::from_stream(broken)).await.problem(400), "invalid_request");
}

#[tokio::test]
async fn only_json_is_accepted() {
    let test_app = small();
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let answer = test_app.send("/test/notes", |mut request| {
            *request.method_mut() = Method::POST;
            let request = kind.into_iter().fold(request, |request, kind| header(request, "content-type", kind));
            request.map(|_| Body::from(r#"{"text":"x"}"#))
        });
        let answer = answer.await;
        assert_eq!(answer.problem(415), "unsupported_media_type");
        assert!(answer.text.contains("Content-Type: application/json"));
    }
}

#[tokio::test]
async fn an_unknown_id_and_a_malformed_id_get_the_same_response() {
    let test_app = small();
    let unknown = test_app.get("/test/rooms/01234567-89ab-7def-8123-456789abcdef").await;
    for garbage in ["x", "1", "%ff", "..%2f", "01234567-89ab-7def-8123-456789abcde", "%00"] {
        let answer = test_app.get(&format!("/test/rooms/{garbage}")).await;
        assert_eq!((answer.problem(404), answer.unnamed()), ("not_found".into(), unknown.unnamed()), "{garbage}");
    }
    let id = "01234567-89ab-7def-8123-456789abcde0";
    assert_eq!(test_app.get(&format!("/test/rooms/{id}")).await.json(), id);
    assert_eq!(test_app.get(&format!("/test/rooms/{id}/runs/{id}")).await.json(), serde_json::json!([id, id]));
    assert_eq!(test_app.get(&format!("/test/rooms/{id}/runs/x")).await.problem(404), "not_found");
}

#[tokio::test]
async fn query_parameters_are_parsed_strictly() {
    let test_app = small();
    let good = test_app.get("/test/list?limit=7&text=gr%C3%BCn+x").await.json();
    assert_eq!(good, serde_json::json!({"limit": 7, "text": "grün x"}));
    for bad in ["limit=-1", "limit=x", "limit=99999999999", "limit=1&limit=2", "text=%FF"] {
        let answer = test_app.get(&format!("/test/list?{bad}")).await;
        assert_eq!(answer.problem(400), "invalid_request", "{bad}");
        let name = if bad.starts_with("limit") { "limit" } else { "UTF-8" };
        assert!(answer.text.contains(name), "{}", answer.text);
    }
}

#[tokio::test]
async fn an_idempotency_key_is_visible_ascii_and_has_a_fingerprint() {
    let test_app = small();
    let sent = async |keys: &[&str], body: &str| {
        let answer = test_app.send("/test/notes", |request| {
            let request = header(request, "content-type", "application/json");
            let mut request = keys.iter().fold(request, |request, key| header(request, "idempotency-key", key));
            *request.method_mut() = Method::POST;
            request.map(|_| Body::from(body.to_owned()))
        });
        answer.await
    };
    let first = sent(&["a-b!~"], r#"{"text":"x"}"#).await.json();
    assert_eq!(first["key"], "a-b!~");
    assert_eq!(first["fingerprint"], sent(&["other"], r#"{"text":"x"}"#).await.json()["fingerprint"]);
    assert_ne!(first["fingerprint"], sent(&["a-b!~"], r#"{"text":"y"}"#).await.json()["fingerprint"]);
    assert_eq!(sent(&[], r#"{"text":"x"}"#).await.json()["key"], serde_json::Value::Null);
    assert_eq!(sent(&[&"k".repeat(255)], r#"{"text":"x"}"#).await.status, 200);
    for bad in [&[""][..], &["a b"], &["é"], &[&"k".repeat(256)], &["a", "a"]] {
        assert_eq!(sent(bad, r#"{"text":"x"}"#).await.problem(400), "invalid_request", "{bad:?}");
    }
}
