//! Events that are larger than a batch: they arrive whole, and streams of them that nobody reads take a bounded amount of memory.

use super::{
    binary::Binary,
    requests::{agent, get, post_text, response_to, room_of, wait_for_end, within},
    shares::{Socket, ask, peak_memory, receive, socket, two_users},
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    position::Position,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{SseReader, TestClient},
    database::TestDatabase,
};

on_both_databases! {
    server: h5_a_large_event_arrives_whole_on_every_stream;
    database: h5_streams_of_large_events_that_nobody_reads_are_bounded,
              l3_followed_agents_count_as_subscriptions;
}

const STOP: Duration = Duration::from_secs(30);

/// A run with three events of half a megabyte: the message, the tool's input and its result.
async fn large_run(api: &TestClient, room: RoomId, text: &str) -> RunId {
    let input = json!({"text": text.repeat(500_000 / text.len())});
    let run = post_text(api, room, &format!("!tool big {input}")).await;
    wait_for_end(api, run).await;
    run
}

/// The events of a room as a WebSocket sends them, up to the end of a run.
async fn over_socket(socket: &mut Socket, room: RoomId) -> Vec<Value> {
    let mut events = Vec::new();
    let mut message = ask(socket, &json!({"type": "subscribe", "room": room, "after": 0})).await;
    assert_eq!(message["type"], "subscribed");
    while events.last().is_none_or(|event: &Value| event["type"] != "run_completed") {
        message = receive(socket).await;
        assert_eq!(message["type"], "event", "{}", &message.to_string()[..200]);
        events.push(message["event"].take());
    }
    events
}

async fn h5_a_large_event_arrives_whole_on_every_stream(api: &TestClient) {
    let agent = agent(api, "writes", json!({})).await;
    let room = room_of(api, &[agent]).await;
    // Two and three bytes for a letter: a fragment may end in the middle of one.
    let run = large_run(api, room, "aü€").await;
    let page = get(api, &format!("/api/rooms/{room}/events?limit=1000")).await.expect_status(200);
    let mut expected = page["events"].as_array().unwrap().clone();
    while expected.len() as u64 != page["head"].as_u64().unwrap() {
        let after = expected.len();
        let more = get(api, &format!("/api/rooms/{room}/events?limit=1000&after={after}")).await.expect_status(200);
        expected.extend(more["events"].as_array().unwrap().iter().cloned());
    }
    assert!(expected.iter().filter(|event| event.to_string().len() > 490_000).count() >= 2, "there are large ones");

    let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
    for event in &expected {
        let seen = within("an event", stream.next_event()).await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&seen.json).unwrap(), *event);
    }
    let mut one_run = SseReader::open(api, &format!("/api/runs/{run}/stream"), &Position::START).await.unwrap();
    within("the end of the run", async {
        while one_run.next_event().await.unwrap().unwrap().kind != EventType::RunCompleted {}
    })
    .await;
    assert_eq!(over_socket(&mut socket(api).await.unwrap(), room).await, expected);
}

async fn h5_streams_of_large_events_that_nobody_reads_are_bounded(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "writes", json!({})).await;
    let room = room_of(&ada, &[hers]).await;
    // More than the buffers of the sockets take.
    for _ in 0..16 {
        large_run(&ada, room, "xxx").await;
    }
    let before = peak_memory(&server);
    let mut streams = Vec::new();
    for n in 0..190 {
        let request = ada.request(Method::GET, &format!("/api/rooms/{room}/events?after={}", n % 20));
        let stream = within("a stream", request.header("accept", "text/event-stream").send()).await.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let mut unread = socket(&ada).await.unwrap();
    assert_eq!(ask(&mut unread, &json!({"type": "subscribe", "room": room, "after": 0})).await["type"], "subscribed");

    // Another user's large events arrive meanwhile.
    let his = agent(&bob, "writes", json!({})).await;
    let quiet = room_of(&bob, &[his]).await;
    large_run(&bob, quiet, "xxx").await;
    over_socket(&mut socket(&bob).await.unwrap(), quiet).await;
    let grown = (peak_memory(&server) - before) >> 20;
    println!("{grown} MB more");
    assert!(grown < 70, "{grown} MB more for 190 streams over events of half a megabyte");

    // One of hers that is read at last gets everything, in time for all the others.
    drop(streams);
    over_socket(&mut socket(&ada).await.unwrap(), room).await;
    server.terminate(STOP).await.unwrap();
}

async fn l3_followed_agents_count_as_subscriptions(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LIMITS__SUBSCRIPTIONS_PER_USER", "3");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "speaks", json!({})).await;
    let rooms = [room_of(&ada, &[hers]).await, room_of(&ada, &[hers]).await];
    let (all, room) = (json!({"type": "subscribe_agents"}), |room| json!({"type": "subscribe", "room": room}));
    let (mut first, mut second) = (socket(&ada).await.unwrap(), socket(&ada).await.unwrap());
    for _ in 0..3 {
        assert_eq!(ask(&mut first, &all).await["type"], "subscribed_agents", "another request replaces the first one");
    }
    let refused = ask(&mut second, &all).await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("error"), &json!("too_many_streams")), "2 and 2 rooms");
    assert_eq!(ask(&mut second, &room(rooms[0])).await["type"], "subscribed");
    assert_eq!(ask(&mut socket(&bob).await.unwrap(), &all).await["type"], "subscribed_agents");

    // What the agents say still arrives, and one room more than there may be ends the subscription with an error.
    let run = post_text(&ada, rooms[1], "!count 2").await;
    wait_for_end(&ada, run).await;
    within("the answer", async { while receive(&mut first).await["type"] != "agent:complete" {} }).await;
    room_of(&ada, &[hers]).await;
    let ended = within("the end", async {
        loop {
            let message = receive(&mut first).await;
            if message["type"] == "error" {
                break message;
            }
        }
    })
    .await;
    assert_eq!(ended["code"], "too_many_streams", "{ended}");
    assert_eq!(ask(&mut first, &room(rooms[1])).await["type"], "subscribed", "and its rooms are free again");
    assert_eq!(response_to(ada.request(Method::GET, "/api/rooms")).await.status, 200);
    server.terminate(STOP).await.unwrap();
}
