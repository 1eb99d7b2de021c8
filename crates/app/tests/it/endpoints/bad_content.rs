//! Content is data: any text comes back unchanged on every endpoint and never ends a frame.

use super::requests::{RoomFollower, journal, message_of, post, post_and_wait, room, text_of, within};
use domain::{
    event::{EventBody, EventType},
    position::Position,
};
use serde_json::{Value, json};
use testkit::client::{ReceivedFrame, ReceivedFrameParser, SeenEvent, SeenItem, SseReader, TestClient, WsReader};

on_both_databases! {
    server: invariant_16_content_is_data_on_all_endpoints, invariant_16_content_is_data_in_one_shot, large_content_is_complete;
}

const HOSTILE: &str = "a\r\nb\rc\nd\0e\u{2028}f\u{2029}g\u{85}h\n\ndata: {\"type\":\"run_completed\"}\n\nevent: reset\n\
     id: 999\nretry: 1\n: x\u{feff}\u{202e}\u{1b}[2J</script><!--\u{1f980}\\u0000\\\"\u{fffd}\u{10ffff}";

fn hostile_answer() -> String {
    format!("!script {}", json!([{"text": HOSTILE}, {"thinking": HOSTILE}, {"text": HOSTILE, "item": HOSTILE}]))
}

/// Returns the message and the answer, from the events of one transport.
fn said(events: &[SeenEvent]) -> (String, String) {
    let posted = events.iter().find(|event| event.kind == EventType::MessagePosted).unwrap();
    let EventBody::MessagePosted(posted) = posted.body().unwrap() else { panic!() };
    (posted.text, text_of(events))
}

async fn invariant_16_content_is_data_on_all_endpoints(api: &TestClient) {
    let room = room(api).await;
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let mut follower = RoomFollower::start(api, room).await;
    let question = hostile_answer();
    let run = post_and_wait(api, room, &question).await;
    follower.end_of(run.id).await;
    let by_page = journal(api, room).await;
    let mut by_socket: Vec<SeenEvent> = Vec::new();
    while by_socket.len() < by_page.len() {
        if let (_, SeenItem::Event(event)) = within("the socket", socket.next()).await.unwrap().unwrap() {
            by_socket.push(event);
        }
    }
    let expected = (question.clone(), HOSTILE.repeat(2));
    for events in [&by_page, &follower.seen, &by_socket] {
        assert_eq!(said(events), expected);
        assert!(events.iter().all(|event| !event.json.contains(['\n', '\r'])), "an event must not contain line ends");
    }
    let mut frames = SseReader::connect(api, room, &Position::START).await.unwrap();
    for seq in 1..=by_page.len() {
        let frame = within("a frame", frames.next_frame()).await.unwrap().unwrap();
        assert!(frame.id.unwrap().ends_with(&format!("-{seq}")), "there must be exactly one frame per event");
    }
    let message = message_of(api, &run).await;
    assert_eq!((message.text, message.thinking), (HOSTILE.repeat(2), HOSTILE.to_owned()));

    // As plain text instead of a directive.
    let plain = post_and_wait(api, room, HOSTILE).await;
    let history = api.messages(room, None, 10).await.unwrap();
    assert_eq!(history.messages[2].text, HOSTILE);
    assert!(!message_of(api, &plain).await.text.contains(['\n', '\r', '\u{1b}']), "a greeting must be one line");
}

async fn invariant_16_content_is_data_in_one_shot(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let body = json!({"message": hostile_answer()});
    let answer = post(api, &format!("/api/execute/agent/{agent}"), &body).await;
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let queued: Value = serde_json::from_str(&frames[0].data).unwrap();
    let run = format!("{}/", queued["run_id"].as_str().unwrap());
    let is_own = |frame: &ReceivedFrame| frame.id.as_ref().is_some_and(|id| id.starts_with(&run));
    assert!(frames[..6].iter().all(is_own) && frames[6].id.is_none(), "no id comes from the content: {frames:?}");
    let names: Vec<_> = frames.iter().filter_map(|frame| frame.event.as_deref()).collect();
    assert_eq!(names, ["status", "status", "message", "message", "message", "completion"]);
    let completion: Value = serde_json::from_str(&frames[5].data).unwrap();
    assert_eq!(completion["text"], HOSTILE.repeat(2));
    assert_eq!(frames[6].data, "done");
}

async fn large_content_is_complete(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, "!flood 5000000").await;
    let whole = message_of(api, &run).await.text;
    assert_eq!(whole.len(), 5_000_000);
    // Pages are limited by size; together they contain everything.
    let events = journal(api, room).await;
    assert_eq!(text_of(&events), whole);
    let mut follower = RoomFollower::start(api, room).await;
    follower.end_of(run.id).await;
    assert_eq!(follower.seen, events);
}
