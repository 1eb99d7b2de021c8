//! The live feed: its headers, its heartbeat, where it begins, and when it tells a reader to start over.

use super::scene::{answer, answered, get, journal, room, room_of, say, say_with, within};
use domain::position::{Epoch, Position};
use reqwest::{Method, header};
use serde_json::{Value, json};
use testkit::{
    client::{Api, Said, SeenEvent, SseReader, WsReader},
    database::TestDatabase,
    server::TestServer,
};

doors! {
    server: a_stream_is_neither_cached_nor_buffered, invariant_08_epoch_a_foreign_position_starts_over_by_sse,
            invariant_08_epoch_a_foreign_position_starts_over_by_websocket, last_event_id_wins_over_after,
            what_the_provider_sent_is_shown_only_when_asked_for, one_socket_follows_many_rooms,
            a_fresh_room_is_waited_for;
    database: a_heartbeat_says_where_the_head_is;
}

fn at(seq: u64) -> Position {
    Position { epoch: None, seq }
}

/// Two positions that are not in any journal here.
fn foreign() -> [Position; 2] {
    [Position { epoch: Some(Epoch::parse("deadbeef").unwrap()), seq: 1 }, at(1_000_000)]
}

async fn a_stream_is_neither_cached_nor_buffered(api: &Api) {
    let room = room(api).await;
    let run = answered(api, room, "!count 2").await;
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

async fn a_heartbeat_says_where_the_head_is(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("feed.heartbeat_seconds", "1")]).await;
    let api = server.api();
    let room = room(api).await;
    let head = 1;
    let mut stream = SseReader::connect(api, room, &at(head)).await.unwrap();
    let beat = within("a heartbeat", stream.next_frame()).await.unwrap().unwrap();
    assert_eq!((beat.id, beat.event.as_deref()), (None, Some("heartbeat")), "without an id it moves no position");
    let epoch = api.events(room, &Position::START, 1).await.unwrap().epoch;
    assert_eq!(serde_json::from_str::<Value>(&beat.data).unwrap(), json!({"epoch": epoch, "head": head}));
    assert_eq!(stream.position(), &at(head));

    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &at(head)).await.unwrap();
    for _ in 0..3 {
        // The answer to the subscription, then the beats. The second comes only if the first was answered with a pong.
        let (of, Said::Heartbeat(place)) = within("a beat", socket.next()).await.unwrap().unwrap() else { panic!() };
        assert_eq!((of, place.head, &place.epoch), (room, head, &epoch));
    }
    server.finish().await;
}

async fn invariant_08_epoch_a_foreign_position_starts_over_by_sse(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!count 3").await;
    let journal = journal(api, room).await;
    for position in foreign() {
        let mut stream = SseReader::connect(api, room, &position).await.unwrap();
        let Some(Said::Reset(place)) = within("a reset", stream.next()).await.unwrap() else {
            panic!("a reset is first")
        };
        assert_eq!(place.head, journal.len() as u64);
        let mut seen = Vec::new();
        while seen.len() < journal.len() {
            seen.push(within("the journal", stream.next_event()).await.unwrap().unwrap());
        }
        assert_eq!(seen, journal, "the whole journal follows");
    }
}

async fn invariant_08_epoch_a_foreign_position_starts_over_by_websocket(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!count 3").await;
    let journal = journal(api, room).await;
    for position in foreign() {
        let mut socket = WsReader::connect(api).await.unwrap();
        socket.subscribe(room, &position).await.unwrap();
        let (mut resets, mut seen) = (0, Vec::new());
        while seen.len() < journal.len() {
            match within("the journal", socket.next()).await.unwrap().unwrap().1 {
                Said::Reset(place) => {
                    assert_eq!((seen.len(), place.head), (0, journal.len() as u64));
                    resets += 1;
                }
                Said::Event(event) => seen.push(event),
                Said::Heartbeat(_) => {}
            }
        }
        assert_eq!((resets, seen), (1, journal.clone()));
    }
}

async fn last_event_id_wins_over_after(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!count 3").await;
    let path = format!("/api/rooms/{room}/events?after=1");
    let mut stream = SseReader::open(api, &path, &at(4)).await.unwrap();
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 5);
    let mut stream = SseReader::open(api, &path, &Position::START).await.unwrap();
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 2);
    // A browser sends an empty one before it has seen any.
    let empty = api.request(Method::GET, &path).header("last-event-id", "");
    assert_eq!(answer(empty).await.is(200)["events"][0]["seq"], 2);
}

async fn what_the_provider_sent_is_shown_only_when_asked_for(api: &Api) {
    let room = room(api).await;
    answered(api, room, r#"!tool look {"at":"this"}"#).await;
    let path = format!("/api/rooms/{room}/events");
    let raws = |page: &Value| page["events"].as_array().unwrap().iter().filter(|event| !event["raw"].is_null()).count();
    let with = get(api, &format!("{path}?raw=true")).await.is(200);
    assert_eq!(raws(&with), 2, "of the call and of its result");
    let call = with["events"].as_array().unwrap().iter().find(|event| event["type"] == "tool_use").unwrap();
    assert_eq!(call["raw"]["name"], "look");
    for without in [format!("{path}?raw=false"), path.clone()] {
        assert_eq!(raws(&get(api, &without).await.is(200)), 0);
    }
    assert!(journal(api, room).await.iter().all(|event| !event.json.contains("\"raw\"")));
    let stream = api.request(Method::GET, &format!("{path}?raw=true")).header(header::ACCEPT, "text/event-stream");
    answer(stream).await.is_refused(400, "invalid_request");
    get(api, &format!("{path}?raw=yes")).await.is_refused(400, "invalid_request");
}

async fn one_socket_follows_many_rooms(api: &Api) {
    let mut rooms = Vec::new();
    for _ in 0..20 {
        rooms.push(room(api).await);
    }
    let mut socket = WsReader::connect(api).await.unwrap();
    for room in &rooms {
        socket.subscribe(*room, &Position::START).await.unwrap();
    }
    for room in &rooms {
        say(api, *room, "!count 20 5").await;
    }
    let mut seen: Vec<Vec<SeenEvent>> = vec![Vec::new(); rooms.len()];
    let mut open = rooms.len();
    within("all answers", async {
        while open > 0 {
            let (room, Said::Event(event)) = socket.next().await.unwrap().unwrap() else { continue };
            open -= usize::from(event.kind.ends_a_run());
            seen[rooms.iter().position(|other| *other == room).unwrap()].push(event);
        }
    })
    .await;
    for (room, seen) in rooms.iter().zip(&seen) {
        assert_eq!(*seen, journal(api, *room).await);
    }
}

async fn a_fresh_room_is_waited_for(api: &Api) {
    let room = room_of(api, &[]).await;
    let mut stream = SseReader::connect(api, room, &Position::START).await.unwrap();
    let mut socket = WsReader::connect(api).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    say_with(api, room, json!({"text": "hello"})).await.is(202);
    assert_eq!(within("an event", stream.next_event()).await.unwrap().unwrap().seq, 1);
    let seen = within("an event", async {
        loop {
            if let (_, Said::Event(event)) = socket.next().await.unwrap().unwrap() {
                break event;
            }
        }
    })
    .await;
    assert_eq!(seen.seq, 1);
}
