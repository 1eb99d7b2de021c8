//! The examples of the README, and a check that all transports deliver the same bytes.

use super::requests::{counted, get, journal, post, post_text, room, text_of, within};
use domain::{event::EventType, position::Position, run::RunStatus};
use reqwest::{Method, header};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::client::{ReceivedFrame, ReceivedFrameParser, SeenEvent, SeenItem, SseReader, TestClient, WsReader};

on_both_databases! {
    server: one_shot_is_streamed, lost_connection_resumes_without_a_gap, cancel_stops_the_run,
            invariant_09_prefix_and_convergence_all_transports_give_the_same_bytes;
}

async fn one_shot_is_streamed(api: &TestClient) {
    let agents = get(api, "/api/agents").await.expect_status(200);
    let agent = agents["agents"][0]["id"].as_str().unwrap();
    let answer = post(api, &format!("/api/execute/agent/{agent}"), &json!({"message": "!count 5 30"})).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
    let (mut frames, mut said) = (Vec::new(), String::new());
    ReceivedFrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let data = |frame: &ReceivedFrame| serde_json::from_str::<Value>(&frame.data).unwrap();
    for frame in frames.iter().filter(|frame| frame.event.as_deref() == Some("message")) {
        assert_eq!(data(frame)["type"], "assistant");
        said.push_str(data(frame)["delta"].as_str().unwrap());
    }
    let first = data(&frames[0]);
    assert_eq!((frames[0].event.as_deref(), &first["status"]), (Some("status"), &json!("queued")));
    let [.., completion, done] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!((done.event.as_deref(), done.data.as_str()), (None, "done"));
    assert_eq!(completion.event.as_deref(), Some("completion"));
    let completion = data(completion);
    assert_eq!((said, &completion["text"]), (counted(5), &json!(counted(5))));
    assert_eq!((&completion["cost"], &completion["tokens"]), (&json!(0.0), &json!(8)));
    assert_eq!(completion["conversationId"], first["room_id"]);
}

async fn lost_connection_resumes_without_a_gap(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!count 50 30").await;
    let mut first: Vec<SeenEvent> = Vec::new();
    let last = within("half of the answer", async {
        let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
        while text_of(&first).split(' ').count() < 20 {
            first.push(stream.next_event().await.unwrap().unwrap());
        }
        stream.position().clone()
    })
    .await;
    let rest = within("the rest of it", async {
        let mut stream = SseReader::connect(api, room, &last).await.unwrap();
        let mut rest = Vec::new();
        while !rest.last().is_some_and(|event: &SeenEvent| event.kind.ends_a_run()) {
            rest.push(stream.next_event().await.unwrap().unwrap());
        }
        rest
    })
    .await;
    assert!(first.iter().all(|event| !event.kind.ends_a_run()), "the connection must be lost during the answer");
    let all = [first, rest].concat();
    assert_eq!(text_of(&all), counted(50));
    assert!(all.iter().map(|event| event.seq).eq(1..=all.len() as u64), "no event may be missing or duplicated");
    assert!(all.iter().any(|event| event.kind == EventType::RunCompleted && event.run_id == Some(run)));
}

async fn cancel_stops_the_run(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!hang").await;
    let cancelled = post(api, &format!("/api/runs/{run}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!((&cancelled["id"], &cancelled["status"]), (&json!(run), &json!("cancelled")));
    assert_eq!(cancelled["receipt"]["processes"], 0);
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Cancelled);
}

/// Compares pages, SSE and WebSocket during and after writing.
async fn invariant_09_prefix_and_convergence_all_transports_give_the_same_bytes(api: &TestClient) {
    let room = room(api).await;
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
    let run = post_text(
        api,
        room,
        r#"!script [{"text":"é\r\n\u2028"},{"after_ms":30,"thinking":"\u0000"},{"tool_use":
        {"id":"t","name":"look","input":{"b":1,"a":[1.50,1e3]}}},{"tool_result":{"id":"t","content":"<&>"}}]"#,
    )
    .await;
    let ends = |event: &SeenEvent| event.kind.ends_a_run() && event.run_id == Some(run);

    let by_stream = within("the stream", async {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(ends) {
            seen.push(stream.next_event().await.unwrap().unwrap());
            // A page read now starts with the same events.
            let page = journal(api, room).await;
            assert!(page.len() >= seen.len() && page.iter().zip(&seen).all(|(page, seen)| page.json == seen.json));
        }
        seen
    })
    .await;
    let by_socket = within("the socket", async {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(ends) {
            if let (_, SeenItem::Event(event)) = socket.next().await.unwrap().unwrap() {
                seen.push(event);
            }
        }
        seen
    })
    .await;
    let by_page = journal(api, room).await;
    let late = within("a late stream", async {
        let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
        let mut seen = Vec::new();
        while !seen.last().is_some_and(ends) {
            seen.push(stream.next_event().await.unwrap().unwrap());
        }
        seen
    })
    .await;
    let bytes = |seen: &[SeenEvent]| seen.iter().map(|event| event.json.clone()).collect::<Vec<_>>();
    assert_eq!(bytes(&by_stream), bytes(&by_page));
    assert_eq!(bytes(&by_socket), bytes(&by_page));
    assert_eq!(bytes(&late), bytes(&by_page));
    assert_eq!(by_page.iter().map(|event| event.id).collect::<BTreeSet<_>>().len(), by_page.len());

    // Of several types the preferred one is sent.
    let path = format!("/api/rooms/{room}/events");
    let both = api.request(Method::GET, &path).header(header::ACCEPT, "application/json;q=0.9, text/event-stream");
    let both = within("a head", both.send()).await.unwrap();
    assert_eq!(both.headers()[header::CONTENT_TYPE], "text/event-stream");
}
