//! A message that arrives while an agent still answers: it waits, interrupts, or is refused.

use super::scene::{
    Audience, answer, counted, data, ended, head, journal, message_of, room, runs_of, say, say_with, text_of,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use testkit::client::Api;

doors! {
    server: enqueue_waits_for_its_turn, invariant_06_partial_once_an_interrupt_keeps_what_was_said,
            an_interrupt_also_ends_what_waits, interrupts_in_a_row_leave_one_answer, reject_is_refused_and_stores_nothing,
            steer_goes_into_the_answer_under_way, steer_without_an_answer_under_way_is_answered,
            the_rooms_policy_is_the_default, invariant_06_partial_once_a_slow_stop_is_waited_for;
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

/// The next run starts when the one before has really ended, however long that takes, and what is said after the word
/// to stop is not part of its answer.
async fn invariant_06_partial_once_a_slow_stop_is_waited_for(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let slow = say(api, room, "!hang 1500").await;
    audience.first_word(slow).await;
    let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.is(202);
    let next = runs_of(&accepted)[0];
    assert_eq!(ended(api, next).await.status, RunStatus::Completed);

    let journal = journal(api, room).await;
    let of_run = |run| journal.iter().filter(move |event| event.run_id == Some(run));
    let end = of_run(slow).next_back().unwrap();
    assert_eq!((end.kind, &data(end)["reason"]), (EventType::RunInterrupted, &json!("new_message")));
    assert!(data(end)["receipt"]["millis"].as_u64().unwrap() >= 1400, "it took its time: {}", end.json);
    let started = of_run(next).find(|event| event.kind == EventType::RunStarted).unwrap();
    assert!(started.seq > end.seq, "the new run starts after the old one's end");
    assert_eq!(text_of(&of_run(slow).cloned().collect::<Vec<_>>()), "Hanging");
    assert_eq!(of_run(slow).filter(|event| event.kind == EventType::StreamEnd).count(), 1);
    let kept = message_of(api, &api.run(slow).await.unwrap()).await;
    assert_eq!((kept.status, kept.text.as_str()), (MessageStatus::Partial, "Hanging"));
}

async fn steer_goes_into_the_answer_under_way(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let hanging = say(api, room, "!hang").await;
    audience.first_word(hanging).await;
    let steer = json!({"text": "left", "when_busy": "steer"});
    let path = format!("/api/rooms/{room}/messages");
    let request = || api.request(Method::POST, &path).header("idempotency-key", "steer-1").json(&steer);
    let accepted = answer(request()).await.is(202);
    assert_eq!(runs_of(&accepted), [hanging], "the run that is under way answers it");
    assert_eq!(answer(request()).await.is(202)["runs"], accepted["runs"], "once, and answered alike");
    let status = data(&audience.until_kind(EventType::Status, hanging).await);
    assert_eq!((&status["status"], &status["message_id"]), (&json!("steered"), &accepted["message"]["id"]));
    audience.until("it", |event| text_of(std::slice::from_ref(event)).contains("[steered: left]")).await;
    let before = head(api, room).await;
    say_with(api, room, json!({"text": "left", "when_busy": "maybe"})).await.is_refused(400, "invalid_request");
    assert_eq!(head(api, room).await, before);
    api.cancel_run(hanging).await.unwrap();
    let message = message_of(api, &api.run(hanging).await.unwrap()).await;
    assert_eq!(message.text, "Hanging [steered: left]");
}

async fn steer_without_an_answer_under_way_is_answered(api: &Api) {
    let room = room(api).await;
    let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "steer"})).await.is(202);
    let run = ended(api, runs_of(&accepted)[0]).await;
    assert_eq!((run.status, message_of(api, &run).await.text), (RunStatus::Completed, counted(3)));
    // One that comes as the answer ends is taken by it or answered by a run of its own.
    for _ in 0..10 {
        let first = say(api, room, "!count 2").await;
        let accepted = say_with(api, room, json!({"text": "!count 3", "when_busy": "steer"})).await.is(202);
        let runs = runs_of(&accepted);
        assert_eq!(runs.len(), 1, "{accepted}");
        let text = message_of(api, &ended(api, runs[0]).await).await.text;
        match runs[0] == first {
            true => assert!(text.contains("[steered: !count 3]"), "{text}"),
            false => assert_eq!(text, counted(3)),
        }
    }
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
