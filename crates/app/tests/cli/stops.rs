//! Stopping ends the answer, the running tool, and all their processes.

use crate::{
    cli_fixture::CliFixture,
    requests::{
        RoomFollower, counted, data, journal, message_of, post_and_wait, post_body, post_text, runs_of, wait_for_end,
    },
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::json;
use std::time::{Duration, Instant};

with_each_cli! {
    cancel_stops_an_answer_and_the_room_continues,
    invariant_06_partial_once_a_new_message_interrupts,
    invariant_05_no_orphans_cancel_ends_a_tools_processes,
    invariant_05_no_orphans_a_killed_server_leaves_nothing,
    invariant_05_no_orphans_leftovers_of_a_tool_end_with_the_turn,
}

async fn cancel_stops_an_answer_and_the_room_continues(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let mut follower = RoomFollower::start(&api, room).await;
    let run = post_text(&api, room, "!count 1000 20").await;
    follower.first_delta(run).await;
    let began = Instant::now();
    let cancelled = api.cancel_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert!(!cancelled.receipt.signals.is_empty(), "the receipt must list signals: {:?}", cancelled.receipt);
    let run = api.run(run).await.unwrap();
    let message = message_of(&api, &run).await;
    assert!(message.status == MessageStatus::Partial && counted(1000).starts_with(message.text.trim()), "{message:?}");
    let next = post_and_wait(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", fixture.details(&next, &journal(&api, room).await));
}

async fn invariant_06_partial_once_a_new_message_interrupts(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let mut follower = RoomFollower::start(&api, room).await;
    let first = post_text(&api, room, "!count 1000 20").await;
    follower.first_delta(first).await;
    let accepted =
        post_body(&api, room, json!({"text": "never mind", "when_busy": "interrupt"})).await.expect_status(202);
    let second = wait_for_end(&api, runs_of(&accepted)[0]).await;
    let events = journal(&api, room).await;
    let first = api.run(first).await.unwrap();
    let details = fixture.details(&first, &events);
    assert_eq!((first.status, second.status), (RunStatus::Interrupted, RunStatus::Completed), "{details}");
    let message = message_of(&api, &first).await;
    assert!(!message.text.is_empty() && counted(1000).starts_with(message.text.trim()), "{details}");
    let at =
        |kind: EventType, run| events.iter().find(|event| event.kind == kind && event.run_id == Some(run)).unwrap().seq;
    assert!(at(EventType::RunInterrupted, first.id) < at(EventType::RunStarted, second.id), "{details}");
}

async fn invariant_05_no_orphans_cancel_ends_a_tools_processes(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("tools", &[agent]).await.unwrap().id;
    // Two at least: `sleep`, and the shell that waits for it.
    let run = post_text(&api, room, "!tool sleep 313; true").await;
    fixture.wait_for_process("sleep 313", true).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    fixture.wait_for_process("sleep 313", false).await;
    assert!(cancelled.receipt.processes >= 2, "every process must be counted: {:?}", cancelled.receipt);
    let run = api.run(run).await.unwrap();
    let events = journal(&api, room).await;
    let details = fixture.details(&run, &events);
    let last = events.iter().rfind(|event| event.run_id == Some(run.id)).unwrap();
    assert_eq!(last.kind, EventType::RunCancelled, "{details}");
    assert!(data(last)["receipt"]["millis"].is_u64(), "{details}");
}

async fn invariant_05_no_orphans_a_killed_server_leaves_nothing(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let busy = api.create_room("busy", &[agent]).await.unwrap().id;
    let talking = api.create_room("talking", &[agent]).await.unwrap().id;
    let mut follower = RoomFollower::start(&api, talking).await;
    post_text(&api, busy, "!tool sleep 313").await;
    let run = post_text(&api, talking, "!count 1000 20").await;
    fixture.wait_for_process("sleep 313", true).await;
    follower.first_delta(run).await;
    fixture.kill_server().await;
    fixture.begin().await;
    let api = fixture.api();
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, talking).await);
    assert_eq!(run.status, RunStatus::Interrupted, "{details}");
    let message = message_of(&api, &run).await;
    assert!(!message.text.is_empty() && counted(1000).starts_with(message.text.trim()), "{details}");
    let next = post_and_wait(&api, talking, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", fixture.details(&next, &journal(&api, talking).await));
}

async fn invariant_05_no_orphans_leftovers_of_a_tool_end_with_the_turn(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("tools", &[agent]).await.unwrap().id;
    let run = post_and_wait(&api, room, "!tool nohup setsid sleep 317 > left.txt 2>&1 & sleep 0.5").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(fixture.workspace(room).join("left.txt").exists(), "the process must have been started\n{details}");
    fixture.wait_for_process("sleep 317", false).await;
    let next = post_and_wait(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", fixture.details(&next, &journal(&api, room).await));
}
