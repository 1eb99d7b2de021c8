//! Uploads: stored, downloaded, and passed to agents as attachments.

use super::{
    binary::Binary,
    requests::{ApiResponse, delete, form, get, head, message_of, post_body, response_to, room, runs_of, wait_for_end},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use uuid::Uuid;

on_both_databases! {
    server: download_equals_upload, active_content_is_never_rendered, size_and_name_limits,
            uploads_are_idempotent, only_uploads_can_be_attached, uploads_are_listed_in_pages,
            several_files_in_one_form, a_repeated_form_uploads_once;
    database: agent_gets_attachments_as_files, uploads_are_private, a_form_that_fails_leaves_nothing;
}

async fn upload(api: &TestClient, name: &str, kind: &str, bytes: impl Into<reqwest::Body>) -> ApiResponse {
    let name: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let request = api.request(Method::POST, &format!("/api/uploads?name={name}"));
    response_to(request.header("content-type", kind).body(bytes)).await
}

fn attach(text: &str, upload: &Value) -> Value {
    json!({"text": text, "attachments": [{"name": "whatever", "media_type": "x/y", "url": upload["url"]}]})
}

async fn download_equals_upload(api: &TestClient) {
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let made = upload(api, "Bild 🎭.png", "image/png", bytes.clone()).await.expect_status(201);
    assert_eq!(
        (&made["name"], &made["bytes"], &made["media_type"]),
        (&json!("Bild 🎭.png"), &json!(3_000_000), &json!("image/png"))
    );
    let response = api.request(Method::GET, made["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    assert!(response.headers()["content-disposition"].to_str().unwrap().starts_with("inline"));
    assert_eq!(response.bytes().await.unwrap(), bytes);
    assert_eq!(delete(api, made["url"].as_str().unwrap()).await.status, 204);
    get(api, made["url"].as_str().unwrap()).await.expect_problem(404, "not_found");
    delete(api, made["url"].as_str().unwrap()).await.expect_problem(404, "not_found");
    upload(api, "empty", "text/plain", "").await.expect_status(201);
}

async fn uploads_are_listed_in_pages(api: &TestClient) {
    let mut made = Vec::new();
    for number in 0..5 {
        let upload = upload(api, &format!("{number}.txt"), "text/plain", "x").await.expect_status(201);
        made.push(upload["uploads"][0].clone());
    }
    made.reverse();
    let (mut listed, mut path) = (Vec::new(), "/api/uploads?limit=2".to_owned());
    loop {
        let page = get(api, &path).await.expect_status(200);
        listed.extend(page["uploads"].as_array().unwrap().clone());
        // An upload between two pages moves nothing.
        upload(api, "later.txt", "text/plain", "x").await.expect_status(201);
        match page["next"].as_str() {
            Some(next) => path = format!("/api/uploads?limit=2&before={next}"),
            None => break,
        }
    }
    assert_eq!(listed, made);
    delete(api, made[0]["url"].as_str().unwrap()).await;
    let left = get(api, "/api/uploads").await.expect_status(200);
    assert!(left["uploads"].as_array().unwrap().iter().all(|upload| upload["id"] != made[0]["id"]), "{left}");
    for bad in ["limit=0", "limit=1001", "before=x"] {
        get(api, &format!("/api/uploads?{bad}")).await.expect_problem(400, "invalid_request");
    }
}

/// Sends files as a form: their names, types and contents.
async fn send_files(api: &TestClient, boundary: &str, files: &[(&str, &str, &[u8])]) -> ApiResponse {
    send_form(api, "/api/uploads", boundary, form(boundary, files)).await
}

async fn send_form(api: &TestClient, path: &str, boundary: &str, body: Vec<u8>) -> ApiResponse {
    let kind = format!("multipart/form-data; boundary={boundary}");
    response_to(api.request(Method::POST, path).header("content-type", kind).body(body)).await
}

async fn several_files_in_one_form(api: &TestClient) {
    let large: Vec<u8> = (0..=255).cycle().take(2_000_000).collect();
    // A field without a file name is not a file.
    let mut body = b"--b\r\nContent-Disposition: form-data; name=\"comment\"\r\n\r\nthree files\r\n".to_vec();
    let files: [(&str, &str, &[u8]); 3] = [
        ("Bild 🎭.png", "image/png", &large),
        ("notes.txt", "text/plain; charset=utf-8", b"one"),
        ("empty", "a/b", b""),
    ];
    body.extend(form("b", &files));
    let made = send_form(api, "/api/uploads", "b", body).await.expect_status(201);
    let uploads = made["uploads"].as_array().unwrap();
    let told: Vec<_> =
        uploads.iter().map(|upload| (upload["name"].as_str().unwrap(), upload["bytes"].as_u64().unwrap())).collect();
    assert_eq!(told, [("Bild 🎭.png", 2_000_000), ("notes.txt", 3), ("empty", 0)]);
    assert_eq!((&uploads[0]["media_type"], &uploads[1]["media_type"]), (&json!("image/png"), &json!("text/plain")));
    assert_eq!((&made["id"], &made["url"]), (&uploads[0]["id"], &uploads[0]["url"]), "the first of them");
    let stored = api.request(Method::GET, uploads[0]["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(stored.bytes().await.unwrap(), large);
    assert_eq!(get(api, uploads[1]["url"].as_str().unwrap()).await.text, "one");
    let listed = get(api, "/api/uploads").await.expect_status(200);
    assert_eq!(listed["uploads"].as_array().unwrap().len(), 3);
    let one = upload(api, "a.txt", "text/plain", "x").await.expect_status(201);
    assert_eq!(one["uploads"][0]["url"], one["url"], "a single file has the same shape");
    // All of them in one message.
    let room = room(api).await;
    let attachments: Vec<Value> =
        uploads.iter().map(|upload| json!({"name": "x", "media_type": "x/y", "url": upload["url"]})).collect();
    let posted = post_body(api, room, json!({"text": "see", "attachments": attachments})).await.expect_status(202);
    let run = wait_for_end(api, runs_of(&posted)[0]).await;
    let text = message_of(api, &run).await.text;
    assert!(text.contains("Attached files: - attachments/"), "{text}");
    assert_eq!(posted["message"]["attachments"].as_array().unwrap().len(), 3);
}

async fn a_repeated_form_uploads_once(api: &TestClient) {
    // A client that repeats a form chooses another boundary.
    let send = async |boundary: &str, second: &[u8]| {
        let body = form(boundary, &[("a", "a/b", b"one"), ("b", "a/b", second)]);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let request = api.request(Method::POST, "/api/uploads").header("idempotency-key", "form");
        response_to(request.header("content-type", kind).body(body)).await
    };
    let first = send("x", b"two").await.expect_status(201);
    assert_eq!(send("y", b"two").await.expect_status(201), first);
    assert_eq!(get(api, "/api/uploads").await.expect_status(200)["uploads"].as_array().unwrap().len(), 2);
    send("z", b"three").await.expect_problem(409, "idempotency_conflict");
}

async fn a_form_that_fails_leaves_nothing(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("limits.stored_bytes_per_workspace", "3000000")]).await;
    let api = server.api();
    let folder = server.database().folder().join("uploads");
    let good: (&str, &str, &[u8]) = ("good.txt", "text/plain", b"good");
    let (long, large, share) = ("x".repeat(121), vec![7; 25_000_001], vec![7; 4_000_000]);
    for (files, status, code) in [
        (vec![], 400, "invalid_request"),
        (vec![good, (&long, "a/b", b"x")], 400, "invalid_request"),
        (vec![good, ("large", "a/b", &large)], 413, "payload_too_large"),
        (vec![good, ("share", "a/b", &share)], 507, "storage_full"),
        (vec![good; 33], 400, "invalid_request"),
    ] {
        send_files(api, "b", &files).await.expect_problem(status, code);
    }
    let body = || form("b", &[good]);
    send_form(api, "/api/uploads?name=x", "b", body()).await.expect_problem(422, "unprocessable");
    // Cut off in the second file.
    let two = form("b", &[good, ("b", "a/b", b"two")]);
    send_form(api, "/api/uploads", "b", two[..two.len() - 10].to_vec()).await.expect_problem(400, "invalid_request");
    assert_eq!(get(api, "/api/uploads").await.expect_status(200)["uploads"], json!([]));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no file may be left");
    send_form(api, "/api/uploads", "b", body()).await.expect_status(201);
    server.finish().await;
}

async fn active_content_is_never_rendered(api: &TestClient) {
    for kind in ["text/html", "image/svg+xml", "text/javascript", "text/css", "application/xhtml+xml"] {
        let made = upload(api, "page.html", kind, "<script>alert(1)</script>").await.expect_status(201);
        let shown = get(api, made["url"].as_str().unwrap()).await;
        assert_eq!(shown.header("content-type"), "application/octet-stream", "{kind}");
        assert!(shown.header("content-disposition").starts_with("attachment"), "{kind}");
        assert_eq!(shown.header("x-content-type-options"), "nosniff");
        assert!(shown.header("content-security-policy").contains("sandbox"), "{kind}");
        assert_eq!(shown.header("cross-origin-resource-policy"), "same-origin");
    }
}

async fn size_and_name_limits(api: &TestClient) {
    let most = vec![7; 25_000_000];
    let larger = [most.as_slice(), &[7]].concat();
    assert_eq!(upload(api, "most", "a/b", most).await.expect_status(201)["bytes"], 25_000_000);
    assert_eq!(
        upload(api, "more", "a/b", larger.clone()).await.expect_problem(413, "payload_too_large")["max_bytes"],
        25_000_000
    );
    // Without a content length.
    let pieces = larger.chunks(1 << 20).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    upload(api, "more", "a/b", stream).await.expect_problem(413, "payload_too_large");
    // The longest is 12,000 bytes when encoded: a head beyond 16 KiB is rejected before it reaches the endpoint.
    for bad in ["", " ", "a\nb", &"x".repeat(121), &"x".repeat(4000)] {
        upload(api, bad, "a/b", "x").await.expect_problem(400, "invalid_request");
    }
    let unnamed = response_to(api.request(Method::POST, "/api/uploads").body("x")).await;
    unnamed.expect_problem(422, "unprocessable");
    assert_eq!(
        upload(api, "odd", "no type at all", "x").await.expect_status(201)["media_type"],
        "application/octet-stream"
    );
    // Other endpoints keep their own limit.
    let large = json!({"name": "x".repeat(3_000_000)});
    super::requests::post(api, "/api/rooms", &large).await.expect_problem(413, "payload_too_large");
}

async fn uploads_are_idempotent(api: &TestClient) {
    let send = |bytes: &'static str| {
        let request = api.request(Method::POST, "/api/uploads?name=a.txt").header("idempotency-key", "k");
        response_to(request.header("content-type", "text/plain").body(bytes))
    };
    let first = send("one").await.expect_status(201);
    assert_eq!(send("one").await.expect_status(201), first);
    send("two").await.expect_problem(409, "idempotency_conflict");
}

async fn only_uploads_can_be_attached(api: &TestClient) {
    let room = room(api).await;
    let before = head(api, room).await;
    for url in [
        format!("/api/uploads/{}", Uuid::now_v7()),
        "https://evil.example/x".into(),
        "/etc/passwd".into(),
        String::new(),
    ] {
        let refused =
            post_body(api, room, attach("see", &json!({"url": url}))).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], "/attachments");
    }
    assert_eq!(head(api, room).await, before, "nothing may be stored");
}

async fn agent_gets_attachments_as_files(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api();
    let room = room(api).await;
    let folder = server.database().folder().join("rooms").join(room.to_string());
    let (mut files, mut last) = (Vec::new(), Value::Null);
    for (name, content) in [("notes.txt", "one"), ("notes.txt", "two"), ("../../../etc/evil", "three")] {
        last = upload(api, name, "text/plain", content).await.expect_status(201);
        let posted = post_body(api, room, attach("", &last)).await.expect_status(202);
        let told = &posted["message"]["attachments"][0];
        assert_eq!((&told["name"], &told["media_type"]), (&json!(name), &json!("text/plain")), "must be as uploaded");
        let run = wait_for_end(api, runs_of(&posted)[0]).await;
        let text = message_of(api, &run).await.text;
        let file = text.split_whitespace().find(|word| word.starts_with("attachments/"));
        let file = folder.join(file.unwrap_or_else(|| panic!("no attachment path in {text}")));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        assert!(file.canonicalize().unwrap().starts_with(folder.canonicalize().unwrap()), "{}", file.display());
        files.push(file);
    }
    assert!(files.iter().all(|file| file.is_file()) && files[0] != files[1], "equal names must get separate files");

    // A symlink in file of the attachments folder: nothing is written through it, and the run fails.
    let outside = tempfile::tempdir().unwrap();
    std::fs::remove_dir_all(folder.join("attachments")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("attachments")).unwrap();
    let posted = post_body(api, room, attach("again", &last)).await.expect_status(202);
    let run = wait_for_end(api, runs_of(&posted)[0]).await;
    assert_eq!(run.error.unwrap().code, "attachment_failed");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    server.finish().await;
}

async fn uploads_are_private(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |user| {
        binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned()
    };
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    let (ada, bob) = (api.clone().with_token(ada), api.clone().with_token(bob));
    let hers = upload(&ada, "secret.txt", "text/plain", "hers").await.expect_status(201);
    let path = hers["url"].as_str().unwrap();
    let nothing = get(&bob, &format!("/api/uploads/{}", Uuid::now_v7())).await.expect_problem(404, "not_found");
    assert_eq!(get(&bob, path).await.expect_problem(404, "not_found"), nothing);
    delete(&bob, path).await.expect_problem(404, "not_found");
    get(&api, path).await.expect_problem(401, "unauthorized");
    assert_eq!(upload(&api, "x", "a/b", "x").await.status, StatusCode::UNAUTHORIZED.as_u16());
    let room = bob.create_room("His", &[]).await.unwrap().id;
    post_body(&bob, room, attach("mine now", &hers)).await.expect_problem(422, "unprocessable");
    assert_eq!(get(&ada, path).await.text, "hers");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
