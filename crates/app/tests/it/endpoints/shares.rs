//! What one user and one workspace may take: slots of the workers, places in the queue, rooms, bytes, streams, sockets.

use super::{
    binary::Binary,
    requests::{agent, delete, get, post, post_text, response_to, room_of, wait_for_end, within},
};
use domain::{event::EventType, ids::RoomId, position::Position, run::RunStatus};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::{
    client::{SseReader, TestClient, TestServerProcess, socket_request},
    database::TestDatabase,
};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};

on_both_databases! {
    database: h5_64_hanging_runs_of_one_user_do_not_delay_another, h5_a_workspace_cannot_fill_the_queue,
              h5_a_workspace_has_a_limited_number_of_rooms, h5_a_workspace_stores_a_limited_number_of_bytes,
              h5_the_operator_sees_and_cancels_everything, l3_streams_and_sockets_of_one_user_are_limited,
              l3_messages_over_sockets_are_limited, m6_four_readers_of_a_large_room_take_little;
}

/// The clients of two users with a workspace each.
pub async fn two_users(binary: &mut Binary) -> [String; 2] {
    let mut tokens = Vec::new();
    for user in ["ada", "bob"] {
        let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        tokens.push(made.stdout.trim().to_owned());
    }
    tokens.try_into().unwrap()
}

async fn h5_64_hanging_runs_of_one_user_do_not_delay_another(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "hangs", json!({})).await;
    for _ in 0..64 {
        let room = room_of(&ada, &[hers]).await;
        post_text(&ada, room, "!hang").await;
    }
    let his = agent(&bob, "answers", json!({})).await;
    let room = room_of(&bob, &[his]).await;
    let mut feed = SseReader::connect(&bob, room, &Position { epoch: None, seq: 0 }).await.unwrap();
    let asked = Instant::now();
    post_text(&bob, room, "!count 3").await;
    within("the first token", async {
        while feed.next_event().await.unwrap().unwrap().kind != EventType::ContentDelta {}
    })
    .await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(1), "the first token came after {took:?}");
    let running = get(&ada, "/api/runs?status=running&limit=100").await.expect_status(200);
    assert_eq!(running["runs"].as_array().unwrap().len(), 48, "three quarters of the slots");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn h5_a_workspace_cannot_fill_the_queue(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_RUNS__UNFINISHED_PER_WORKSPACE", "5");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let one_room = async |api: &TestClient| {
        let agent = agent(api, "hangs", json!({})).await;
        room_of(api, &[agent]).await
    };
    let (hers, his) = (one_room(&ada).await, one_room(&bob).await);
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(post_text(&ada, hers, "!hang").await);
    }
    let message = json!({"text": "one more"});
    let refused = post(&ada, &format!("/api/rooms/{hers}/messages"), &message).await.expect_problem(429, "queue_full");
    assert!(refused["detail"].as_str().unwrap().contains("cancel"), "{refused}");
    post(&bob, &format!("/api/rooms/{his}/messages"), &message).await.expect_status(202);
    post(&ada, &format!("/api/runs/{}/cancel", runs[4]), &json!({})).await.expect_status(200);
    post(&ada, &format!("/api/rooms/{hers}/messages"), &message).await.expect_status(202);
    assert_eq!(ada.run(runs[4]).await.unwrap().status, RunStatus::Cancelled);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

const STOP: Duration = Duration::from_secs(30);

/// A room without agents: these users have none.
async fn empty_room(api: &TestClient) -> RoomId {
    let made = post(api, "/api/rooms", &json!({"name": "a room"})).await.expect_status(201);
    made["id"].as_str().unwrap().parse().unwrap()
}

async fn h5_a_workspace_has_a_limited_number_of_rooms(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LIMITS__ROOMS_PER_WORKSPACE", "3");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "answers", json!({})).await;
    let first = room_of(&ada, &[hers]).await;
    for _ in 0..2 {
        room_of(&ada, &[hers]).await;
    }
    let refused = post(&ada, "/api/rooms", &json!({"name": "one more"})).await.expect_problem(403, "too_many_rooms");
    assert!(refused["detail"].as_str().unwrap().contains("delete"), "{refused}");
    let execute = format!("/api/execute/agent/{hers}");
    post(&ada, &execute, &json!({"message": "hello"})).await.expect_problem(403, "too_many_rooms");
    empty_room(&bob).await;
    assert_eq!(delete(&ada, &format!("/api/rooms/{first}")).await.status, 204);
    room_of(&ada, &[hers]).await;
    server.terminate(STOP).await.unwrap();
}

async fn h5_a_workspace_stores_a_limited_number_of_bytes(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LIMITS__STORED_BYTES_PER_WORKSPACE", "1048576");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let upload = async |bytes: usize| {
        let request = ada.request(Method::POST, "/api/uploads?name=a.bin").header("content-type", "x/y");
        response_to(request.body(vec![7; bytes])).await
    };
    upload(600_000).await.expect_status(201);
    upload(600_000).await.expect_problem(507, "storage_full");
    let hers = agent(&ada, "writes", json!({})).await;
    let room = room_of(&ada, &[hers]).await;
    let run = post_text(&ada, room, "!flood 600000").await;
    wait_for_end(&ada, run).await;
    // The sum is read again after a few seconds.
    within("the limit", async {
        loop {
            let answer = post(&ada, &format!("/api/rooms/{room}/messages"), &json!({"text": "more"})).await;
            if answer.status != 202 {
                break answer.expect_problem(507, "storage_full");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
    let his = agent(&bob, "answers", json!({})).await;
    post_text(&bob, room_of(&bob, &[his]).await, "hello").await;
    server.terminate(STOP).await.unwrap();
}

async fn h5_the_operator_sees_and_cancels_everything(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, bob] = two_users(&mut binary).await;
    let (server, operator) = binary.serve().await;
    let (ada, bob) = (operator.clone().with_token(ada), operator.clone().with_token(bob));
    let hers = agent(&ada, "hangs", json!({})).await;
    let run = post_text(&ada, room_of(&ada, &[hers]).await, "!hang").await;
    let all = get(&operator, "/api/runs?all=true&limit=10").await.expect_status(200);
    let seen = all["runs"].as_array().unwrap().iter().find(|seen| seen["id"] == json!(run)).unwrap();
    assert_eq!((&seen["workspace"], &seen["agent_name"]), (&json!("ada"), &json!("hangs")));
    assert!(get(&operator, "/api/runs").await.expect_status(200)["runs"].as_array().unwrap().is_empty());
    get(&bob, "/api/runs?all=true").await.expect_problem(403, "forbidden");
    let cancel = format!("/api/runs/{run}/cancel");
    post(&bob, &cancel, &json!({})).await.expect_problem(404, "not_found");
    let _stream = SseReader::open(&ada, &format!("/api/runs/{run}/stream"), &Position::START).await.unwrap();
    let report = get(&operator, "/api/doctor").await.expect_status(200);
    let used = report["workspaces"].as_array().unwrap().iter().find(|used| used["workspace"] == "ada").unwrap();
    let figures = ["rooms", "unfinished_runs", "streams"].map(|figure| used[figure].as_u64().unwrap());
    assert_eq!(figures, [1, 1, 1], "{used}");
    assert!(used["stored_bytes"].as_u64().unwrap() > 0);
    let stopped = post(&operator, &cancel, &json!({})).await.expect_status(200);
    assert_eq!(stopped["status"], "cancelled");
    assert_eq!(ada.run(run).await.unwrap().status, RunStatus::Cancelled);
    server.terminate(STOP).await.unwrap();
}

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub async fn socket(api: &TestClient) -> Result<Socket, u16> {
    match within("a socket", tokio_tungstenite::connect_async(socket_request(api).unwrap())).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// The next message that is not a heartbeat.
pub async fn receive(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = within("a message", socket.next()).await.unwrap().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["type"] != "heartbeat" {
                return message;
            }
        }
    }
}

pub async fn ask(socket: &mut Socket, request: &Value) -> Value {
    socket.send(Message::text(request.to_string())).await.unwrap();
    receive(socket).await
}

async fn l3_streams_and_sockets_of_one_user_are_limited(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_LIMITS__STREAMS_PER_USER", "3")
        .with("GREENROOM_LIMITS__SUBSCRIPTIONS_PER_USER", "2");
    let [ada, bob] = two_users(&mut binary).await;
    let [ada_again, _] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada_again, ada, bob) = (api.clone().with_token(ada_again), api.clone().with_token(ada), api.with_token(bob));
    let rooms: [RoomId; 3] = [empty_room(&ada).await, empty_room(&ada).await, empty_room(&ada).await];
    let follow = async |api: &TestClient, room: RoomId| {
        let request =
            api.request(Method::GET, &format!("/api/rooms/{room}/events")).header("accept", "text/event-stream");
        within("a stream", request.send()).await.unwrap()
    };
    let first = follow(&ada, rooms[0]).await;
    let second = follow(&ada_again, rooms[0]).await;
    let mut watching = socket(&ada).await.unwrap();
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let refused = follow(&ada, rooms[0]).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "too_many_streams");
    assert_eq!(socket(&ada_again).await.unwrap_err(), 429, "all tokens together");
    assert_eq!(follow(&bob, empty_room(&bob).await).await.status(), 200);

    let subscribe = |room: RoomId| json!({"type": "subscribe", "room": room, "after": 999});
    for room in &rooms[..2] {
        assert_eq!(ask(&mut watching, &subscribe(*room)).await["type"], "subscribed");
        assert_eq!(receive(&mut watching).await["type"], "reset");
    }
    // The events after the resets come first.
    let refused = loop {
        let message = ask(&mut watching, &subscribe(rooms[2])).await;
        if message["type"] != "event" {
            break message;
        }
    };
    assert_eq!((&refused["type"], &refused["code"]), (&json!("error"), &json!("too_many_streams")), "{refused}");

    drop((first, second));
    within("a place", async {
        while follow(&ada, rooms[0]).await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    server.terminate(STOP).await.unwrap();
}

async fn l3_messages_over_sockets_are_limited(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_LIMITS__SOCKET_MESSAGES_PER_SECOND", "1")
        .with("GREENROOM_LIMITS__SOCKET_MESSAGE_BURST", "20");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let mut sockets = [socket(&ada).await.unwrap(), socket(&ada).await.unwrap()];
    let mut his = socket(&bob).await.unwrap();
    let (mut answered, mut refused) = (0, None);
    for n in 0..40 {
        let answer = ask(&mut sockets[n % 2], &json!({"type": "watch_rooms"})).await;
        if answer["type"] == "error" {
            refused = Some((n % 2, answer));
            break;
        }
        answered += 1;
    }
    let (at, refusal) = refused.expect("a refusal");
    assert_eq!(refusal["code"], "too_many_requests");
    assert!((20..40).contains(&answered), "{answered} messages of both sockets");
    let close = within("the end", async {
        loop {
            if let Message::Close(frame) = sockets[at].next().await.unwrap().unwrap() {
                break frame.unwrap();
            }
        }
    })
    .await;
    assert_eq!(close.code, CloseCode::Policy);
    assert_eq!(ask(&mut his, &json!({"type": "ping"})).await["type"], "pong");
    server.terminate(STOP).await.unwrap();
}

/// The most memory that the server has had, in bytes.
pub fn peak_memory(server: &TestServerProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

async fn m6_four_readers_of_a_large_room_take_little(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "writes", json!({})).await;
    let large = room_of(&ada, &[hers]).await;
    for _ in 0..15 {
        let run = post_text(&ada, large, "!flood 3000000").await;
        wait_for_end(&ada, run).await;
    }
    let before = peak_memory(&server);
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let ada = ada.clone();
        readers.spawn(async move {
            let (mut before, mut read) = (String::new(), 0);
            loop {
                let path = format!("/api/rooms/{large}/messages?limit=1000{before}");
                let answer = within("a page", ada.request(Method::GET, &path).send()).await.unwrap();
                assert_eq!(answer.status(), 200);
                // Not parsed: that would take this machine's time from the user who is measured.
                let page = within("its body", answer.text()).await.unwrap();
                read += page.matches("\"seq\":").count();
                if page.ends_with("\"has_more\":false}") {
                    break read;
                }
                let (_, seq) = page.split_once("\"seq\":").unwrap();
                before = format!("&before={}", &seq[..seq.find(',').unwrap()]);
            }
        });
    }
    let mut waits = Vec::new();
    while !readers.is_empty() {
        let asked = Instant::now();
        get(&bob, "/api/rooms").await.expect_status(200);
        waits.push(asked.elapsed());
        while let Some(read) = readers.try_join_next() {
            assert_eq!(read.unwrap(), 30, "every message once");
        }
    }
    waits.sort_unstable();
    let (median, slowest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!("another user waited for {median:?}, at most {slowest:?}");
    // A single wait also depends on what else the machine does; before the fix, requests waited for 10 s and failed.
    assert!(median < Duration::from_millis(500), "another user waited for {median:?}");
    assert!(slowest < Duration::from_secs(5), "another user waited for {slowest:?}");
    let more = peak_memory(&server).saturating_sub(before);
    assert!(more < 96 << 20, "{} MB more for a room of 45 MB", more >> 20);
    server.terminate(STOP).await.unwrap();
}
