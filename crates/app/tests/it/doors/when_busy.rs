//! A message that arrives while an agent still answers: it waits, interrupts, or is refused.

use super::scene::{Audience, answer, counted, data, ended, head, journal, message_of, room, runs_of, say, say_with};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use testkit::client::Api;

doors! {
    server: enqueue_waits_for_its_turn, invariant_06_partial_once_an_interrupt_keeps_what_was_said,
            an_interrupt_also_ends_what_waits, interrupts_in_a_row_leave_one_answer, reject_is_refused_and_stores_nothing,
            steer_is_refused_where_nobody_can_be_steered, the_rooms_policy_is_the_default;
}

async fn enqueue_waits_for_its_turn(api: &Api) {
    let room = room(api).await;
    let first = say(api, room, "!count 20 10").await;
    let second = runs_of(&say_with(api, room, json!({"text": "!count 3", "when_busy": "enqueue"})).await.is(202))[0];
    let third = say(api, room, "!count 4").await;
    for run in [first, second, third] {
        assert_eq!(ended(api, run).await.status, RunStatus::Completed);
    }
    let order: Vec<_> = journal(api, room)
        .await
        .iter()
        .filter(|event| event.kind == EventType::RunStarted || event.kind.ends_a_run())
        .map(|event| event.run_id.unwrap())
        .collect();
    assert_eq!(order, [first, first, second, second, third, third], "in the order they were said");
}

async fn invariant_06_partial_once_an_interrupt_keeps_what_was_said(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let first = say(api, room, "!count 5000 5").await;
    audience.until("a part of the answer", |event| event.kind == EventType::ContentDelta && event.seq > 10).await;
    let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.is(202);
    let second = runs_of(&accepted)[0];
    let end = audience.end_of(first).await;
    assert_eq!((end.kind, &data(&end)["reason"]), (EventType::RunInterrupted, &json!("new_message")));
    assert_eq!(audience.end_of(second).await.kind, EventType::RunCompleted);
    let started = audience.until_kind(EventType::RunStarted, second).await;
    assert!(started.seq > end.seq, "the new run starts after the old one's end");

    let first = api.run(first).await.unwrap();
    assert_eq!(first.status, RunStatus::Interrupted);
    let kept = message_of(api, &first).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    let second = api.run(second).await.unwrap();
    let whole = message_of(api, &second).await;
    assert_eq!((whole.status, whole.text), (MessageStatus::Complete, counted(3)));
}

async fn an_interrupt_also_ends_what_waits(api: &Api) {
    let room = room(api).await;
    let running = say(api, room, "!hang").await;
    let waiting = [say(api, room, "!count 3").await, say(api, room, "!count 4").await];
    let accepted = say_with(api, room, json!({"text": "!count 5", "when_busy": "interrupt"})).await.is(202);
    assert_eq!(ended(api, runs_of(&accepted)[0]).await.status, RunStatus::Completed);
    for run in [running, waiting[0], waiting[1]] {
        assert_eq!(api.run(run).await.unwrap().status, RunStatus::Interrupted);
    }
    let journal = journal(api, room).await;
    let started = journal.iter().filter(|event| event.kind == EventType::RunStarted).map(|event| event.run_id.unwrap());
    assert!(!started.clone().any(|run| waiting.contains(&run)), "what waited was never begun");
}

async fn interrupts_in_a_row_leave_one_answer(api: &Api) {
    let room = room(api).await;
    let mut runs = vec![say(api, room, "!count 2000 5").await];
    for _ in 0..10 {
        let accepted = say_with(api, room, json!({"text": "!count 2000 5", "when_busy": "interrupt"})).await.is(202);
        runs.extend(runs_of(&accepted));
    }
    let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.is(202);
    let last = runs_of(&accepted)[0];
    assert_eq!(ended(api, last).await.status, RunStatus::Completed);
    for run in runs {
        assert_eq!(ended(api, run).await.status, RunStatus::Interrupted);
    }
}

async fn reject_is_refused_and_stores_nothing(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let hanging = say(api, room, "!hang").await;
    audience.first_word(hanging).await;
    let before = head(api, room).await;
    say_with(api, room, json!({"text": "!count 3", "when_busy": "reject"})).await.is_refused(409, "room_busy");
    assert_eq!(head(api, room).await, before);
    api.cancel_run(hanging).await.unwrap();
    let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "reject"})).await.is(202);
    assert_eq!(ended(api, runs_of(&accepted)[0]).await.status, RunStatus::Completed, "an idle room takes it");
}

async fn steer_is_refused_where_nobody_can_be_steered(api: &Api) {
    let room = room(api).await;
    let hanging = say(api, room, "!hang").await;
    let mut audience = Audience::of(api, room).await;
    audience.first_word(hanging).await;
    let before = head(api, room).await;
    say_with(api, room, json!({"text": "left", "when_busy": "steer"})).await.is_refused(400, "unsupported");
    say_with(api, room, json!({"text": "left", "when_busy": "maybe"})).await.is_refused(400, "invalid_request");
    assert_eq!(head(api, room).await, before);
    api.cancel_run(hanging).await.unwrap();
}

async fn the_rooms_policy_is_the_default(api: &Api) {
    let room = room(api).await;
    let policy = json!({"policy": {"when_busy": "reject"}});
    answer(api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(&policy)).await.is(200);
    let hanging = say(api, room, "!hang").await;
    say_with(api, room, json!({"text": "hello"})).await.is_refused(409, "room_busy");
    let accepted = say_with(api, room, json!({"text": "!count 2", "when_busy": "interrupt"})).await.is(202);
    assert_eq!(ended(api, runs_of(&accepted)[0]).await.status, RunStatus::Completed, "the message's own word wins");
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Interrupted);
}
