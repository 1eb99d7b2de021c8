//! Graceful stop: partial answers are kept, queued runs continue after the next start, and readers are told to
//! reconnect.

use super::{
    binary::Binary,
    requests::{RoomFollower, counted, data, get, head, message_of, post_text, room, wait_for_end, within},
    slow::{SlowSocket, SlowStream},
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, header};
use serde_json::json;
use std::time::Duration;
use testkit::{
    client::{ReceivedFrameParser, socket_request},
    database::TestDatabase,
    server::TestServer,
};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

on_both_databases! {
    database: invariant_20_graceful_stop_keeps_partial_answers_and_queued_runs,
              invariant_20_graceful_stop_does_not_wait_for_a_reader_that_does_not_read,
              one_shot_streams_report_the_server_stop;
}

const STOP: Duration = Duration::from_secs(30);

async fn invariant_20_graceful_stop_keeps_partial_answers_and_queued_runs(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let stream =
        api.request(Method::GET, &format!("/api/rooms/{room}/events")).header(header::ACCEPT, "text/event-stream");
    let stream = within("a stream", stream.send()).await.unwrap();
    let request = socket_request(&api).unwrap();
    let (mut socket, _) = within("a socket", tokio_tungstenite::connect_async(request)).await.unwrap();
    socket.send(Message::text(json!({"type": "subscribe", "room": room}).to_string())).await.unwrap();
    let running = post_text(&api, room, "!count 5000 10").await;
    let waiting = post_text(&api, room, "!count 3").await;
    let mut follower = RoomFollower::start(&api, room).await;
    follower.until("a part of the answer", |event| event.seq > 12).await;

    let ended_with = server.terminate(STOP).await.unwrap();
    assert!(ended_with.success(), "{ended_with}");
    let text = within("the rest of the stream", stream.text()).await.unwrap();
    assert!(
        text.ends_with("retry: 1000\n\n"),
        "the stream must end with a retry: {}",
        &text[text.len().saturating_sub(200)..]
    );
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(text.as_bytes(), &mut frames).unwrap();
    assert_eq!(frames.last().unwrap().event.as_deref(), Some("run_interrupted"), "the end of the run must come before");
    let closed = within("the socket's end", async {
        let mut last = String::new();
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Close(frame) => break (last, frame.unwrap().code),
                Message::Text(text) => last = text.to_string(),
                _ => {}
            }
        }
    })
    .await;
    assert!(closed.0.contains("run_interrupted"), "{closed:?}");
    assert_eq!(closed.1, CloseCode::Restart);

    let (server, api) = binary.serve().await;
    assert_eq!(wait_for_end(&api, waiting).await.status, RunStatus::Completed, "accepted messages must not be lost");
    let running = wait_for_end(&api, running).await;
    assert_eq!(running.status, RunStatus::Interrupted);
    let kept = message_of(&api, &running).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    let end = RoomFollower::start(&api, room).await.end_of(running.id).await;
    assert_eq!((end.kind, &data(&end)["reason"]), (EventType::RunInterrupted, &json!("shutdown")));
    assert!(server.terminate(STOP).await.unwrap().success());
}

async fn invariant_20_graceful_stop_does_not_wait_for_a_reader_that_does_not_read(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_SERVER__SHUTDOWN_SECONDS", "1");
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let readers =
        within("the readers", async { (SlowStream::open(&api, room).await, SlowSocket::open(&api, room).await) }).await;
    // More than the socket buffers hold: each event has up to 64 KiB.
    post_text(&api, room, "!flood 16000000").await;
    within("the flood", async { while head(&api, room).await < 150 {} }).await;
    let ended_with = server.terminate(Duration::from_secs(10)).await.unwrap();
    assert!(ended_with.success(), "{ended_with}");
    drop(readers);
}

async fn one_shot_streams_report_the_server_stop(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api();
    let agent = api.scripted_agent().await.unwrap();
    let asked = api.request(Method::POST, &format!("/api/execute/agent/{agent}")).json(&json!({"message": "!hang"}));
    let response = within("a head", asked.send()).await.unwrap();
    let rooms = get(api, "/api/rooms").await.expect_status(200);
    let room = rooms["rooms"][0]["id"].as_str().unwrap().parse().unwrap();
    let mut follower = RoomFollower::start(api, room).await;
    follower.until("its first word", |event| event.kind == EventType::ContentDelta).await;
    let database = server.stop().await;
    let text = within("the rest", response.text()).await.unwrap();
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(text.as_bytes(), &mut frames).unwrap();
    let [.., end, done] = frames.as_slice() else { panic!("{frames:?}") };
    let data: serde_json::Value = serde_json::from_str(&end.data).unwrap();
    assert_eq!((end.event.as_deref(), done.data.as_str()), (Some("cancelled"), "done"));
    assert_eq!(
        (&data["status"], &data["reason"], &data["text"]),
        (&json!("interrupted"), &json!("shutdown"), &json!("Hanging"))
    );
    TestServer::start(database).await.finish().await;
}
