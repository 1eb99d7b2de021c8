//! Attached files as the models receive them, byte for byte, through the whole server.

use crate::{
    direct::{DirectFixture, statuses},
    endpoints::requests::{
        RoomFollower, data, journal, message_of, post, post_text, response_to, runs_of, wait_for_end,
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{event::EventType, ids::RoomId, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};

const PDF: &[u8] = b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n1 0 obj";
const TEXT: &str = "The code is 7421.\nGr\u{fc}\u{df}e";

/// A PNG of one pixel by one.
fn png() -> Vec<u8> {
    let header: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    (0..=255).fold(header.to_vec(), |mut bytes, byte| {
        bytes.push(byte);
        bytes
    })
}

impl DirectFixture {
    async fn upload(&self, name: &str, bytes: &[u8]) -> Value {
        let request = self.api().request(Method::POST, &format!("/api/uploads?name={name}"));
        // The declared type is a claim that nobody believes.
        let upload = response_to(request.header("content-type", "application/x-anything").body(bytes.to_vec())).await;
        upload.expect_status(201)
    }

    /// Posts a message with these files and returns the text of the answer.
    async fn answer_to_files(&self, room: RoomId, text: &str, files: &[&Value]) -> String {
        let attach = |file: &&Value| json!({"name": "x", "media_type": "x/y", "url": file["url"]});
        let attachments: Vec<Value> = files.iter().map(attach).collect();
        let message = json!({"text": text, "attachments": attachments});
        let accepted = post(self.api(), &format!("/api/rooms/{room}/messages"), &message).await.expect_status(202);
        let run = wait_for_end(self.api(), runs_of(&accepted)[0]).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        message_of(self.api(), &run).await.text
    }

    fn last_request(&self) -> Value {
        self.models.requests().pop().unwrap().body.clone()
    }
}

/// The parts of the user message with this number.
fn user_parts(provider: &str, request: &Value, number: usize) -> Vec<Value> {
    let (list, content) = match provider {
        "google" => ("contents", "parts"),
        "openai_responses" => ("input", "content"),
        _ => ("messages", "content"),
    };
    let messages = request[list].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    messages.skip(number).map(|message| message[content].as_array().cloned().unwrap_or_default()).next().unwrap()
}

/// The part that each API has for these bytes.
fn expected(provider: &str, media_type: &str, name: &str, bytes: &[u8]) -> Value {
    let data = STANDARD.encode(bytes);
    let url = format!("data:{media_type};base64,{data}");
    let is_image = media_type.starts_with("image/");
    match provider {
        "anthropic" if is_image => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        "anthropic" => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            json!({"type": "document", "title": name, "source": source})
        }
        "google" => json!({"inlineData": {"mimeType": media_type, "data": data}}),
        "openai_responses" if is_image => json!({"type": "input_image", "image_url": url}),
        "openai_responses" => json!({"type": "input_file", "filename": name, "file_data": url}),
        _ => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_reach_every_api_now_and_in_the_history() {
    let fixture = DirectFixture::open().await;
    let png = png();
    let (image, pdf, text) = (
        fixture.upload("notes.txt", &png).await,
        fixture.upload("report.pdf", PDF).await,
        fixture.upload("image.png", TEXT.as_bytes()).await,
    );
    for provider in ["anthropic", "openai", "openai_responses", "google"] {
        let room = fixture.room(provider, json!({})).await;
        fixture.answer_to_files(room, "!count 3", &[&image, &pdf, &text]).await;
        // The double of chat completions is not at OpenAI's own address, where PDFs are known.
        let has_pdf = provider != "openai";
        for is_history in [false, true] {
            if is_history {
                fixture.answer_to(room, "!count 2").await;
            }
            let request = fixture.last_request();
            let parts = user_parts(provider, &request, 0);
            assert_eq!(parts[0], expected(provider, "image/png", "notes.txt", &png), "{provider} {is_history}");
            if has_pdf {
                assert_eq!(
                    parts[1],
                    expected(provider, "application/pdf", "report.pdf", PDF),
                    "{provider} {is_history}"
                );
            } else {
                assert!(parts[1]["text"].as_str().unwrap().contains("takes no PDF"), "{}", parts[1]);
            }
            let shown = parts[2]["text"].as_str().unwrap();
            assert!(shown.contains(TEXT) && shown.starts_with("<attachment path=\"attachments/"), "{shown}");
            assert!(parts[3]["text"].as_str().unwrap().starts_with("!count 3\n\nAttached files:\n- attachments/"));
        }
        let notices = statuses(&journal(fixture.api(), room).await);
        assert_eq!(notices, if has_pdf { vec![] } else { vec!["attachment_not_shown".to_owned()] }, "{provider}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_no_model_is_shown_can_be_read_in_pieces() {
    let fixture = DirectFixture::open().await;
    let long = format!("{}needle{}", "x".repeat(150_000), "y".repeat(10));
    let (log, archive) =
        (fixture.upload("long.log", long.as_bytes()).await, fixture.upload("a.zip", b"PK\x03\x04\0\x01").await);
    for provider in ["anthropic", "openai", "openai_responses", "google"] {
        let room = fixture.room(provider, json!({})).await;
        fixture.answer_to_files(room, "hello", &[&log, &archive]).await;
        let request = fixture.last_request().to_string();
        assert!(!request.contains("xxxxxxxx") && request.contains("read_attachment"), "{provider}");
        let path = |name: &str| {
            let start = request.find("- attachments/").unwrap();
            let line = request[start + 2..].split("- ").find(|line| line.contains(name)).unwrap();
            line.split(" (").next().unwrap().to_owned()
        };
        let call = json!({"path": path("long.log"), "offset": 150_000, "length": 6});
        let text = fixture.answer_to(room, &format!("!call read_attachment {call}")).await;
        assert!(
            text.contains("bytes 150000 to 150006 of 150016 as text; continue at offset 150006"),
            "{provider}: {text}"
        );
        assert!(text.contains("needle"), "{provider}: {text}");
        let call = json!({"path": path("a.zip")});
        let text = fixture.answer_to(room, &format!("!call read_attachment {call}")).await;
        assert!(text.contains("as base64") && text.contains("UEsDBAAB"), "{provider}: {text}");
        let text = fixture.answer_to(room, "!call read_attachment {\"path\":\"../local.key\"}").await;
        assert!(text.contains("path: one of attachments/"), "{provider}: {text}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_steered_messages_reach_the_model() {
    let fixture = DirectFixture::open().await;
    let png = png();
    let (image, archive) = (fixture.upload("a.png", &png).await, fixture.upload("a.zip", b"PK\x03\x04\0\x01").await);
    for provider in ["anthropic", "openai", "openai_responses", "google"] {
        let room = fixture.room(provider, json!({})).await;
        let mut follower = RoomFollower::start(fixture.api(), room).await;
        let steer = async |text: &str, file: &Value| {
            let attachments = json!([{"name": "x", "media_type": "x/y", "url": file["url"]}]);
            let message = json!({"text": text, "attachments": attachments, "when_busy": "steer"});
            let accepted = post(fixture.api(), &format!("/api/rooms/{room}/messages"), &message).await;
            runs_of(&accepted.expect_status(202))[0]
        };
        let running = post_text(fixture.api(), room, "!slow 20 50").await;
        follower.first_delta(running).await;
        assert_eq!(steer("!count 3", &image).await, running, "{provider}: the answer in progress takes it");
        let run = wait_for_end(fixture.api(), running).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        let parts = user_parts(provider, &fixture.last_request(), 1);
        assert_eq!(parts[0], expected(provider, "image/png", "a.png", &png), "{provider}");
        assert!(parts[1]["text"].as_str().unwrap().starts_with("!count 3\n\nAttached files:\n- attachments/"));

        // Now the conversation has a file, so the tool that reads the others is there.
        let running = post_text(fixture.api(), room, "!slow 20 50").await;
        follower.first_delta(running).await;
        assert_eq!(steer("and this", &archive).await, running, "{provider}");
        let call = json!({"text": "!call read_attachment {\"path\":\"nowhere\"}", "when_busy": "steer"});
        post(fixture.api(), &format!("/api/rooms/{room}/messages"), &call).await.expect_status(202);
        let run = wait_for_end(fixture.api(), running).await;
        let text = message_of(fixture.api(), &run).await.text;
        assert!(text.contains("a.png") && text.contains("a.zip"), "{provider}: the tool knows both: {text}");
        let notices = statuses(&journal(fixture.api(), room).await);
        assert_eq!(notices, ["steered", "attachment_not_shown", "steered", "steered"], "{provider}");

        // Without that tool, a run of its own answers the message.
        let room = fixture.room(provider, json!({})).await;
        let mut follower = RoomFollower::start(fixture.api(), room).await;
        let running = post_text(fixture.api(), room, "!slow 20 50").await;
        follower.first_delta(running).await;
        let message = json!({"text": "what is in it?", "when_busy": "steer",
                             "attachments": [{"name": "x", "media_type": "x/y", "url": archive["url"]}]});
        let accepted = post(fixture.api(), &format!("/api/rooms/{room}/messages"), &message).await.expect_status(202);
        let other = runs_of(&accepted)[0];
        assert_ne!(other, running, "{provider}");
        assert_eq!(wait_for_end(fixture.api(), other).await.status, RunStatus::Completed);
        let request = fixture.last_request().to_string();
        assert!(request.contains("a.zip") && request.contains("read_attachment"), "{provider}: {request}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_beyond_the_limit_is_named_and_never_sent() {
    let fixture = DirectFixture::open().await;
    // Eight bytes at the end are the width and the height.
    let with_size = |width: u32, height: u32| [&png()[..16], &width.to_be_bytes(), &height.to_be_bytes()].concat();
    let wide = fixture.upload("wide.png", &with_size(20_000, 10)).await;
    let mut heavy = png();
    heavy.resize(16_000_000, 0);
    let heavy = fixture.upload("heavy.png", &heavy).await;
    for (provider, bytes, side) in [
        ("anthropic", "3900000", "8000"),
        ("openai", "15000000", "16000"),
        ("openai_responses", "15000000", "16000"),
        ("google", "13000000", "16000"),
    ] {
        let room = fixture.room(provider, json!({})).await;
        fixture.answer_to_files(room, "look", &[&wide, &heavy]).await;
        let request = fixture.last_request().to_string();
        assert!(!request.contains("base64,") && !request.contains("\"data\""), "{provider}: no part of them was sent");
        let told: Vec<String> = journal(fixture.api(), room)
            .await
            .iter()
            .filter(|event| event.kind == EventType::Status)
            .map(|event| data(event)["message"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            told[0].contains("wide.png") && told[0].contains("20000 × 10 pixels") && told[0].contains(side),
            "{told:?}"
        );
        assert!(told[1].contains("heavy.png") && told[1].contains(bytes), "{provider}: {told:?}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_files_are_named_as_such() {
    let fixture = DirectFixture::open().await;
    let image = fixture.upload("a.png", &png()).await;
    let room = fixture.room("anthropic", json!({})).await;
    fixture.answer_to_files(room, "look", &[&image]).await;
    let deleted = response_to(fixture.api().request(Method::DELETE, image["url"].as_str().unwrap())).await;
    assert_eq!(deleted.status, 204);
    fixture.answer_to(room, "and now?").await;
    let parts = user_parts("anthropic", &fixture.last_request(), 0);
    assert!(parts[0]["text"].as_str().unwrap().contains("it was deleted"), "{parts:?}");
    fixture.close().await;
}
