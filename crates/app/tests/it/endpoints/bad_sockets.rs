//! WebSocket clients that send invalid messages.

use super::requests::{head, post_and_wait, post_body, room, room_of, within};
use domain::{ids::RoomId, run::RunStatus};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use testkit::client::{TestClient, socket_request};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};
use uuid::Uuid;

on_both_databases! {
    server: invalid_messages_get_errors_and_keep_the_connection, subscriptions_per_connection_are_limited,
            oversized_message_closes_the_connection, resubscribing_starts_at_the_new_position;
}

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(api: &TestClient) -> Self {
        let request = socket_request(api).unwrap();
        Self(within("a socket", tokio_tungstenite::connect_async(request)).await.unwrap().0)
    }

    async fn send(&mut self, message: Message) {
        within("a send", self.0.send(message)).await.unwrap();
    }

    /// Returns the next message that is not a heartbeat: those come whenever they are due.
    async fn receive(&mut self) -> Value {
        loop {
            match within("an answer", self.0.next()).await.unwrap().unwrap() {
                Message::Text(text) => match serde_json::from_str::<Value>(&text).unwrap() {
                    beat if beat["type"] == "heartbeat" => {}
                    answer => return answer,
                },
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(Message::text(message.to_string())).await;
        self.receive().await
    }

    async fn expect_problem(&mut self, message: Message, code: &str) -> Value {
        self.send(message).await;
        let refusal = self.receive().await;
        assert_eq!((&refusal["type"], &refusal["code"]), (&json!("error"), &json!(code)), "{refusal}");
        assert!(!refusal["detail"].as_str().unwrap().is_empty());
        refusal
    }
}

fn subscribe(room: impl serde::Serialize, after: Value) -> Value {
    json!({"type": "subscribe", "room": room, "after": after})
}

async fn invalid_messages_get_errors_and_keep_the_connection(api: &TestClient) {
    let room = room(api).await;
    let mut socket = Socket::open(api).await;
    for bad in
        ["", "hello", "{", "[]", "null", "1", "{}", r#"{"type":1}"#, r#"{"type":"nope"}"#, r#"{"type":"subscribe"}"#]
    {
        socket.expect_problem(Message::text(bad), "invalid_request").await;
    }
    let deep = format!("{{\"type\":\"ping\",\"x\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
    socket.expect_problem(Message::text(deep), "invalid_request").await;
    for bad in [
        subscribe("x", json!(0)),
        subscribe(7, json!(0)),
        subscribe(room, json!(-1)),
        subscribe(room, json!(1.5)),
        subscribe(room, json!("x-y")),
        subscribe(room, json!(null)),
        subscribe(room, json!([1])),
        json!({"type": "subscribe", "room": room, "since": 1}),
        json!({"type": "unsubscribe"}),
        json!({"type": "ping", "extra": 1}),
    ] {
        socket.expect_problem(Message::text(bad.to_string()), "invalid_request").await;
    }
    socket.expect_problem(Message::binary(vec![0, 1, 2]), "invalid_request").await;
    let unknown = Uuid::now_v7();
    let refusal = socket.expect_problem(Message::text(subscribe(unknown, json!(0)).to_string()), "not_found").await;
    assert_eq!(refusal["room"], json!(unknown));

    // The socket still works afterwards.
    assert_eq!(socket.ask(&json!({"type": "ping"})).await, json!({"type": "pong"}));
    let subscribed = socket.ask(&subscribe(room, json!(0))).await;
    assert_eq!(
        (&subscribed["type"], &subscribed["room"], &subscribed["head"]),
        (&json!("subscribed"), &json!(room), &json!(1))
    );
    assert_eq!(socket.receive().await["event"]["seq"], 1);
    let done = socket.ask(&json!({"type": "unsubscribe", "room": room})).await;
    assert_eq!(done, json!({"type": "unsubscribed", "room": room}));
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed);
    assert_eq!(socket.ask(&json!({"type": "ping"})).await["type"], "pong", "no events of an unsubscribed room");
}

async fn resubscribing_starts_at_the_new_position(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!script [{\"text\":\"a\"}]").await;
    let head = head(api, room).await;
    let mut socket = Socket::open(api).await;
    for after in [0, head - 2, 1] {
        assert_eq!(socket.ask(&subscribe(room, json!(after))).await["type"], "subscribed");
        for seq in after + 1..=head {
            assert_eq!(socket.receive().await["event"]["seq"], seq);
        }
    }
    assert_eq!(socket.ask(&json!({"type": "ping"})).await["type"], "pong", "each event must arrive once");
}

async fn oversized_message_closes_the_connection(api: &TestClient) {
    let room = room(api).await;
    let mut socket = Socket::open(api).await;
    let large = json!({"type": "ping", "x": "x".repeat(70_000)}).to_string();
    // The server may close before it has read the whole message.
    let sent = within("a send", socket.0.send(Message::text(large))).await;
    let ended = loop {
        match within("the end", socket.0.next()).await {
            Some(Ok(Message::Close(frame))) => break frame.map(|frame| frame.code),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break None,
        }
    };
    assert!(matches!(ended, None | Some(CloseCode::Size)), "{sent:?} {ended:?}");
    assert_eq!(
        post_and_wait(api, room, "!count 2").await.status,
        RunStatus::Completed,
        "other clients must not be affected"
    );
}

async fn subscriptions_per_connection_are_limited(api: &TestClient) {
    const MOST: usize = 1000;
    let make = futures_util::stream::iter(0..=MOST).map(|_| room_of(api, &[]));
    let rooms: Vec<RoomId> = within("the rooms", make.buffer_unordered(64).collect()).await;
    let mut socket = Socket::open(api).await;
    for room in &rooms[..MOST] {
        assert_eq!(socket.ask(&subscribe(room, json!(0))).await["type"], "subscribed");
    }
    let one_more = Message::text(subscribe(rooms[MOST], json!(0)).to_string());
    let refusal = socket.expect_problem(one_more.clone(), "invalid_request").await;
    assert!(refusal["detail"].as_str().unwrap().contains("1000"), "{refusal}");
    assert_eq!(
        socket.ask(&subscribe(rooms[0], json!(0))).await["type"],
        "subscribed",
        "resubscribing must not count twice"
    );
    assert_eq!(socket.ask(&json!({"type": "unsubscribe", "room": rooms[0]})).await["type"], "unsubscribed");
    socket.send(one_more).await;
    assert_eq!(socket.receive().await["type"], "subscribed", "unsubscribing must free a slot");
    post_body(api, rooms[MOST], json!({"text": "hello"})).await.expect_status(202);
    assert_eq!(socket.receive().await["event"]["room_id"], json!(rooms[MOST]));
}
