//! Killed with `kill -9` in the middle of an answer, and started again at the same address.

use super::{
    binary::Binary,
    scene::{Audience, answered, counted, data, ended, journal, message_of, room, say, text_of, within},
};
use domain::{
    event::{EventBody, EventType},
    ids::{RoomId, RunId},
    message::{MessageStatus, Part},
    position::Position,
    run::RunStatus,
};
use serde_json::json;
use std::time::Duration;
use testkit::{
    client::{Api, Error, Said, SeenEvent, SseReader, WsReader},
    database::TestDatabase,
    server::{assert_none_carries, assert_sound},
};
use tokio::{sync::watch, task::JoinSet, time::sleep};

doors! {
    database: invariant_04_no_ghosts_three_readers_outlive_a_killed_server,
              invariant_12_no_blind_repeat_after_a_crash_an_open_call_is_unknown_and_what_waits_goes_on,
              invariant_05_no_orphans_a_killed_server_leaves_no_process;
}

/// Between one try to reach a server that is away and the next.
const AGAIN: Duration = Duration::from_millis(20);

fn on(database: &TestDatabase) -> Binary {
    // On PostgreSQL a run is known to be lost when its lease has run out.
    Binary::on(database).with("GREENROOM_RUNS__LEASE_SECONDS", "2")
}

/// One reader's ledger: it outlives the server.
struct Ledger {
    run: RunId,
    seen: Vec<SeenEvent>,
    count: watch::Sender<usize>,
}

impl Ledger {
    /// True when the run has ended.
    fn note(&mut self, event: SeenEvent) -> bool {
        assert_eq!(event.seq, self.seen.len() as u64 + 1, "nothing is missing and nothing came twice");
        let is_last = event.kind.ends_a_run() && event.run_id == Some(self.run);
        self.seen.push(event);
        self.count.send_replace(self.seen.len());
        is_last
    }
}

/// A server that is away may be; any other failure is a defect.
fn away(error: &Error) {
    assert!(error.is_connection(), "{error}");
}

async fn by_sse(api: Api, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
    let mut position = Position::START;
    loop {
        match SseReader::connect(&api, room, &position).await {
            Ok(mut reader) => loop {
                match reader.next_event().await {
                    Ok(Some(event)) => {
                        position = reader.position().clone();
                        if ledger.note(event) {
                            return ledger.seen;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => break away(&error),
                }
            },
            Err(error) => away(&error),
        }
        sleep(AGAIN).await;
    }
}

async fn by_websocket(api: Api, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
    let mut position = Position::START;
    loop {
        match WsReader::connect(&api).await {
            Ok(mut reader) => {
                let mut next = reader.subscribe(room, &position).await;
                while next.is_ok() {
                    next = match reader.next().await {
                        Ok(Some((_, Said::Event(event)))) => {
                            position = reader.position(room).unwrap().clone();
                            if ledger.note(event) {
                                return ledger.seen;
                            }
                            Ok(())
                        }
                        Ok(Some((_, Said::Heartbeat(_)))) => Ok(()),
                        Ok(Some((_, Said::Reset(place)))) => panic!("{place:?}"),
                        Ok(None) => break,
                        Err(error) => Err(error),
                    };
                }
                if let Err(error) = next {
                    away(&error);
                }
            }
            Err(error) => away(&error),
        }
        sleep(AGAIN).await;
    }
}

async fn by_polling(api: Api, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
    let mut position = Position::START;
    loop {
        match api.events(room, &position, 50).await {
            Ok(page) => {
                for event in page.events {
                    position = Position { epoch: Some(page.epoch.clone()), seq: event.seq };
                    if ledger.note(event) {
                        return ledger.seen;
                    }
                }
            }
            Err(error) => away(&error),
        }
        sleep(AGAIN).await;
    }
}

async fn invariant_04_no_ghosts_three_readers_outlive_a_killed_server(database: TestDatabase) {
    let mut binary = on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let run = say(&api, room, "!count 500 10").await;
    let (mut readers, mut counts) = (JoinSet::new(), Vec::new());
    let mut ledger = || {
        let (count, counted) = watch::channel(0);
        counts.push(counted);
        Ledger { run, seen: Vec::new(), count }
    };
    readers.spawn(by_sse(api.clone(), room, ledger()));
    readers.spawn(by_websocket(api.clone(), room, ledger()));
    readers.spawn(by_polling(api.clone(), room, ledger()));
    for mut count in counts {
        within("a part of the answer", count.wait_for(|count| *count > 20)).await.unwrap();
    }
    server.kill().await.unwrap();
    assert_none_carries(&binary.mark).await;

    let (server, api) = binary.serve().await;
    let seen = within("all three readers", readers.join_all()).await;
    let journal = journal(&api, room).await;
    assert_sound(&journal);
    assert!(seen.iter().all(|seen| *seen == journal), "all three end with the same events");

    let run = api.run(run).await.unwrap();
    assert_eq!(run.status, RunStatus::Interrupted);
    let end = journal.last().unwrap();
    assert_eq!((end.kind, &data(end)["reason"]), (EventType::RunInterrupted, &json!("crash")));
    // Stored once, and a prefix of what was said (invariant 6).
    let kept = message_of(&api, &run).await;
    assert_eq!((kept.status, &kept.text), (MessageStatus::Partial, &text_of(&journal)));
    assert!(counted(500).starts_with(&kept.text) && kept.text.len() > 10, "{}", kept.text);
    assert_eq!(answered(&api, room, "!count 3").await.status, RunStatus::Completed, "the room goes on");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn invariant_12_no_blind_repeat_after_a_crash_an_open_call_is_unknown_and_what_waits_goes_on(
    database: TestDatabase,
) {
    let mut binary = on(&database);
    let (server, api) = binary.serve().await;
    let (calling, asking) = (room(&api).await, room(&api).await);
    let call = r#"!script [{"text":"so "},{"tool_use":{"id":"t","name":"pay","input":{}}},{"hang":true}]"#;
    let called = say(&api, calling, call).await;
    let waiting = say(&api, calling, "!count 3").await;
    let asked = say(&api, asking, "!ask pay {}").await;
    let (mut hears, mut watches) = (Audience::of(&api, calling).await, Audience::of(&api, asking).await);
    hears.until_kind(EventType::ToolUse, called).await;
    watches.until_kind(EventType::ApprovalRequested, asked).await;
    server.kill().await.unwrap();

    let (server, api) = binary.serve().await;
    for run in [called, asked] {
        let run = ended(&api, run).await;
        assert_eq!(run.status, RunStatus::Interrupted);
        let events = journal(&api, run.room_id).await;
        let of_run = events.iter().filter(|event| event.run_id == Some(run.id));
        assert_eq!(of_run.filter(|event| event.kind == EventType::RunStarted).count(), 1, "it is not run again");
        let message = message_of(&api, &run).await;
        let call = message.parts.iter().find_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
        let outcome = call.unwrap().result.as_ref().unwrap();
        assert!(outcome.is_error && outcome.content.as_str().unwrap().contains("outcome unknown"), "{outcome:?}");
    }
    let resolved = journal(&api, asking).await.into_iter().find_map(|event| match event.body().unwrap() {
        EventBody::ApprovalResolved(resolved) => Some(json!(resolved.decision)),
        _ => None,
    });
    assert_eq!(resolved, Some(json!("expired")));
    let waited = ended(&api, waiting).await;
    assert_eq!(waited.status, RunStatus::Completed, "what had not begun is still done");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn invariant_05_no_orphans_a_killed_server_leaves_no_process(database: TestDatabase) {
    let mut binary = on(&database);
    for by_kill in [true, false] {
        let (server, api) = binary.serve().await;
        let room = room(&api).await;
        let run = say(&api, room, "!hang").await;
        Audience::of(&api, room).await.first_word(run).await;
        match by_kill {
            true => server.kill().await.unwrap(),
            false => assert!(server.terminate(Duration::from_secs(30)).await.unwrap().success()),
        }
        assert_none_carries(&binary.mark).await;
    }
}
