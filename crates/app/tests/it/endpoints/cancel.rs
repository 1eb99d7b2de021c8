//! Cancel returns after the work has stopped, with a receipt.

use super::requests::{
    RoomFollower, agent, counted, data, head, journal, message_of, post, post_body, post_text, room, room_of, runs_of,
    wait_for_end,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::json;
use testkit::client::TestClient;
use uuid::Uuid;

on_both_databases! {
    server: running_run_keeps_its_partial_answer, hanging_run_stops_at_once, flooding_run_stops_at_once,
            queued_run_never_starts, run_waiting_for_approval, ended_run_returns_its_status,
            unknown_run, cancel_all_runs_of_a_room, concurrent_cancels_give_one_end;
}

async fn running_run_keeps_its_partial_answer(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "!count 5000 5").await;
    follower.until("a part of the answer", |event| event.seq > 10).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let after = head(api, room).await;
    let last = journal(api, room).await.pop().unwrap();
    assert_eq!((last.kind, last.seq), (EventType::RunCancelled, after), "the end must be stored before the response");
    assert_eq!(data(&last)["receipt"], json!(cancelled.receipt));
    let run = api.run(run).await.unwrap();
    assert_eq!((run.status, &run.receipt), (RunStatus::Cancelled, &Some(cancelled.receipt)));
    let kept = message_of(api, &run).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    assert_eq!(head(api, room).await, after, "no event may follow the end");
}

async fn hanging_run_stops_at_once(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "!hang").await;
    follower.first_delta(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert!(cancelled.receipt.millis < 5000, "{cancelled:?}");
    let run = api.run(run).await.unwrap();
    assert_eq!(message_of(api, &run).await.text, "Hanging");
}

async fn flooding_run_stops_at_once(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "!flood 1073741824").await;
    follower.first_delta(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert!(
        matches!(cancelled.status, RunStatus::Cancelled | RunStatus::Failed),
        "cancelled, or failed by its limit first: {cancelled:?}"
    );
    assert!(journal(api, room).await.last().unwrap().kind.ends_a_run());
}

async fn queued_run_never_starts(api: &TestClient) {
    let room = room(api).await;
    let hanging = post_text(api, room, "!hang").await;
    RoomFollower::start(api, room).await.first_delta(hanging).await;
    let queued = post_text(api, room, "!count 3").await;
    assert_eq!(api.run(queued).await.unwrap().status, RunStatus::Queued);
    assert_eq!(api.cancel_run(queued).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Running, "the other run must continue");
    api.cancel_run(hanging).await.unwrap();
    let kinds: Vec<_> = journal(api, room)
        .await
        .into_iter()
        .filter(|event| event.run_id == Some(queued))
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, [EventType::RunQueued, EventType::RunCancelled]);
}

async fn run_waiting_for_approval(api: &TestClient) {
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, r#"!ask Bash {"cmd":"ls"}"#).await;
    follower.until_kind(EventType::ApprovalRequested, run).await;
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    assert_eq!(api.cancel_run(run).await.unwrap().status, RunStatus::Cancelled);
    let resolved = follower.until_kind(EventType::ApprovalResolved, run).await;
    assert_eq!(data(&resolved)["decision"], "expired", "an open approval must expire");
    let result = follower.until_kind(EventType::ToolResult, run).await;
    assert_eq!(data(&result)["is_error"], true);
    assert!(data(&result)["content"].as_str().unwrap().contains("outcome unknown"));
}

async fn ended_run_returns_its_status(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!count 3").await;
    wait_for_end(api, run).await;
    let before = head(api, room).await;
    for _ in 0..2 {
        assert_eq!(api.cancel_run(run).await.unwrap().status, RunStatus::Completed);
    }
    assert_eq!(head(api, room).await, before);
}

async fn unknown_run(api: &TestClient) {
    for id in [Uuid::now_v7().to_string(), "nonsense".to_owned()] {
        post(api, &format!("/api/runs/{id}/cancel"), &json!({})).await.expect_problem(404, "not_found");
        post(api, &format!("/api/rooms/{id}/cancel"), &json!({})).await.expect_problem(404, "not_found");
    }
}

async fn cancel_all_runs_of_a_room(api: &TestClient) {
    let agents = [agent(api, "a", json!({})).await, agent(api, "b", json!({})).await];
    let room = room_of(api, &agents).await;
    let (first, second) = (json!({"text": "!hang"}), json!({"text": "!count 3"}));
    let mut runs = runs_of(&post_body(api, room, first).await.expect_status(202));
    runs.extend(runs_of(&post_body(api, room, second).await.expect_status(202)));
    let mut follower = RoomFollower::start(api, room).await;
    follower.first_delta(runs[0]).await;
    let stopped = post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.expect_status(200);
    let expected: Vec<_> = runs.iter().map(|run| (json!(run), json!("cancelled"))).collect();
    let stopped: Vec<_> =
        stopped["runs"].as_array().unwrap().iter().map(|run| (run["id"].clone(), run["status"].clone())).collect();
    assert_eq!(stopped, expected);
    let again = post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!(again["runs"], json!([]), "there must be nothing left to stop");
}

async fn concurrent_cancels_give_one_end(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!hang").await;
    let cancels = (0..20).map(|_| api.cancel_run(run));
    for cancelled in futures_util::future::join_all(cancels).await {
        assert_eq!(cancelled.unwrap().status, RunStatus::Cancelled);
    }
    let ends = journal(api, room).await.iter().filter(|event| event.kind.ends_a_run()).count();
    assert_eq!(ends, 1);
}
