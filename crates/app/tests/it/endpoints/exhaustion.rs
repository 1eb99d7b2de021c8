//! One user tries to use up the server in one way after the other, then in all of them at once, and another user notices
//! nothing. A second for each here; with `GREENROOM_EXHAUSTION_SECONDS=60` as long as that says.

use super::{
    binary::Binary,
    mcp_requests::{ACCEPT, initialize},
    requests::{agent, get, post_text, room_of, wait_for_end, within},
    shares::{peak_memory, two_users},
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId, RunId},
    position::Position,
};
use futures_util::SinkExt as _;
use reqwest::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use testkit::{
    client::{SseReader, TestClient, socket_request},
    database::TestDatabase,
};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

on_both_databases! {
    database: h5_one_user_cannot_exhaust_the_server;
}

const MEMORY: u64 = 300 << 20;
/// The promise is a second. A build without optimization takes many times as long to read and write JSON, on the cores
/// that it shares with the attacker.
const FIRST_TOKEN: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });

#[expect(clippy::disallowed_methods, reason = "how long a test takes is no setting of the server")]
fn duration() -> Duration {
    let seconds = std::env::var("GREENROOM_EXHAUSTION_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

#[derive(Clone, Copy, Debug)]
enum Attack {
    Messages,
    Events,
    McpSessions,
    Streams,
    /// Streams that begin at different events, so that they share none.
    ScatteredStreams,
    RunStreams,
    Sockets,
    Rooms,
    Queue,
    Answers,
    Uploads,
}

const ATTACKS: [Attack; 11] = [
    Attack::Messages,
    Attack::Events,
    Attack::McpSessions,
    Attack::Streams,
    Attack::ScatteredStreams,
    Attack::RunStreams,
    Attack::Sockets,
    Attack::Rooms,
    Attack::Queue,
    Attack::Answers,
    Attack::Uploads,
];

#[derive(Clone)]
struct Attacker {
    api: TestClient,
    agent: AgentId,
    /// A room with a long history, of large events.
    room: RoomId,
    /// Its last run.
    run: RunId,
    until: Instant,
}

impl Attacker {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// Sends requests and reads nothing of the responses, which stay open.
    async fn open_and_keep(self, method: Method, path: String, accept: &'static str) {
        let mut open = Vec::new();
        while self.goes_on() {
            let path = path.replace("COUNT", &open.len().to_string());
            let request = self.api.request(method.clone(), &path).header("accept", accept);
            let sent = tokio::time::timeout(Duration::from_secs(1), request.json(&initialize()).send());
            if let Ok(Ok(response)) = sent.await {
                open.push(response);
            }
        }
    }

    async fn sockets(self) {
        let mut open = Vec::new();
        while self.goes_on() {
            match tokio_tungstenite::connect_async(socket_request(&self.api).unwrap()).await {
                Ok((mut socket, _)) => {
                    for request in [
                        json!({"type": "subscribe", "room": self.room, "after": open.len() % 20}),
                        json!({"type": "subscribe_agents"}),
                        json!({"type": "watch_rooms"}),
                    ] {
                        drop(socket.send(Message::text(request.to_string())).await);
                    }
                    open.push(socket);
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    async fn send_many(self, path: String, body: serde_json::Value) {
        while self.goes_on() {
            drop(self.api.request(Method::POST, &path).json(&body).send().await);
        }
    }

    async fn upload_many(self) {
        while self.goes_on() {
            let request = self.api.request(Method::POST, "/api/uploads?name=a").header("content-type", "x/y");
            drop(request.body(vec![7; 5_000_000]).send().await);
        }
    }

    /// Starts one of the attacks.
    fn start(&self, attack: Attack, tasks: &mut JoinSet<()>) {
        const STREAM: &str = "text/event-stream";
        let (room, agent) = (self.room, self.agent);
        let mut keep_pages = |page: &str| {
            for _ in 0..4 {
                let path = format!("/api/rooms/{room}/{page}");
                tasks.spawn(self.clone().open_and_keep(Method::GET, path, "application/json"));
            }
        };
        match attack {
            Attack::Messages => keep_pages("messages?limit=1000"),
            Attack::Events => keep_pages("events?limit=10000&raw=true"),
            Attack::McpSessions => {
                tasks.spawn(self.clone().open_and_keep(Method::POST, "/mcp".into(), ACCEPT));
            }
            Attack::Streams => {
                tasks.spawn(self.clone().open_and_keep(Method::GET, format!("/api/rooms/{room}/events"), STREAM));
            }
            Attack::ScatteredStreams => {
                let path = format!("/api/rooms/{room}/events?after=COUNT");
                tasks.spawn(self.clone().open_and_keep(Method::GET, path, STREAM));
            }
            Attack::RunStreams => {
                let path = format!("/api/runs/{}/stream", self.run);
                tasks.spawn(self.clone().open_and_keep(Method::GET, path, STREAM));
            }
            Attack::Sockets => {
                tasks.spawn(self.clone().sockets());
            }
            Attack::Rooms => {
                tasks.spawn(self.clone().send_many("/api/rooms".into(), json!({"name": "a room"})));
            }
            Attack::Queue => {
                let queued = json!({"text": "!hang", "when_busy": "enqueue"});
                tasks.spawn(self.clone().send_many(format!("/api/rooms/{room}/messages"), queued));
            }
            Attack::Answers => {
                let flood = json!({"message": "!flood 1000000"});
                tasks.spawn(self.clone().send_many(format!("/api/execute/agent/{agent}"), flood));
            }
            Attack::Uploads => {
                tasks.spawn(self.clone().upload_many());
            }
        }
    }
}

/// How long a user waits for the first token of an answer.
async fn first_token(api: &TestClient, room: RoomId) -> Duration {
    let mut feed = SseReader::connect(api, room, &Position::START).await.unwrap();
    let asked = Instant::now();
    let run = post_text(api, room, "!count 3").await;
    within("the first token", async {
        loop {
            let event = feed.next_event().await.unwrap().unwrap();
            if event.kind == EventType::ContentDelta && event.run_id == Some(run) {
                break;
            }
        }
    })
    .await;
    let took = asked.elapsed();
    wait_for_end(api, run).await;
    took
}

async fn h5_one_user_cannot_exhaust_the_server(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_LIMITS__STORED_BYTES_PER_WORKSPACE", "400000000")
        .with("GREENROOM_LIMITS__ROOMS_PER_WORKSPACE", "500");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "hangs", json!({})).await;
    let large = room_of(&ada, &[hers]).await;
    // Each of the first ones has three events of half a megabyte: the message, the tool's input and its result.
    let input = json!({"text": "x".repeat(500_000)});
    // More than the buffers of the sockets take.
    for (message, times) in [(format!("!tool big {input}"), 14), ("!flood 3000000".into(), 3)] {
        for _ in 0..times {
            let run = post_text(&ada, large, &message).await;
            wait_for_end(&ada, run).await;
        }
    }
    let run = post_text(&ada, large, &format!("!tool big {input}")).await;
    wait_for_end(&ada, run).await;
    let page = get(&ada, &format!("/api/rooms/{large}/events?limit=3")).await.expect_status(200);
    assert!(page["events"].as_array().unwrap().iter().any(|event| event.to_string().len() > 500_000), "they are large");
    for _ in 0..64 {
        post_text(&ada, room_of(&ada, &[hers]).await, "!hang").await;
    }
    let his = agent(&bob, "answers", json!({})).await;
    let quiet = room_of(&bob, &[his]).await;
    let mut waits = Vec::new();
    let one_by_one = ATTACKS.chunks(1);
    for attacks in one_by_one.chain([&ATTACKS[..]]) {
        let until = Instant::now() + duration();
        let attacker = Attacker { api: ada.clone(), agent: hers, room: large, run, until };
        let mut tasks = JoinSet::new();
        attacks.iter().for_each(|attack| attacker.start(*attack, &mut tasks));
        while attacker.goes_on() {
            waits.push(first_token(&bob, quiet).await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tasks.shutdown().await;
        println!("{:?}: {} MB at most so far", attacks, peak_memory(&server) >> 20);
    }
    waits.sort_unstable();
    let slowest = waits.last().copied().unwrap_or_default();
    let peak = peak_memory(&server);
    println!("{} answers, the slowest first token after {slowest:?}; {} MB at most", waits.len(), peak >> 20);
    assert!(!waits.is_empty() && slowest < FIRST_TOKEN, "a first token came after {slowest:?}");
    assert!(peak < MEMORY, "{} MB", peak >> 20);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
