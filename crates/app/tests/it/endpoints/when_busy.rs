//! A message during an active run: enqueued, interrupting, rejected or steering.

use super::requests::{
    RoomFollower, counted, data, head, journal, message_of, post_body, post_text, response_to, room, runs_of, text_of,
    wait_for_end,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: enqueued_run_waits, invariant_06_partial_once_interrupt_keeps_the_partial_answer,
            interrupt_also_ends_queued_runs, repeated_interrupts_leave_one_answer, rejected_message_stores_nothing,
            steer_reaches_the_active_run, steer_without_an_active_run_starts_one,
            room_policy_is_the_default, invariant_06_partial_once_waits_for_a_slow_stop;
}

async fn enqueued_run_waits(api: &TestClient) {
    let room = room(api).await;
    let first = post_text(api, room, "!count 20 10").await;
    let second =
        runs_of(&post_body(api, room, json!({"text": "!count 3", "when_busy": "enqueue"})).await.expect_status(202))[0];
    let third = post_text(api, room, "!count 4").await;
    for run in [first, second, third] {
        assert_eq!(wait_for_end(api, run).await.status, RunStatus::Completed);
    }
    let order: Vec<_> = journal(api, room)
        .await
        .iter()
        .filter(|event| event.kind == EventType::RunStarted || event.kind.ends_a_run())
        .map(|event| event.run_id.unwrap())
        .collect();
    assert_eq!(order, [first, first, second, second, third, third], "runs must execute in order");
}

async fn invariant_06_partial_once_interrupt_keeps_the_partial_answer(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let first = post_text(api, room, "!count 5000 5").await;
    follower.until("a part of the answer", |event| event.kind == EventType::ContentDelta && event.seq > 10).await;
    let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.expect_status(202);
    let second = runs_of(&accepted)[0];
    let end = follower.end_of(first).await;
    assert_eq!((end.kind, &data(&end)["reason"]), (EventType::RunInterrupted, &json!("new_message")));
    assert_eq!(follower.end_of(second).await.kind, EventType::RunCompleted);
    let started = follower.until_kind(EventType::RunStarted, second).await;
    assert!(started.seq > end.seq, "the new run must start after the end of the old one");

    let first = api.run(first).await.unwrap();
    assert_eq!(first.status, RunStatus::Interrupted);
    let kept = message_of(api, &first).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    let second = api.run(second).await.unwrap();
    let whole = message_of(api, &second).await;
    assert_eq!((whole.status, whole.text), (MessageStatus::Complete, counted(3)));
}

async fn interrupt_also_ends_queued_runs(api: &TestClient) {
    let room = room(api).await;
    let running = post_text(api, room, "!hang").await;
    let waiting = [post_text(api, room, "!count 3").await, post_text(api, room, "!count 4").await];
    let accepted = post_body(api, room, json!({"text": "!count 5", "when_busy": "interrupt"})).await.expect_status(202);
    assert_eq!(wait_for_end(api, runs_of(&accepted)[0]).await.status, RunStatus::Completed);
    for run in [running, waiting[0], waiting[1]] {
        assert_eq!(api.run(run).await.unwrap().status, RunStatus::Interrupted);
    }
    let journal = journal(api, room).await;
    let started = journal.iter().filter(|event| event.kind == EventType::RunStarted).map(|event| event.run_id.unwrap());
    assert!(!started.clone().any(|run| waiting.contains(&run)), "queued runs must never start");
}

async fn repeated_interrupts_leave_one_answer(api: &TestClient) {
    let room = room(api).await;
    let mut runs = vec![post_text(api, room, "!count 2000 5").await];
    for _ in 0..10 {
        let accepted =
            post_body(api, room, json!({"text": "!count 2000 5", "when_busy": "interrupt"})).await.expect_status(202);
        runs.extend(runs_of(&accepted));
    }
    let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.expect_status(202);
    let last = runs_of(&accepted)[0];
    assert_eq!(wait_for_end(api, last).await.status, RunStatus::Completed);
    for run in runs {
        assert_eq!(wait_for_end(api, run).await.status, RunStatus::Interrupted);
    }
}

async fn rejected_message_stores_nothing(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let hanging = post_text(api, room, "!hang").await;
    follower.first_delta(hanging).await;
    let before = head(api, room).await;
    post_body(api, room, json!({"text": "!count 3", "when_busy": "reject"})).await.expect_problem(409, "room_busy");
    assert_eq!(head(api, room).await, before);
    api.cancel_run(hanging).await.unwrap();
    let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "reject"})).await.expect_status(202);
    assert_eq!(
        wait_for_end(api, runs_of(&accepted)[0]).await.status,
        RunStatus::Completed,
        "an idle room must accept it"
    );
}

/// The next run starts only after the previous one has ended, however long that takes, and output after the stop is not
/// part of its answer.
async fn invariant_06_partial_once_waits_for_a_slow_stop(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let slow = post_text(api, room, "!hang 1500").await;
    follower.first_delta(slow).await;
    let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await.expect_status(202);
    let next = runs_of(&accepted)[0];
    assert_eq!(wait_for_end(api, next).await.status, RunStatus::Completed);

    let journal = journal(api, room).await;
    let of_run = |run| journal.iter().filter(move |event| event.run_id == Some(run));
    let end = of_run(slow).next_back().unwrap();
    assert_eq!((end.kind, &data(end)["reason"]), (EventType::RunInterrupted, &json!("new_message")));
    assert!(data(end)["receipt"]["millis"].as_u64().unwrap() >= 1400, "the stop must take long enough: {}", end.json);
    let started = of_run(next).find(|event| event.kind == EventType::RunStarted).unwrap();
    assert!(started.seq > end.seq, "the new run must start after the end of the old one");
    assert_eq!(text_of(&of_run(slow).cloned().collect::<Vec<_>>()), "Hanging");
    assert_eq!(of_run(slow).filter(|event| event.kind == EventType::StreamEnd).count(), 1);
    let kept = message_of(api, &api.run(slow).await.unwrap()).await;
    assert_eq!((kept.status, kept.text.as_str()), (MessageStatus::Partial, "Hanging"));
}

async fn steer_reaches_the_active_run(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let hanging = post_text(api, room, "!hang").await;
    follower.first_delta(hanging).await;
    let steer = json!({"text": "left", "when_busy": "steer"});
    let path = format!("/api/rooms/{room}/messages");
    let request = || api.request(Method::POST, &path).header("idempotency-key", "steer-1").json(&steer);
    let accepted = response_to(request()).await.expect_status(202);
    assert_eq!(runs_of(&accepted), [hanging], "the active run must answer it");
    assert_eq!(
        response_to(request()).await.expect_status(202)["runs"],
        accepted["runs"],
        "a repeated request must return the same runs"
    );
    let status = data(&follower.until_kind(EventType::Status, hanging).await);
    assert_eq!((&status["status"], &status["message_id"]), (&json!("steered"), &accepted["message"]["id"]));
    follower.until("the steered text", |event| text_of(std::slice::from_ref(event)).contains("[steered: left]")).await;
    let before = head(api, room).await;
    post_body(api, room, json!({"text": "left", "when_busy": "maybe"})).await.expect_problem(400, "invalid_request");
    assert_eq!(head(api, room).await, before);
    api.cancel_run(hanging).await.unwrap();
    let message = message_of(api, &api.run(hanging).await.unwrap()).await;
    assert_eq!(message.text, "Hanging [steered: left]");
}

async fn steer_without_an_active_run_starts_one(api: &TestClient) {
    let room = room(api).await;
    let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "steer"})).await.expect_status(202);
    let run = wait_for_end(api, runs_of(&accepted)[0]).await;
    assert_eq!((run.status, message_of(api, &run).await.text), (RunStatus::Completed, counted(3)));
    // A steer at the end of an answer is either taken by it or answered by a new run.
    for _ in 0..10 {
        let first = post_text(api, room, "!count 2").await;
        let accepted = post_body(api, room, json!({"text": "!count 3", "when_busy": "steer"})).await.expect_status(202);
        let runs = runs_of(&accepted);
        assert_eq!(runs.len(), 1, "{accepted}");
        let text = message_of(api, &wait_for_end(api, runs[0]).await).await.text;
        match runs[0] == first {
            true => assert!(text.contains("[steered: !count 3]"), "{text}"),
            false => assert_eq!(text, counted(3)),
        }
    }
}

async fn room_policy_is_the_default(api: &TestClient) {
    let room = room(api).await;
    let policy = json!({"policy": {"when_busy": "reject"}});
    response_to(api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(&policy)).await.expect_status(200);
    let hanging = post_text(api, room, "!hang").await;
    post_body(api, room, json!({"text": "hello"})).await.expect_problem(409, "room_busy");
    let accepted = post_body(api, room, json!({"text": "!count 2", "when_busy": "interrupt"})).await.expect_status(202);
    assert_eq!(
        wait_for_end(api, runs_of(&accepted)[0]).await.status,
        RunStatus::Completed,
        "the setting of the message must win"
    );
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Interrupted);
}
