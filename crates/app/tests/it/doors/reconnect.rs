//! Readers that come and go lose nothing and see nothing twice.

use super::scene::{ended, journal, room, say, text_of, within};
use domain::position::Position;
use testkit::client::{Api, Said, SeenEvent, SseReader, WsReader};

doors! {
    server: invariant_09_prefix_and_convergence_twenty_reconnects_by_sse,
            invariant_09_prefix_and_convergence_twenty_reconnects_by_websocket,
            a_hundred_readers_of_one_room_see_the_same;
}

const RECONNECTS: usize = 20;
/// Events between one and the next.
const APART: usize = 8;

/// Enough for all of them to happen while it streams. Text and thinking in turns do not become one event.
fn script() -> String {
    let pair = r#"{"text":"a","after_ms":10},{"thinking":"b","after_ms":10}"#;
    format!("!script [{}]", vec![pair; RECONNECTS * APART / 2 + 20].join(","))
}

async fn invariant_09_prefix_and_convergence_twenty_reconnects_by_sse(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, &script()).await;
    let (mut seen, mut position) = (Vec::<SeenEvent>::new(), Position::START);
    within("the whole answer", async {
        for connection in 0..=RECONNECTS {
            let mut reader = match connection % 2 {
                0 => SseReader::connect(api, room, &position).await.unwrap(),
                // The position in the URL instead of the header, and without its epoch.
                _ => {
                    let path = format!("/api/rooms/{room}/events?after={}", position.seq);
                    SseReader::open(api, &path, &Position::START).await.unwrap()
                }
            };
            let enough = seen.len() + APART;
            while seen.len() < enough || connection == RECONNECTS {
                let event = reader.next_event().await.unwrap().unwrap();
                let is_last = event.kind.ends_a_run();
                seen.push(event);
                if is_last {
                    assert_eq!(connection, RECONNECTS, "the stream is longer than the reconnects");
                    break;
                }
            }
            position = reader.position().clone();
        }
    })
    .await;
    assert_eq!(seen, journal(api, room).await);
    assert_eq!(text_of(&seen).len(), RECONNECTS * APART / 2 + 20);
    ended(api, run).await;
}

async fn invariant_09_prefix_and_convergence_twenty_reconnects_by_websocket(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, &script()).await;
    let (mut seen, mut position) = (Vec::<SeenEvent>::new(), Position::START);
    within("the whole answer", async {
        for connection in 0..=RECONNECTS {
            let mut reader = WsReader::connect(api).await.unwrap();
            reader.subscribe(room, &position).await.unwrap();
            let enough = seen.len() + APART;
            while seen.len() < enough || connection == RECONNECTS {
                let (_, Said::Event(event)) = reader.next().await.unwrap().unwrap() else { continue };
                let is_last = event.kind.ends_a_run();
                seen.push(event);
                if is_last {
                    assert_eq!(connection, RECONNECTS, "the stream is longer than the reconnects");
                    break;
                }
            }
            position = reader.position(room).unwrap().clone();
        }
    })
    .await;
    assert_eq!(seen, journal(api, room).await);
    ended(api, run).await;
}

async fn a_hundred_readers_of_one_room_see_the_same(api: &Api) {
    let room = room(api).await;
    let mut readers = Vec::new();
    for _ in 0..100 {
        readers.push(SseReader::connect(api, room, &Position::START).await.unwrap());
    }
    let run = say(api, room, "!count 100 3").await;
    ended(api, run).await;
    let journal = journal(api, room).await;
    for mut reader in readers {
        let seen = within("a reader", async {
            let mut seen = Vec::new();
            while seen.len() < journal.len() {
                seen.push(reader.next_event().await.unwrap().unwrap());
            }
            seen
        })
        .await;
        assert_eq!(seen, journal);
    }
}
