//! Reconnecting readers lose and duplicate nothing.

use super::requests::{journal, post_text, room, text_of, wait_for_end, within};
use domain::position::Position;
use testkit::client::{SeenEvent, SeenItem, SseReader, TestClient, WsReader};

on_both_databases! {
    server: invariant_09_prefix_and_convergence_twenty_reconnects_over_sse,
            invariant_09_prefix_and_convergence_twenty_reconnects_over_websocket,
            hundred_readers_of_one_room_get_the_same_events;
}

const RECONNECTS: usize = 20;
/// Events between two reconnects.
const APART: usize = 8;

/// Long enough for all reconnects during the stream. Alternating text and thinking are not joined.
fn script() -> String {
    let pair = r#"{"text":"a","after_ms":10},{"thinking":"b","after_ms":10}"#;
    format!("!script [{}]", vec![pair; RECONNECTS * APART / 2 + 20].join(","))
}

async fn invariant_09_prefix_and_convergence_twenty_reconnects_over_sse(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, &script()).await;
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
                    assert_eq!(connection, RECONNECTS, "the stream must outlast the reconnects");
                    break;
                }
            }
            position = reader.position().clone();
        }
    })
    .await;
    assert_eq!(seen, journal(api, room).await);
    assert_eq!(text_of(&seen).len(), RECONNECTS * APART / 2 + 20);
    wait_for_end(api, run).await;
}

async fn invariant_09_prefix_and_convergence_twenty_reconnects_over_websocket(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, &script()).await;
    let (mut seen, mut position) = (Vec::<SeenEvent>::new(), Position::START);
    within("the whole answer", async {
        for connection in 0..=RECONNECTS {
            let mut reader = WsReader::connect(api).await.unwrap();
            reader.subscribe(room, &position).await.unwrap();
            let enough = seen.len() + APART;
            while seen.len() < enough || connection == RECONNECTS {
                let (_, SeenItem::Event(event)) = reader.next().await.unwrap().unwrap() else { continue };
                let is_last = event.kind.ends_a_run();
                seen.push(event);
                if is_last {
                    assert_eq!(connection, RECONNECTS, "the stream must outlast the reconnects");
                    break;
                }
            }
            position = reader.position(room).unwrap().clone();
        }
    })
    .await;
    assert_eq!(seen, journal(api, room).await);
    wait_for_end(api, run).await;
}

async fn hundred_readers_of_one_room_get_the_same_events(api: &TestClient) {
    let room = room(api).await;
    let mut readers = Vec::new();
    for _ in 0..100 {
        readers.push(SseReader::connect(api, room, &Position::START).await.unwrap());
    }
    let run = post_text(api, room, "!count 100 3").await;
    wait_for_end(api, run).await;
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
