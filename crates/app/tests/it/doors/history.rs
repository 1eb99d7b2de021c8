//! History and then live: folded up to exactly its head, at any moment.

use super::scene::{Audience, answered, counted, ended, get, journal, message_of, room, say, within};
use domain::{
    event::EventBody,
    fold::Answer,
    ids::MessageId,
    message::{Author, Message, MessageStatus},
    position::Position,
};
use serde_json::Value;
use std::collections::BTreeMap;
use testkit::client::{Api, HistoryPage, SeenEvent, SseReader};

doors! {
    server: invariant_09_prefix_and_convergence_history_and_what_follows_is_the_whole, it_is_paged_by_seq,
            invariant_02_gapless_polled_while_it_is_written;
}

const SCRIPT: &str = r#"!script [{"text":"one "},{"after_ms":200,"thinking":"hm"},{"after_ms":200,"text":"two ","item":"x"},
    {"after_ms":200,"text":"three ","item":"x"},{"after_ms":200,"retract":"x"},
    {"after_ms":200,"tool_use":{"id":"t","name":"look","input":{}}},{"after_ms":200,"tool_output":{"id":"t","delta":"..."}},
    {"after_ms":200,"tool_result":{"id":"t","content":"seen"}},{"after_ms":200,"text":"four"},{"after_ms":200,"text":"."}]"#;

/// What a client has that took a history and then applied the events after it.
fn caught_up(history: &HistoryPage, journal: &[SeenEvent]) -> BTreeMap<MessageId, (String, String)> {
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

async fn invariant_09_prefix_and_convergence_history_and_what_follows_is_the_whole(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!count 5").await;
    let run = say(api, room, SCRIPT).await;
    let mut moments: Vec<HistoryPage> = Vec::new();
    let mut streaming = 0;
    within("the answer", async {
        loop {
            let history = api.messages(room, None, 100).await.unwrap();
            streaming += usize::from(history.messages.iter().any(|message| message.status == MessageStatus::Streaming));
            let is_over = api.run(run).await.unwrap().status.is_terminal();
            if moments.last().is_none_or(|last| last.head < history.head) {
                moments.push(history);
            }
            if is_over {
                break;
            }
        }
    })
    .await;
    assert!(streaming > 3 && moments.len() > 4, "{streaming} looks in the middle, {} moments", moments.len());
    let last = api.messages(room, None, 100).await.unwrap();
    let whole: BTreeMap<_, _> = last.messages.iter().map(|m| (m.id, (m.text.clone(), m.thinking.clone()))).collect();
    assert!(whole.values().any(|(text, thinking)| text == "one four." && thinking == "hm"), "{whole:?}");
    let journal = journal(api, room).await;
    for moment in &moments {
        assert_eq!(caught_up(moment, &journal), whole, "from {}", moment.head);
    }
}

async fn it_is_paged_by_seq(api: &Api) {
    let room = room(api).await;
    for n in 1..=5 {
        answered(api, room, &format!("!count {n}")).await;
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
    assert_eq!(back, all, "paging back meets every message once");

    let since = get(api, &format!("/api/rooms/{room}/messages?since={}", all[6].seq)).await.is(200);
    let ids: Vec<_> = since["messages"].as_array().unwrap().iter().map(|message| message["id"].clone()).collect();
    let expected: Vec<Value> = all[7..].iter().map(|message| serde_json::json!(message.id)).collect();
    assert_eq!(ids, expected);
    for bad in ["limit=0", "limit=1001", "since=-1", "since=x", "before=-1", "since=99999999999999999999", "from=1"] {
        get(api, &format!("/api/rooms/{room}/messages?{bad}")).await.is_refused(400, "invalid_request");
    }
    get(api, &format!("/api/rooms/{room}/messages?since={}&before={}", u64::MAX, u64::MAX)).await.is(200);
}

async fn invariant_02_gapless_polled_while_it_is_written(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "!count 400 3").await;
    audience.first_word(run).await;
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
    audience.end_of(run).await;
    assert_eq!(polled, audience.seen, "a page is never ahead of a stream, nor behind it for long");
    let run = ended(api, run).await;
    assert_eq!(message_of(api, &run).await.text, counted(400));
    let mut late = SseReader::connect(api, room, &Position { epoch: None, seq: 10 }).await.unwrap();
    assert_eq!(within("a late reader", late.next_event()).await.unwrap().unwrap().seq, 11);
}
