//! The room list: summaries, and notifications of changes.

use super::requests::{
    RoomFollower, delete, get, post, post_and_wait, post_text, response_to, room, room_of, wait_for_end, within,
};
use domain::event::EventType;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::{TestClient, socket_request};
use tokio::{net::TcpStream, time::Instant};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

on_both_databases! {
    server: list_has_a_summary_of_each_room, watcher_gets_every_change,
            updates_of_a_busy_room_are_throttled;
}

async fn list_has_a_summary_of_each_room(api: &TestClient) {
    let (quiet, busy) = (room_of(api, &[]).await, room(api).await);
    let of = async |room| {
        let list = get(api, "/api/rooms").await.expect_status(200);
        let found = list["rooms"].as_array().unwrap().iter().find(|one| one["id"] == json!(room)).unwrap().clone();
        assert_eq!(
            get(api, &format!("/api/rooms/{room}")).await.expect_status(200),
            found,
            "a single room must equal its list entry"
        );
        found
    };
    let summary = of(quiet).await;
    assert_eq!(
        (&summary["busy"], &summary["waiting"], &summary["last_message"]),
        (&json!(false), &json!(false), &Value::Null)
    );
    let mut follower = RoomFollower::start(api, busy).await;
    let run = post_text(api, busy, "!ask Bash {}").await;
    follower.until_kind(EventType::ApprovalRequested, run).await;
    let summary = of(busy).await;
    assert_eq!((&summary["busy"], &summary["waiting"]), (&json!(true), &json!(true)));
    assert_eq!(summary["last_message"]["text"], "!ask Bash {}");
    let author = &summary["last_message"]["author"];
    assert_eq!((&author["kind"], &author["name"]), (&json!("person"), &json!("local")));
    api.cancel_run(run).await.unwrap();
    wait_for_end(api, run).await;
    post_and_wait(api, busy, "!count 3").await;
    let summary = of(busy).await;
    assert_eq!((&summary["busy"], &summary["waiting"]), (&json!(false), &json!(false)));
    assert_eq!(
        (&summary["last_message"]["text"], &summary["last_message"]["author"]["kind"]),
        (&json!("1 2 3"), &json!("agent"))
    );
    assert_eq!(summary["failed"], json!(false));
    post_and_wait(api, busy, "!fail over_loaded").await;
    assert_eq!(of(busy).await["failed"], json!(true), "the newest run failed");
    post_and_wait(api, busy, "!count 3").await;
    assert_eq!(of(busy).await["failed"], json!(false), "a newer run succeeded");
    let long = "é".repeat(300);
    post(api, &format!("/api/rooms/{quiet}/messages"), &json!({"text": long})).await.expect_status(202);
    assert_eq!(of(quiet).await["last_message"]["text"], "é".repeat(200));
}

struct Watcher(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Watcher {
    async fn open(api: &TestClient) -> (Self, Value) {
        let request = socket_request(api).unwrap();
        let mut watcher = Self(within("a socket", tokio_tungstenite::connect_async(request)).await.unwrap().0);
        watcher.send(r#"{"type":"watch_rooms"}"#).await;
        let list = watcher.receive().await;
        assert_eq!(list["type"], "rooms");
        (watcher, list)
    }

    async fn send(&mut self, text: &str) {
        within("a send", self.0.send(Message::text(text))).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        loop {
            match within("a notification", self.0.next()).await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let update = self.receive().await;
            if fits(&update) {
                return update;
            }
        }
    }
}

async fn watcher_gets_every_change(api: &TestClient) {
    let first = room(api).await;
    let (mut watcher, list) = Watcher::open(api).await;
    assert_eq!(list["rooms"], get(api, "/api/rooms").await.expect_status(200)["rooms"], "must equal the REST list");
    let run = post_text(api, first, "!count 3").await;
    let update = watcher.until(|update| update["room"]["busy"] == true).await;
    assert_eq!((&update["type"], &update["room"]["id"]), (&json!("room"), &json!(first)));
    wait_for_end(api, run).await;
    watcher.until(|update| update["room"]["busy"] == false && update["room"]["last_message"]["text"] == "1 2 3").await;

    let second = room_of(api, &[]).await;
    watcher.until(|update| update["type"] == "room" && update["room"]["id"] == json!(second)).await;
    let rename = api.request(Method::PATCH, &format!("/api/rooms/{second}")).json(&json!({"name": "Other"}));
    response_to(rename).await.expect_status(200);
    watcher.until(|update| update["room"]["name"] == "Other").await;
    assert_eq!(delete(api, &format!("/api/rooms/{second}")).await.status, 204);
    assert_eq!(watcher.until(|update| update["type"] == "room_gone").await["id"], json!(second));

    watcher.send(r#"{"type":"unwatch_rooms"}"#).await;
    watcher.until(|update| update["type"] == "unwatched_rooms").await;
    post_and_wait(api, first, "!count 2").await;
    watcher.send(r#"{"type":"ping"}"#).await;
    assert_eq!(watcher.receive().await["type"], "pong", "no more room updates");
}

async fn updates_of_a_busy_room_are_throttled(api: &TestClient) {
    let room = room(api).await;
    let (mut watcher, _) = Watcher::open(api).await;
    let (began, run) = (Instant::now(), post_text(api, room, "!count 40 50").await);
    let (mut updates, mut head) = (0, 0);
    loop {
        let update = watcher.until(|update| update["type"] == "room").await;
        updates += 1;
        let now = update["room"]["head"].as_u64().unwrap();
        assert!(now >= head, "the head must not go back");
        head = now;
        if update["room"]["busy"] == false {
            break;
        }
    }
    let most = began.elapsed().as_millis() / 500 + 2;
    assert!(updates <= most, "{updates} in {:?}", began.elapsed());
    assert!(began.elapsed() > Duration::from_millis(500), "the run must take long enough: {:?}", began.elapsed());
    assert_eq!(
        head,
        wait_for_end(api, run).await.queued_seq.max(super::requests::head(api, room).await),
        "the last update must have the newest head"
    );
}
