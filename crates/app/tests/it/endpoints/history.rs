//! History and live events: the history is folded up to exactly its head at any time.

use super::requests::{
    RoomFollower, counted, get, journal, message_of, post_and_wait, post_text, room, wait_for_end, within,
};
use domain::{
    event::EventBody,
    fold::Answer,
    ids::MessageId,
    message::{Author, Message, MessageStatus},
    position::Position,
};
use serde_json::Value;
use std::collections::BTreeMap;
use testkit::client::{SeenEvent, SeenHistory, SseReader, TestClient};

on_both_databases! {
    server: invariant_09_prefix_and_convergence_history_plus_later_events_is_complete, history_is_paged_by_seq,
            invariant_02_gapless_when_polled_during_writes;
}

const SCRIPT: &str = r#"!script [{"text":"one "},{"after_ms":200,"thinking":"hm"},{"after_ms":200,"text":"two ","item":"x"},
    {"after_ms":200,"text":"three ","item":"x"},{"after_ms":200,"retract":"x"},
    {"after_ms":200,"tool_use":{"id":"t","name":"look","input":{}}},{"after_ms":200,"tool_output":{"id":"t","delta":"..."}},
    {"after_ms":200,"tool_result":{"id":"t","content":"seen"}},{"after_ms":200,"text":"four"},{"after_ms":200,"text":"."}]"#;

/// The state of a client that loaded a history and applied later events.
fn caught_up(history: &SeenHistory, journal: &[SeenEvent]) -> BTreeMap<MessageId, (String, String)> {
    let mut answers: BTreeMap<MessageId, Answer> = BTreeMap::new();
    let mut texts = BTreeMap::new();
    for message in &history.messages {
        texts.insert(message.id, (message.text.clone(), message.thinking.clone()));
        if message.status == MessageStatus::Streaming {
            answers.entry(message.id).or_default().parts = message.parts.clone();
        }
    }
    for event in journal.iter().filter(|event| event.seq > history.head) {
        let body = event.body().unwrap();
        let stream_id = match &body {
            EventBody::MessagePosted(posted) => {
                texts.insert(posted.message_id, (posted.text.clone(), String::new()));
                continue;
            }
            EventBody::StreamStart(start) => start.stream_id,
            EventBody::ContentDelta(delta) => delta.stream_id,
            EventBody::ThinkingDelta(delta) => delta.stream_id,
            EventBody::Retract(retract) => retract.stream_id,
            EventBody::ToolUse(call) => call.stream_id,
            EventBody::ToolResult(result) => result.stream_id,
            _ => continue,
        };
        let answer = answers.entry(stream_id).or_default();
        answer.apply(&body);
        texts.insert(stream_id, answer.texts());
    }
    texts
}

async fn invariant_09_prefix_and_convergence_history_plus_later_events_is_complete(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!count 5").await;
    let run = post_text(api, room, SCRIPT).await;
    let mut snapshots: Vec<SeenHistory> = Vec::new();
    let mut streaming = 0;
    within("the answer", async {
        loop {
            let history = api.messages(room, None, 100).await.unwrap();
            streaming += usize::from(history.messages.iter().any(|message| message.status == MessageStatus::Streaming));
            let is_over = api.run(run).await.unwrap().status.is_terminal();
            if snapshots.last().is_none_or(|last| last.head < history.head) {
                snapshots.push(history);
            }
            if is_over {
                break;
            }
        }
    })
    .await;
    assert!(
        streaming > 3 && snapshots.len() > 4,
        "{streaming} snapshots while streaming, {} in total",
        snapshots.len()
    );
    let last = api.messages(room, None, 100).await.unwrap();
    let whole: BTreeMap<_, _> = last.messages.iter().map(|m| (m.id, (m.text.clone(), m.thinking.clone()))).collect();
    assert!(whole.values().any(|(text, thinking)| text == "one \n\nfour." && thinking == "hm"), "{whole:?}");
    let journal = journal(api, room).await;
    for snapshot in &snapshots {
        assert_eq!(caught_up(snapshot, &journal), whole, "from {}", snapshot.head);
    }
}

async fn history_is_paged_by_seq(api: &TestClient) {
    let room = room(api).await;
    for n in 1..=5 {
        post_and_wait(api, room, &format!("!count {n}")).await;
    }
    let all = api.messages(room, None, 100).await.unwrap().messages;
    let texts: Vec<_> = all.iter().map(|message| message.text.clone()).collect();
    let expected: Vec<_> = (1..=5).flat_map(|n| [format!("!count {n}"), counted(n)]).collect();
    assert_eq!(texts, expected, "oldest first");
    assert!(matches!((&all[0].author, &all[1].author), (Author::Person { .. }, Author::Agent { .. })));

    let (mut back, mut before) = (Vec::<Message>::new(), None);
    loop {
        let mut page = api.messages(room, before, 3).await.unwrap().messages;
        let Some(first) = page.first() else { break };
        before = Some(first.seq);
        page.extend(back);
        back = page;
    }
    assert_eq!(back, all, "paging back must return every message once");

    let since = get(api, &format!("/api/rooms/{room}/messages?since={}", all[6].seq)).await.expect_status(200);
    let ids: Vec<_> = since["messages"].as_array().unwrap().iter().map(|message| message["id"].clone()).collect();
    let expected: Vec<Value> = all[7..].iter().map(|message| serde_json::json!(message.id)).collect();
    assert_eq!(ids, expected);
    for bad in [
        "limit=0",
        "limit=1001",
        "since=-1",
        "since=x",
        "before=-1",
        "since=99999999999999999999",
        "before=18446744073709551615",
        "from=1",
    ] {
        get(api, &format!("/api/rooms/{room}/messages?{bad}")).await.expect_problem(400, "invalid_request");
    }
    get(api, &format!("/api/rooms/{room}/messages?before={}", i64::MAX)).await.expect_status(200);
}

async fn invariant_02_gapless_when_polled_during_writes(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "!count 400 3").await;
    follower.first_delta(run).await;
    let (mut polled, mut position) = (Vec::<SeenEvent>::new(), Position::START);
    within("the answer", async {
        while !polled.last().is_some_and(|event| event.kind.ends_a_run()) {
            let page = api.events(room, &position, 7).await.unwrap();
            assert!(page.head >= page.events.last().map_or(position.seq, |event| event.seq));
            polled.extend(page.events);
            position = Position { epoch: Some(page.epoch), seq: polled.len() as u64 };
        }
    })
    .await;
    follower.end_of(run).await;
    assert_eq!(polled, follower.seen, "pages and the stream must have the same events");
    let run = wait_for_end(api, run).await;
    assert_eq!(message_of(api, &run).await.text, counted(400));
    let mut late = SseReader::connect(api, room, &Position { epoch: None, seq: 10 }).await.unwrap();
    assert_eq!(within("a late reader", late.next_event()).await.unwrap().unwrap().seq, 11);
}
