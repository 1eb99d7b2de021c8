//! SIGKILL during an answer, and a restart at the same address.

use super::{
    binary::Binary,
    requests::{
        RoomFollower, counted, data, journal, message_of, post_and_wait, post_text, room, text_of, wait_for_end, within,
    },
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
    client::{SeenEvent, SeenItem, SseReader, TestClient, TestClientError, WsReader},
    database::TestDatabase,
    server::{assert_journal_valid, assert_no_process_with_env},
};
use tokio::{sync::watch, task::JoinSet, time::sleep};

on_both_databases! {
    database: invariant_04_no_ghosts_three_readers_survive_a_killed_server,
              invariant_12_no_blind_repeat_open_calls_are_unknown_and_queued_runs_continue,
              invariant_05_no_orphans_a_killed_server_leaves_no_process;
}

/// The delay between reconnects.
const RECONNECT_DELAY: Duration = Duration::from_millis(20);

fn on(database: &TestDatabase) -> Binary {
    // On PostgreSQL a run counts as lost when its lease has expired.
    Binary::on(database).with("GREENROOM_RUNS__LEASE_SECONDS", "2")
}

/// The events of one reader across server restarts.
struct Ledger {
    run: RunId,
    seen: Vec<SeenEvent>,
    count: watch::Sender<usize>,
}

impl Ledger {
    /// Records an event and returns whether the run has ended.
    fn note(&mut self, event: SeenEvent) -> bool {
        assert_eq!(event.seq, self.seen.len() as u64 + 1, "no event may be missing or duplicated");
        let is_last = event.kind.ends_a_run() && event.run_id == Some(self.run);
        self.seen.push(event);
        self.count.send_replace(self.seen.len());
        is_last
    }
}

/// Connection errors are expected; any other error is a defect.
fn assert_connection_error(error: &TestClientError) {
    assert!(error.is_connection(), "{error}");
}

async fn by_sse(api: TestClient, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
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
                    Err(error) => break assert_connection_error(&error),
                }
            },
            Err(error) => assert_connection_error(&error),
        }
        sleep(RECONNECT_DELAY).await;
    }
}

async fn by_websocket(api: TestClient, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
    let mut position = Position::START;
    loop {
        match WsReader::connect(&api).await {
            Ok(mut reader) => {
                let mut next = reader.subscribe(room, &position).await;
                while next.is_ok() {
                    next = match reader.next().await {
                        Ok(Some((_, SeenItem::Event(event)))) => {
                            position = reader.position(room).unwrap().clone();
                            if ledger.note(event) {
                                return ledger.seen;
                            }
                            Ok(())
                        }
                        Ok(Some((_, SeenItem::Heartbeat(_)))) => Ok(()),
                        Ok(Some((_, SeenItem::Reset(place)))) => panic!("{place:?}"),
                        Ok(None) => break,
                        Err(error) => Err(error),
                    };
                }
                if let Err(error) = next {
                    assert_connection_error(&error);
                }
            }
            Err(error) => assert_connection_error(&error),
        }
        sleep(RECONNECT_DELAY).await;
    }
}

async fn by_polling(api: TestClient, room: RoomId, mut ledger: Ledger) -> Vec<SeenEvent> {
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
            Err(error) => assert_connection_error(&error),
        }
        sleep(RECONNECT_DELAY).await;
    }
}

async fn invariant_04_no_ghosts_three_readers_survive_a_killed_server(database: TestDatabase) {
    let mut binary = on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let run = post_text(&api, room, "!count 500 10").await;
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
    assert_no_process_with_env(&binary.mark).await;

    let (server, api) = binary.serve().await;
    let seen = within("all three readers", readers.join_all()).await;
    let journal = journal(&api, room).await;
    assert_journal_valid(&journal);
    assert!(seen.iter().all(|seen| *seen == journal), "all three readers must end with the same events");

    let run = api.run(run).await.unwrap();
    assert_eq!(run.status, RunStatus::Interrupted);
    let end = journal.last().unwrap();
    assert_eq!((end.kind, &data(end)["reason"]), (EventType::RunInterrupted, &json!("crash")));
    // Stored once, and a prefix of the answer (invariant 6).
    let kept = message_of(&api, &run).await;
    assert_eq!((kept.status, &kept.text), (MessageStatus::Partial, &text_of(&journal)));
    assert!(counted(500).starts_with(&kept.text) && kept.text.len() > 10, "{}", kept.text);
    assert_eq!(post_and_wait(&api, room, "!count 3").await.status, RunStatus::Completed, "the room must continue");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn invariant_12_no_blind_repeat_open_calls_are_unknown_and_queued_runs_continue(database: TestDatabase) {
    let mut binary = on(&database);
    let (server, api) = binary.serve().await;
    let (calling, asking) = (room(&api).await, room(&api).await);
    let call = r#"!script [{"text":"so "},{"tool_use":{"id":"t","name":"pay","input":{}}},{"hang":true}]"#;
    let called = post_text(&api, calling, call).await;
    let waiting = post_text(&api, calling, "!count 3").await;
    let asked = post_text(&api, asking, "!ask pay {}").await;
    let (mut hears, mut watches) = (RoomFollower::start(&api, calling).await, RoomFollower::start(&api, asking).await);
    hears.until_kind(EventType::ToolUse, called).await;
    watches.until_kind(EventType::ApprovalRequested, asked).await;
    server.kill().await.unwrap();

    let (server, api) = binary.serve().await;
    for run in [called, asked] {
        let run = wait_for_end(&api, run).await;
        assert_eq!(run.status, RunStatus::Interrupted);
        let events = journal(&api, run.room_id).await;
        let of_run = events.iter().filter(|event| event.run_id == Some(run.id));
        assert_eq!(
            of_run.filter(|event| event.kind == EventType::RunStarted).count(),
            1,
            "the run must not be repeated"
        );
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
    let waited = wait_for_end(&api, waiting).await;
    assert_eq!(waited.status, RunStatus::Completed, "a queued run must still be executed");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn invariant_05_no_orphans_a_killed_server_leaves_no_process(database: TestDatabase) {
    let mut binary = on(&database);
    for by_kill in [true, false] {
        let (server, api) = binary.serve().await;
        let room = room(&api).await;
        let run = post_text(&api, room, "!hang").await;
        RoomFollower::start(&api, room).await.first_delta(run).await;
        match by_kill {
            true => server.kill().await.unwrap(),
            false => assert!(server.terminate(Duration::from_secs(30)).await.unwrap().success()),
        }
        assert_no_process_with_env(&binary.mark).await;
    }
}
