//! Content is data: whatever a person or an agent says comes back exactly, by every door, and ends no frame.

use super::scene::{Audience, answered, journal, message_of, post, room, text_of, within};
use domain::{
    event::{EventBody, EventType},
    position::Position,
};
use serde_json::{Value, json};
use testkit::client::{Api, FrameParser, Said, SeenEvent, SseReader, WsReader};

doors! {
    server: invariant_16_content_is_data_by_every_door, invariant_16_content_is_data_in_one_shot, large_content_comes_whole;
}

const HOSTILE: &str = "a\r\nb\rc\nd\0e\u{2028}f\u{2029}g\u{85}h\n\ndata: {\"type\":\"run_completed\"}\n\nevent: reset\n\
     id: 999\nretry: 1\n: x\u{feff}\u{202e}\u{1b}[2J</script><!--\u{1f980}\\u0000\\\"\u{fffd}\u{10ffff}";

fn hostile_answer() -> String {
    format!("!script {}", json!([{"text": HOSTILE}, {"thinking": HOSTILE}, {"text": HOSTILE, "item": HOSTILE}]))
}

/// What the person said and what the agent answered, from the events of one door.
fn said(events: &[SeenEvent]) -> (String, String) {
    let posted = events.iter().find(|event| event.kind == EventType::MessagePosted).unwrap();
    let EventBody::MessagePosted(posted) = posted.body().unwrap() else { panic!() };
    (posted.text, text_of(events))
}

async fn invariant_16_content_is_data_by_every_door(api: &Api) {
    let room = room(api).await;
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let mut audience = Audience::of(api, room).await;
    let question = hostile_answer();
    let run = answered(api, room, &question).await;
    audience.end_of(run.id).await;
    let by_page = journal(api, room).await;
    let mut by_socket: Vec<SeenEvent> = Vec::new();
    while by_socket.len() < by_page.len() {
        if let (_, Said::Event(event)) = within("the socket", socket.next()).await.unwrap().unwrap() {
            by_socket.push(event);
        }
    }
    let expected = (question.clone(), HOSTILE.repeat(2));
    for events in [&by_page, &audience.seen, &by_socket] {
        assert_eq!(said(events), expected);
        assert!(events.iter().all(|event| !event.json.contains(['\n', '\r'])), "no line ends inside an event");
    }
    let mut frames = SseReader::connect(api, room, &Position::START).await.unwrap();
    for seq in 1..=by_page.len() {
        let frame = within("a frame", frames.next_frame()).await.unwrap().unwrap();
        assert!(frame.id.unwrap().ends_with(&format!("-{seq}")), "a frame for each event and no other");
    }
    let message = message_of(api, &run).await;
    assert_eq!((message.text, message.thinking), (HOSTILE.repeat(2), HOSTILE.to_owned()));

    // As plain words, without being a directive.
    let plain = answered(api, room, HOSTILE).await;
    let history = api.messages(room, None, 10).await.unwrap();
    assert_eq!(history.messages[2].text, HOSTILE);
    assert!(!message_of(api, &plain).await.text.contains(['\n', '\r', '\u{1b}']), "a greeting is one line");
}

async fn invariant_16_content_is_data_in_one_shot(api: &Api) {
    let agent = api.scripted_agent().await.unwrap();
    let body = json!({"message": hostile_answer()});
    let answer = post(api, &format!("/api/execute/agent/{agent}"), &body).await;
    let mut frames = Vec::new();
    FrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    assert!(frames.iter().all(|frame| frame.id.is_none()));
    let names: Vec<_> = frames.iter().filter_map(|frame| frame.event.as_deref()).collect();
    assert_eq!(names, ["status", "status", "message", "message", "message", "completion"]);
    let completion: Value = serde_json::from_str(&frames[5].data).unwrap();
    assert_eq!(completion["text"], HOSTILE.repeat(2));
    assert_eq!(frames[6].data, "done");
}

async fn large_content_comes_whole(api: &Api) {
    let room = room(api).await;
    let run = answered(api, room, "!flood 5000000").await;
    let whole = message_of(api, &run).await.text;
    assert_eq!(whole.len(), 5_000_000);
    // Pages are cut by their size; together they are everything.
    let events = journal(api, room).await;
    assert_eq!(text_of(&events), whole);
    let mut audience = Audience::of(api, room).await;
    audience.end_of(run.id).await;
    assert_eq!(audience.seen, events);
}
