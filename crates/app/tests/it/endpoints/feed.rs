//! The live feed: headers, heartbeats, start positions and resets.

use super::requests::{get, journal, post_and_wait, post_body, post_text, response_to, room, room_of, within};
use domain::position::{Epoch, Position};
use reqwest::{Method, header};
use serde_json::{Value, json};
use testkit::{
    client::{SeenEvent, SeenItem, SseReader, TestClient, WsReader},
    database::TestDatabase,
    server::TestServer,
};

on_both_databases! {
    server: streams_are_not_cached_or_buffered, invariant_08_epoch_foreign_position_resets_over_sse,
            invariant_08_epoch_foreign_position_resets_over_websocket, last_event_id_overrides_after,
            raw_provider_data_is_shown_on_request_only, one_socket_follows_many_rooms,
            new_room_can_be_followed_before_its_first_event;
    database: heartbeats_contain_the_head;
}

fn at(seq: u64) -> Position {
    Position { epoch: None, seq }
}

/// Two positions that are not in this journal.
fn foreign() -> [Position; 2] {
    [Position { epoch: Some(Epoch::parse("deadbeef").unwrap()), seq: 1 }, at(1_000_000)]
}

async fn streams_are_not_cached_or_buffered(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, "!count 2").await;
    for path in [format!("/api/rooms/{room}/events"), format!("/api/runs/{}/stream", run.id)] {
        let request = api.request(Method::GET, &path).header(header::ACCEPT, "text/event-stream");
        let response = within("a head", request.header(header::ACCEPT_ENCODING, "gzip, br").send()).await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("content-type"), Some("text/event-stream"));
        assert_eq!(header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(header("x-accel-buffering"), Some("no"));
        assert_eq!(header("content-encoding"), None);
    }
}

async fn heartbeats_contain_the_head(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("feed.heartbeat_seconds", "1")]).await;
    let api = server.api();
    let room = room(api).await;
    let head = 1;
    let mut stream = SseReader::connect(api, room, &at(head)).await.unwrap();
    let beat = within("a heartbeat", stream.next_frame()).await.unwrap().unwrap();
    assert_eq!((beat.id, beat.event.as_deref()), (None, Some("heartbeat")), "a heartbeat must have no id");
    let epoch = api.events(room, &Position::START, 1).await.unwrap().epoch;
    assert_eq!(serde_json::from_str::<Value>(&beat.data).unwrap(), json!({"epoch": epoch, "head": head}));
    assert_eq!(stream.position(), &at(head));

    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &at(head)).await.unwrap();
    for _ in 0..3 {
        // The subscription response, then heartbeats. The second arrives only if the first ping got a pong.
        let (of, SeenItem::Heartbeat(place)) = within("a beat", socket.next()).await.unwrap().unwrap() else {
            panic!()
        };
        assert_eq!((of, place.head, &place.epoch), (room, head, &epoch));
    }
    server.finish().await;
}

async fn invariant_08_epoch_foreign_position_resets_over_sse(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!count 3").await;
    let journal = journal(api, room).await;
    for position in foreign() {
        let mut stream = SseReader::connect(api, room, &position).await.unwrap();
        let Some(SeenItem::Reset(place)) = within("a reset", stream.next()).await.unwrap() else {
            panic!("a reset is first")
        };
        assert_eq!(place.head, journal.len() as u64);
        let mut seen = Vec::new();
        while seen.len() < journal.len() {
            seen.push(within("the journal", stream.next_event()).await.unwrap().unwrap());
        }
        assert_eq!(seen, journal, "the whole journal must follow");
    }
}

async fn invariant_08_epoch_foreign_position_resets_over_websocket(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!count 3").await;
    let journal = journal(api, room).await;
    for position in foreign() {
        let mut socket = WsReader::connect(api).await.unwrap();
        socket.subscribe(room, &position).await.unwrap();
        let (mut resets, mut seen) = (0, Vec::new());
        while seen.len() < journal.len() {
            match within("the journal", socket.next()).await.unwrap().unwrap().1 {
                SeenItem::Reset(place) => {
                    assert_eq!((seen.len(), place.head), (0, journal.len() as u64));
                    resets += 1;
                }
                SeenItem::Event(event) => seen.push(event),
                SeenItem::Heartbeat(_) => {}
            }
        }
        assert_eq!((resets, seen), (1, journal.clone()));
    }
}

async fn last_event_id_overrides_after(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!count 3").await;
    let path = format!("/api/rooms/{room}/events?after=1");
    let mut stream = SseReader::open(api, &path, &at(4)).await.unwrap();
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 5);
    let mut stream = SseReader::open(api, &path, &Position::START).await.unwrap();
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 2);
    // A browser sends an empty header before its first event.
    let empty = api.request(Method::GET, &path).header("last-event-id", "");
    assert_eq!(response_to(empty).await.expect_status(200)["events"][0]["seq"], 2);
}

async fn raw_provider_data_is_shown_on_request_only(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, r#"!tool look {"at":"this"}"#).await;
    let path = format!("/api/rooms/{room}/events");
    let raws = |page: &Value| page["events"].as_array().unwrap().iter().filter(|event| !event["raw"].is_null()).count();
    let with = get(api, &format!("{path}?raw=true")).await.expect_status(200);
    assert_eq!(raws(&with), 2, "the call and its result");
    let call = with["events"].as_array().unwrap().iter().find(|event| event["type"] == "tool_use").unwrap();
    assert_eq!(call["raw"]["name"], "look");
    for without in [format!("{path}?raw=false"), path.clone()] {
        assert_eq!(raws(&get(api, &without).await.expect_status(200)), 0);
    }
    assert!(journal(api, room).await.iter().all(|event| !event.json.contains("\"raw\"")));
    let stream = api.request(Method::GET, &format!("{path}?raw=true")).header(header::ACCEPT, "text/event-stream");
    response_to(stream).await.expect_problem(422, "unprocessable");
    get(api, &format!("{path}?raw=yes")).await.expect_problem(400, "invalid_request");
}

async fn one_socket_follows_many_rooms(api: &TestClient) {
    let mut rooms = Vec::new();
    for _ in 0..20 {
        rooms.push(room(api).await);
    }
    let mut socket = WsReader::connect(api).await.unwrap();
    for room in &rooms {
        socket.subscribe(*room, &Position::START).await.unwrap();
    }
    for room in &rooms {
        post_text(api, *room, "!count 20 5").await;
    }
    let mut seen: Vec<Vec<SeenEvent>> = vec![Vec::new(); rooms.len()];
    let mut open = rooms.len();
    within("all answers", async {
        while open > 0 {
            let (room, SeenItem::Event(event)) = socket.next().await.unwrap().unwrap() else { continue };
            open -= usize::from(event.kind.ends_a_run());
            seen[rooms.iter().position(|other| *other == room).unwrap()].push(event);
        }
    })
    .await;
    for (room, seen) in rooms.iter().zip(&seen) {
        assert_eq!(*seen, journal(api, *room).await);
    }
}

async fn new_room_can_be_followed_before_its_first_event(api: &TestClient) {
    let room = room_of(api, &[]).await;
    let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    post_body(api, room, json!({"text": "hello"})).await.expect_status(202);
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 1);
    let seen = within("an event", async {
        loop {
            if let (_, SeenItem::Event(event)) = socket.next().await.unwrap().unwrap() {
                break event;
            }
        }
    })
    .await;
    assert_eq!(seen.seq, 1);
}
