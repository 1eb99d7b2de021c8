//! Content is data: any text reads back byte for byte, from memory and from the store (invariant 16).

use crate::scene::{append, at, follow, journal, json, me, read_until, room, said, says};
use domain::event::{EventType, NewEvent};
use testkit::database::TestDatabase;

contract! {
    one thread:
        any_text_reads_back_unchanged,
        data_is_stored_byte_for_byte,
        every_event_type_can_be_stored;
}

async fn any_text_reads_back_unchanged(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let texts = [
        String::new(),
        "NUL \u{0} inside \u{0}".into(),
        "🎭👩‍👩‍👧‍👦 e\u{301} \u{FEFF}\u{FFFF}\u{10FFFF}".into(),
        "carriage\r\nreturn\rand\nline\u{2028}separators\u{2029}\u{85}".into(),
        "'; DROP TABLE events; -- $1 ? \\ \" %s {}".into(),
        (0..=0x1F_u8).map(char::from).collect(),
        "\u{202E}backwards".into(),
        "x".repeat(1024 * 1024),
        "\u{0}".repeat(100_000),
    ];
    for text in &texts {
        store.commit(append(room, vec![says(text.clone())])).await.unwrap();
    }
    let events = journal(&store, room).await;
    assert!(events.iter().map(said).eq(texts));
    let mut follower = follow(&store, room, 0).await;
    for (frame, event) in read_until(&mut follower, events.len() as u64).await.iter().zip(&events) {
        assert_eq!(frame.json(), json(event));
        let lines = frame.sse().iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines, 4, "three fields and the blank line, for any text");
        assert!(frame.sse().iter().all(|&byte| byte >= 0x20 || byte == b'\n'));
    }
}

async fn data_is_stored_byte_for_byte(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    // Unusual but valid JSON; a store that parsed it would change it.
    let odd = [
        r#"{"status":"a","message":"\u0000\u0007\ud83c\udfad"}"#,
        r#"{"message":"\ud800 lone","status":"\udc00"}"#,
        r#"{ "status" : "spaces" ,  "message":"" , "status2":1.0e+2,"n":12345678901234567890123}"#,
        r#"{"status":"twice","status":"again","message":"\/"}"#,
    ];
    for data in odd {
        let event = NewEvent { data: data.into(), ..says("") };
        store.commit(append(room, vec![event])).await.unwrap();
    }
    let page = store.page(&me(), room, &at(0), 10, false).await.unwrap();
    assert!(page.events.iter().map(|event| event.data.as_str()).eq(odd));
}

async fn every_event_type_can_be_stored(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let events = EventType::ALL.iter().map(|&kind| NewEvent { kind, ..says("") }).collect();
    store.commit(append(room, events)).await.unwrap();
    assert!(journal(&store, room).await.iter().map(|event| event.kind).eq(EventType::ALL.iter().copied()));
}
