//! The list of rooms: what it says of each, and being told when that changes.

use super::scene::{Audience, answer, answered, delete, ended, get, post, room, room_of, say, within};
use domain::event::EventType;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::Api;
use tokio::{net::TcpStream, time::Instant};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

doors! {
    server: a_list_says_what_goes_on_in_each_room, a_watcher_is_told_of_every_change,
            a_busy_room_is_told_of_now_and_then_at_its_newest;
}

async fn a_list_says_what_goes_on_in_each_room(api: &Api) {
    let (quiet, busy) = (room_of(api, &[]).await, room(api).await);
    let of = async |room| {
        let list = get(api, "/api/rooms").await.is(200);
        let found = list["rooms"].as_array().unwrap().iter().find(|one| one["id"] == json!(room)).unwrap().clone();
        assert_eq!(get(api, &format!("/api/rooms/{room}")).await.is(200), found, "one is as in the list");
        found
    };
    let summary = of(quiet).await;
    assert_eq!(
        (&summary["busy"], &summary["waiting"], &summary["last_message"]),
        (&json!(false), &json!(false), &Value::Null)
    );
    let mut audience = Audience::of(api, busy).await;
    let run = say(api, busy, "!ask Bash {}").await;
    audience.until_kind(EventType::ApprovalRequested, run).await;
    let summary = of(busy).await;
    assert_eq!((&summary["busy"], &summary["waiting"]), (&json!(true), &json!(true)));
    assert_eq!(summary["last_message"]["text"], "!ask Bash {}");
    assert_eq!(summary["last_message"]["author"], json!({"kind": "person", "name": "local"}));
    api.cancel_run(run).await.unwrap();
    ended(api, run).await;
    answered(api, busy, "!count 3").await;
    let summary = of(busy).await;
    assert_eq!((&summary["busy"], &summary["waiting"]), (&json!(false), &json!(false)));
    assert_eq!(
        (&summary["last_message"]["text"], &summary["last_message"]["author"]["kind"]),
        (&json!("1 2 3"), &json!("agent"))
    );
    let long = "é".repeat(300);
    post(api, &format!("/api/rooms/{quiet}/messages"), &json!({"text": long})).await.is(202);
    assert_eq!(of(quiet).await["last_message"]["text"], "é".repeat(200));
}

struct Watcher(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Watcher {
    async fn open(api: &Api) -> (Self, Value) {
        let url = api.base().replacen("http", "ws", 1) + "/api/ws";
        let mut watcher = Self(within("a socket", tokio_tungstenite::connect_async(url)).await.unwrap().0);
        watcher.say(r#"{"type":"watch_rooms"}"#).await;
        let list = watcher.hear().await;
        assert_eq!(list["type"], "rooms");
        (watcher, list)
    }

    async fn say(&mut self, text: &str) {
        within("to be heard", self.0.send(Message::text(text))).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        loop {
            match within("news", self.0.next()).await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let news = self.hear().await;
            if fits(&news) {
                return news;
            }
        }
    }
}

async fn a_watcher_is_told_of_every_change(api: &Api) {
    let first = room(api).await;
    let (mut watcher, list) = Watcher::open(api).await;
    assert_eq!(list["rooms"], get(api, "/api/rooms").await.is(200)["rooms"], "the same objects");
    let run = say(api, first, "!count 3").await;
    let news = watcher.until(|news| news["room"]["busy"] == true).await;
    assert_eq!((&news["type"], &news["room"]["id"]), (&json!("room"), &json!(first)));
    ended(api, run).await;
    watcher.until(|news| news["room"]["busy"] == false && news["room"]["last_message"]["text"] == "1 2 3").await;

    let second = room_of(api, &[]).await;
    watcher.until(|news| news["type"] == "room" && news["room"]["id"] == json!(second)).await;
    let rename = api.request(Method::PATCH, &format!("/api/rooms/{second}")).json(&json!({"name": "Other"}));
    answer(rename).await.is(200);
    watcher.until(|news| news["room"]["name"] == "Other").await;
    assert_eq!(delete(api, &format!("/api/rooms/{second}")).await.status, 204);
    assert_eq!(watcher.until(|news| news["type"] == "room_gone").await["id"], json!(second));

    watcher.say(r#"{"type":"unwatch_rooms"}"#).await;
    watcher.until(|news| news["type"] == "unwatched_rooms").await;
    answered(api, first, "!count 2").await;
    watcher.say(r#"{"type":"ping"}"#).await;
    assert_eq!(watcher.hear().await["type"], "pong", "nothing more of rooms");
}

async fn a_busy_room_is_told_of_now_and_then_at_its_newest(api: &Api) {
    let room = room(api).await;
    let (mut watcher, _) = Watcher::open(api).await;
    let (began, run) = (Instant::now(), say(api, room, "!count 40 50").await);
    let (mut told, mut head) = (0, 0);
    loop {
        let news = watcher.until(|news| news["type"] == "room").await;
        told += 1;
        let now = news["room"]["head"].as_u64().unwrap();
        assert!(now >= head, "never back");
        head = now;
        if news["room"]["busy"] == false {
            break;
        }
    }
    let most = began.elapsed().as_millis() / 500 + 2;
    assert!(told <= most, "{told} in {:?}", began.elapsed());
    assert!(began.elapsed() > Duration::from_millis(500), "it took a while: {:?}", began.elapsed());
    assert_eq!(head, ended(api, run).await.queued_seq.max(super::scene::head(api, room).await), "at its newest");
}
