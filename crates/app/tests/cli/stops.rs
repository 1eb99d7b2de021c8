//! Stop stops: the answer, the tool it is in, and every process of either.

use crate::{
    scene::{Audience, answered, counted, data, ended, journal, message_of, runs_of, say, say_with},
    stage::Stage,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::json;
use std::time::{Duration, Instant};

with_each_cli! {
    cancel_stops_an_answer_and_the_next_message_is_answered,
    invariant_06_partial_once_a_new_message_interrupts,
    invariant_05_no_orphans_cancel_ends_a_tools_processes,
    invariant_05_no_orphans_a_killed_server_leaves_nothing,
    invariant_05_no_orphans_what_a_tool_left_ends_with_its_turn,
}

async fn cancel_stops_an_answer_and_the_next_message_is_answered(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let mut audience = Audience::of(&api, room).await;
    let run = say(&api, room, "!count 1000 20").await;
    audience.first_word(run).await;
    let began = Instant::now();
    let cancelled = api.cancel_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert!(!cancelled.receipt.signals.is_empty(), "it says what it took: {:?}", cancelled.receipt);
    let run = api.run(run).await.unwrap();
    let message = message_of(&api, &run).await;
    assert!(message.status == MessageStatus::Partial && counted(1000).starts_with(message.text.trim()), "{message:?}");
    let next = answered(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", stage.story(&next, &journal(&api, room).await));
}

async fn invariant_06_partial_once_a_new_message_interrupts(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let mut audience = Audience::of(&api, room).await;
    let first = say(&api, room, "!count 1000 20").await;
    audience.first_word(first).await;
    let accepted = say_with(&api, room, json!({"text": "never mind", "when_busy": "interrupt"})).await.is(202);
    let second = ended(&api, runs_of(&accepted)[0]).await;
    let events = journal(&api, room).await;
    let first = api.run(first).await.unwrap();
    let story = stage.story(&first, &events);
    assert_eq!((first.status, second.status), (RunStatus::Interrupted, RunStatus::Completed), "{story}");
    let message = message_of(&api, &first).await;
    assert!(!message.text.is_empty() && counted(1000).starts_with(message.text.trim()), "{story}");
    let at =
        |kind: EventType, run| events.iter().find(|event| event.kind == kind && event.run_id == Some(run)).unwrap().seq;
    assert!(at(EventType::RunInterrupted, first.id) < at(EventType::RunStarted, second.id), "{story}");
}

async fn invariant_05_no_orphans_cancel_ends_a_tools_processes(stage: &Stage) {
    let api = stage.api();
    let agent = stage.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("tools", &[agent]).await.unwrap().id;
    let run = say(&api, room, "!tool sleep 313").await;
    stage.wait_for_process("sleep 313", true).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    stage.wait_for_process("sleep 313", false).await;
    let run = api.run(run).await.unwrap();
    let events = journal(&api, room).await;
    let story = stage.story(&run, &events);
    let last = events.iter().rfind(|event| event.run_id == Some(run.id)).unwrap();
    assert_eq!(last.kind, EventType::RunCancelled, "{story}");
    assert!(data(last)["receipt"]["millis"].is_u64(), "{story}");
}

async fn invariant_05_no_orphans_a_killed_server_leaves_nothing(stage: &Stage) {
    let api = stage.api();
    let agent = stage.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let busy = api.create_room("busy", &[agent]).await.unwrap().id;
    let talking = api.create_room("talking", &[agent]).await.unwrap().id;
    let mut audience = Audience::of(&api, talking).await;
    say(&api, busy, "!tool sleep 313").await;
    let run = say(&api, talking, "!count 1000 20").await;
    stage.wait_for_process("sleep 313", true).await;
    audience.first_word(run).await;
    stage.kill_server().await;
    stage.begin().await;
    let api = stage.api();
    let run = ended(&api, run).await;
    let story = stage.story(&run, &journal(&api, talking).await);
    assert_eq!(run.status, RunStatus::Interrupted, "{story}");
    let message = message_of(&api, &run).await;
    assert!(!message.text.is_empty() && counted(1000).starts_with(message.text.trim()), "{story}");
    let next = answered(&api, talking, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", stage.story(&next, &journal(&api, talking).await));
}

async fn invariant_05_no_orphans_what_a_tool_left_ends_with_its_turn(stage: &Stage) {
    let api = stage.api();
    let agent = stage.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("tools", &[agent]).await.unwrap().id;
    let run = answered(&api, room, "!tool nohup setsid sleep 317 > left.txt 2>&1 & sleep 0.5").await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(stage.workplace(room).join("left.txt").exists(), "it was started\n{story}");
    stage.wait_for_process("sleep 317", false).await;
    let next = answered(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", stage.story(&next, &journal(&api, room).await));
}
