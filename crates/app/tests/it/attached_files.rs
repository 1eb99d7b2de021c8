//! Attached files as the models receive them, byte for byte, through the whole server.

use crate::{
    direct::{DirectFixture, statuses},
    endpoints::requests::{journal, message_of, post, response_to, runs_of, wait_for_end},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{ids::RoomId, run::RunStatus};
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
