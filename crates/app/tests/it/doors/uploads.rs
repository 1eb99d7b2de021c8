//! Files: uploaded by people, given back as something to save, and handed to the agents that are told of them.

use super::{
    binary::Binary,
    scene::{Answer, answer, delete, ended, get, head, message_of, room, runs_of, say_with},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::Api, database::TestDatabase, server::TestServer};
use uuid::Uuid;

doors! {
    server: a_file_comes_back_as_it_was, what_a_file_holds_never_runs_here, files_and_names_are_bounded,
            a_repeated_upload_is_one, only_uploads_can_be_attached;
    database: an_agent_finds_what_was_attached, uploads_are_their_owners_own;
}

async fn upload(api: &Api, name: &str, kind: &str, bytes: impl Into<reqwest::Body>) -> Answer {
    let name: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let request = api.request(Method::POST, &format!("/api/uploads?name={name}"));
    answer(request.header("content-type", kind).body(bytes)).await
}

fn attach(text: &str, upload: &Value) -> Value {
    json!({"text": text, "attachments": [{"name": "whatever", "media_type": "x/y", "url": upload["url"]}]})
}

async fn a_file_comes_back_as_it_was(api: &Api) {
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let made = upload(api, "Bild 🎭.png", "image/png", bytes.clone()).await.is(201);
    assert_eq!(
        (&made["name"], &made["bytes"], &made["media_type"]),
        (&json!("Bild 🎭.png"), &json!(3_000_000), &json!("image/png"))
    );
    let response = api.request(Method::GET, made["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    assert!(response.headers()["content-disposition"].to_str().unwrap().starts_with("inline"));
    assert_eq!(response.bytes().await.unwrap(), bytes);
    assert_eq!(delete(api, made["url"].as_str().unwrap()).await.status, 204);
    get(api, made["url"].as_str().unwrap()).await.is_refused(404, "not_found");
    delete(api, made["url"].as_str().unwrap()).await.is_refused(404, "not_found");
    upload(api, "empty", "text/plain", "").await.is(201);
}

async fn what_a_file_holds_never_runs_here(api: &Api) {
    for kind in ["text/html", "image/svg+xml", "text/javascript", "text/css", "application/xhtml+xml"] {
        let made = upload(api, "page.html", kind, "<script>alert(1)</script>").await.is(201);
        let shown = get(api, made["url"].as_str().unwrap()).await;
        assert_eq!(shown.header("content-type"), "application/octet-stream", "{kind}");
        assert!(shown.header("content-disposition").starts_with("attachment"), "{kind}");
        assert_eq!(shown.header("x-content-type-options"), "nosniff");
        assert!(shown.header("content-security-policy").contains("sandbox"), "{kind}");
        assert_eq!(shown.header("cross-origin-resource-policy"), "same-origin");
    }
}

async fn files_and_names_are_bounded(api: &Api) {
    let most = vec![7; 25_000_000];
    let larger = [most.as_slice(), &[7]].concat();
    assert_eq!(upload(api, "most", "a/b", most).await.is(201)["bytes"], 25_000_000);
    assert_eq!(
        upload(api, "more", "a/b", larger.clone()).await.is_refused(413, "payload_too_large")["max_bytes"],
        25_000_000
    );
    // Without saying beforehand how large it is.
    let pieces = larger.chunks(1 << 20).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    upload(api, "more", "a/b", stream).await.is_refused(413, "payload_too_large");
    for bad in ["", " ", "a\nb", &"x".repeat(121), &"x".repeat(6000)] {
        upload(api, bad, "a/b", "x").await.is_refused(400, "invalid_request");
    }
    let unnamed = answer(api.request(Method::POST, "/api/uploads").body("x")).await;
    unnamed.is_refused(400, "invalid_request");
    assert_eq!(upload(api, "odd", "no type at all", "x").await.is(201)["media_type"], "application/octet-stream");
    // Other doors keep their own bound.
    let large = json!({"name": "x".repeat(3_000_000)});
    super::scene::post(api, "/api/rooms", &large).await.is_refused(413, "payload_too_large");
}

async fn a_repeated_upload_is_one(api: &Api) {
    let send = |bytes: &'static str| {
        let request = api.request(Method::POST, "/api/uploads?name=a.txt").header("idempotency-key", "k");
        answer(request.header("content-type", "text/plain").body(bytes))
    };
    let first = send("one").await.is(201);
    assert_eq!(send("one").await.is(201), first);
    send("two").await.is_refused(409, "idempotency_conflict");
}

async fn only_uploads_can_be_attached(api: &Api) {
    let room = room(api).await;
    let before = head(api, room).await;
    for url in [
        format!("/api/uploads/{}", Uuid::now_v7()),
        "https://evil.example/x".into(),
        "/etc/passwd".into(),
        String::new(),
    ] {
        let refused = say_with(api, room, attach("see", &json!({"url": url}))).await.is_refused(422, "unprocessable");
        assert_eq!(refused["pointer"], "/attachments");
    }
    assert_eq!(head(api, room).await, before, "nothing was stored");
}

async fn an_agent_finds_what_was_attached(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api();
    let room = room(api).await;
    let folder = server.database().folder().join("rooms").join(room.to_string());
    let (mut places, mut last) = (Vec::new(), Value::Null);
    for (name, content) in [("notes.txt", "one"), ("notes.txt", "two"), ("../../../etc/evil", "three")] {
        last = upload(api, name, "text/plain", content).await.is(201);
        let posted = say_with(api, room, attach("", &last)).await.is(202);
        let told = &posted["message"]["attachments"][0];
        assert_eq!((&told["name"], &told["media_type"]), (&json!(name), &json!("text/plain")), "as it was uploaded");
        let run = ended(api, runs_of(&posted)[0]).await;
        let heard = message_of(api, &run).await.text;
        let place = heard.split_whitespace().find(|word| word.starts_with("attachments/"));
        let place = folder.join(place.unwrap_or_else(|| panic!("no line for it in {heard}")));
        assert_eq!(std::fs::read_to_string(&place).unwrap(), content);
        assert!(place.canonicalize().unwrap().starts_with(folder.canonicalize().unwrap()), "{}", place.display());
        places.push(place);
    }
    assert!(places.iter().all(|place| place.is_file()) && places[0] != places[1], "one name, two files");

    // The agent has put a link where attachments go: nothing is written through it, and the run says why.
    let outside = tempfile::tempdir().unwrap();
    std::fs::remove_dir_all(folder.join("attachments")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("attachments")).unwrap();
    let posted = say_with(api, room, attach("again", &last)).await.is(202);
    let run = ended(api, runs_of(&posted)[0]).await;
    assert_eq!(run.error.unwrap().code, "attachment_failed");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    server.finish().await;
}

async fn uploads_are_their_owners_own(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |user| binary.beside(&["token", "create", "--user", user]).await.out.trim().to_owned();
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.clone().with_token(bob));
    let hers = upload(&ada, "secret.txt", "text/plain", "hers").await.is(201);
    let path = hers["url"].as_str().unwrap();
    let nothing = get(&bob, &format!("/api/uploads/{}", Uuid::now_v7())).await.is_refused(404, "not_found");
    assert_eq!(get(&bob, path).await.is_refused(404, "not_found"), nothing);
    delete(&bob, path).await.is_refused(404, "not_found");
    get(&api, path).await.is_refused(401, "unauthorized");
    assert_eq!(upload(&api, "x", "a/b", "x").await.status, StatusCode::UNAUTHORIZED.as_u16());
    let room = bob.create_room("His", &[]).await.unwrap().id;
    say_with(&bob, room, attach("mine now", &hers)).await.is_refused(422, "unprocessable");
    assert_eq!(get(&ada, path).await.text, "hers");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
