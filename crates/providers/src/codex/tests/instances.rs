//! Tests of which instance a turn gets.

use super::fake::{CodexHarness, CodexTurnHandle, FakeCodexServer, RunningCodexTurn, harness, harness_with};
use crate::{AgentWorkspace, Provider as _, TurnCommand, TurnEnd, TurnEvent, codex::pool::BUSY_TURNS};
use serde_json::json;
use std::time::Duration;

async fn begin(
    harness: &CodexHarness,
    workspace: &AgentWorkspace,
    server: &mut FakeCodexServer,
) -> (CodexTurnHandle, RunningCodexTurn) {
    let turn_handle = harness.begin_turn(workspace, "hi", None);
    server.start_thread().await;
    let running = server.start_turn().await;
    (turn_handle, running)
}

async fn finish(server: &mut FakeCodexServer, turn_handle: CodexTurnHandle, running: &RunningCodexTurn) {
    server.end(running, "completed").await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn concurrent_threads_on_one_instance_get_only_their_own_events() {
    let mut harness = harness(1);
    let workspace = harness.workspace("a");
    let first = harness.begin_turn(&workspace, "one", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let one = server.start_turn().await;
    let (second, two) = begin(&harness, &workspace, &mut server).await;
    assert_ne!(one.thread, two.thread);
    for n in 0..50 {
        server.send_text(&one, "i", &format!("one {n} ")).await;
        server.send_text(&two, "i", &format!("two {n} ")).await;
    }
    server.end(&two, "completed").await;
    server.end(&one, "completed").await;
    for (turn_handle, word) in [(first, "one"), (second, "two")] {
        let (events, outcome) = turn_handle.end().await;
        assert_eq!(outcome.end, TurnEnd::Completed);
        let text: String = events
            .iter()
            .filter_map(|e| if let TurnEvent::Text { delta, .. } = e { Some(delta.as_str()) } else { None })
            .collect();
        assert_eq!(text, (0..50).map(|n| format!("{word} {n} ")).collect::<String>());
    }
    assert_eq!(harness.count.running(), 1);
}

#[tokio::test]
async fn second_instance_starts_only_when_the_first_is_busy_and_threads_stay_on_theirs() {
    let mut harness = harness(2);
    let workspace = harness.workspace("a");
    let mut turns = Vec::new();
    let first = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    turns.push((first, server.start_turn().await));
    while turns.len() < BUSY_TURNS {
        turns.push(begin(&harness, &workspace, &mut server).await);
    }
    assert_eq!(harness.count.running(), 1);
    let mut overflow = harness.begin_turn(&workspace, "hi", None);
    let mut other = harness.next_server().await;
    let start = other.expect("thread/start").await;
    other.answer(&start, json!({"thread": {"id": "elsewhere"}, "model": "m"})).await;
    let running = other.start_turn().await;
    let session = overflow.session().await;
    finish(&mut other, overflow, &running).await;
    for (turn_handle, running) in turns {
        finish(&mut server, turn_handle, &running).await;
    }
    // The first instance is idle now, but this thread is open on the other.
    let again = harness.begin_turn(&workspace, "more", Some(&session));
    let running = other.start_turn().await;
    assert_eq!(running.thread, "elsewhere");
    finish(&mut other, again, &running).await;
}

#[tokio::test]
async fn interrupted_resume_is_retried_on_the_same_instance() {
    let mut harness = harness(2);
    let workspace = harness.workspace("a");
    let first = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let mut turns = vec![(first, server.start_turn().await)];
    while turns.len() < BUSY_TURNS {
        turns.push(begin(&harness, &workspace, &mut server).await);
    }
    let impatient = harness.begin_turn(&workspace, "hi", Some("t"));
    let mut other = harness.next_server().await;
    other.expect("thread/resume").await;
    impatient.command(TurnCommand::Interrupt).await;
    assert_eq!(impatient.end().await.1.end, TurnEnd::Stopped);
    for (turn_handle, running) in turns {
        finish(&mut server, turn_handle, &running).await;
    }
    let again = harness.begin_turn(&workspace, "hi", Some("t"));
    let resume = other.expect("thread/resume").await;
    other.answer(&resume, json!({"thread": {"id": "t"}, "model": "m"})).await;
    let running = other.start_turn().await;
    finish(&mut other, again, &running).await;
}

#[tokio::test]
async fn turn_above_the_limit_waits_until_another_instance_is_idle() {
    let mut harness = harness(1);
    let (one, two) = (harness.workspace("a"), harness.workspace("b"));
    let first = harness.begin_turn(&one, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    let mut second = harness.begin_turn(&two, "hi", None);
    let waiting = second.next().await;
    assert!(matches!(&waiting, TurnEvent::Waiting { status, .. } if status == "waiting_for_slot"), "{waiting:?}");
    finish(&mut server, first, &running).await;
    assert_eq!(server.far_end.next().await, None, "the idle instance is stopped");
    let mut other = harness.next_server().await;
    assert_eq!(other.home, two.home);
    assert_eq!(harness.count.most(), 1, "never two at once");
    other.start_thread().await;
    let running = other.start_turn().await;
    finish(&mut other, second, &running).await;
}

#[tokio::test]
async fn interrupted_waiting_turn_leaves_the_queue() {
    let mut harness = harness(1);
    let busy = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    let mut impatient = harness.begin_turn(&harness.workspace("b"), "hi", None);
    assert!(matches!(impatient.next().await, TurnEvent::Waiting { .. }));
    let mut patient = harness.begin_turn(&harness.workspace("c"), "hi", None);
    assert!(matches!(patient.next().await, TurnEvent::Waiting { .. }));
    impatient.command(TurnCommand::Interrupt).await;
    assert_eq!(impatient.end().await.1.end, TurnEnd::Stopped);
    finish(&mut server, busy, &running).await;
    let mut other = harness.next_server().await;
    assert!(other.home.ends_with("c"));
    other.start_thread().await;
    let running = other.start_turn().await;
    finish(&mut other, patient, &running).await;
}

#[tokio::test(start_paused = true)]
async fn idle_instance_is_stopped_after_a_while() {
    let mut harness = harness_with(1, Duration::from_secs(600));
    let workspace = harness.workspace("a");
    let turn_handle = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    finish(&mut server, turn_handle, &running).await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!(harness.count.running(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server.far_end.next().await, None);
    assert_eq!(harness.count.running(), 0);
}

#[tokio::test]
async fn prepared_instance_is_used_by_the_next_turn() {
    let mut harness = harness(1);
    let workspace = harness.workspace("a");
    harness.codex.prepare(workspace.clone());
    let mut server = harness.next_server().await;
    harness.codex.prepare(workspace.clone());
    let (turn_handle, running) = begin(&harness, &workspace, &mut server).await;
    finish(&mut server, turn_handle, &running).await;
    assert_eq!(harness.count.running(), 1);
}

#[tokio::test]
async fn close_interrupts_turns_and_stops_all_instances() {
    let mut harness = harness(2);
    let workspace = harness.workspace("a");
    let turn_handle = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    server.start_turn().await;
    harness.codex.close().await;
    assert_eq!(harness.count.running(), 0);
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Stopped);
    while server.far_end.next().await.is_some() {}
}

#[tokio::test]
async fn queue_is_first_come_first_served() {
    let mut harness = harness(1);
    let pool = harness.codex.pool.clone();
    let tickets = [pool.ticket(), pool.ticket(), pool.ticket()];
    let [a, b, c] = ["a", "b", "c"].map(|name| crate::codex::home::CodexHome::of(&harness.workspace(name)));
    let busy = pool.try_lease(&tickets[0], &a, None).unwrap();
    harness.next_server().await;
    busy.instance().await.unwrap();
    assert!(pool.try_lease(&tickets[1], &b, None).is_none());
    drop(busy);
    assert!(pool.try_lease(&tickets[2], &c, None).is_none(), "another ticket is waiting");
    assert!(pool.try_lease(&tickets[1], &b, None).is_some());
}
