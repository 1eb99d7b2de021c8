//! Cancelling returns when the work has really stopped, and says what that took.

use super::scene::{
    Audience, agent, counted, data, ended, head, journal, message_of, post, room, room_of, runs_of, say, say_with,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::json;
use testkit::client::Api;
use uuid::Uuid;

doors! {
    server: a_running_one_keeps_its_partial_answer, a_hanging_one_stops_at_once, a_flooding_one_stops_at_once,
            a_queued_one_never_begins, one_that_waits_for_approval, one_that_has_ended_says_how_it_ended,
            an_unknown_one, everything_in_a_room, many_cancels_at_once_give_one_end;
}

async fn a_running_one_keeps_its_partial_answer(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "!count 5000 5").await;
    audience.until("a part of the answer", |event| event.seq > 10).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let after = head(api, room).await;
    let last = journal(api, room).await.pop().unwrap();
    assert_eq!((last.kind, last.seq), (EventType::RunCancelled, after), "the end is stored when the answer comes");
    assert_eq!(data(&last)["receipt"], json!(cancelled.receipt));
    let run = api.run(run).await.unwrap();
    assert_eq!((run.status, &run.receipt), (RunStatus::Cancelled, &Some(cancelled.receipt)));
    let kept = message_of(api, &run).await;
    assert_eq!(kept.status, MessageStatus::Partial);
    assert!(!kept.text.is_empty() && counted(5000).starts_with(&kept.text), "{}", kept.text);
    assert_eq!(head(api, room).await, after, "nothing follows the end");
}

async fn a_hanging_one_stops_at_once(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "!hang").await;
    audience.first_word(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert!(cancelled.receipt.millis < 5000, "{cancelled:?}");
    let run = api.run(run).await.unwrap();
    assert_eq!(message_of(api, &run).await.text, "Hanging");
}

async fn a_flooding_one_stops_at_once(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "!flood 1073741824").await;
    audience.first_word(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert!(
        matches!(cancelled.status, RunStatus::Cancelled | RunStatus::Failed),
        "or its limit was first: {cancelled:?}"
    );
    assert!(journal(api, room).await.last().unwrap().kind.ends_a_run());
}

async fn a_queued_one_never_begins(api: &Api) {
    let room = room(api).await;
    let hanging = say(api, room, "!hang").await;
    Audience::of(api, room).await.first_word(hanging).await;
    let queued = say(api, room, "!count 3").await;
    assert_eq!(api.run(queued).await.unwrap().status, RunStatus::Queued);
    assert_eq!(api.cancel_run(queued).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Running, "the other one goes on");
    api.cancel_run(hanging).await.unwrap();
    let kinds: Vec<_> = journal(api, room)
        .await
        .into_iter()
        .filter(|event| event.run_id == Some(queued))
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, [EventType::RunQueued, EventType::RunCancelled]);
}

async fn one_that_waits_for_approval(api: &Api) {
    let room = room(api).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, r#"!ask Bash {"cmd":"ls"}"#).await;
    audience.until_kind(EventType::ApprovalRequested, run).await;
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    assert_eq!(api.cancel_run(run).await.unwrap().status, RunStatus::Cancelled);
    let resolved = audience.until_kind(EventType::ApprovalResolved, run).await;
    assert_eq!(data(&resolved)["decision"], "expired", "an open question counts as no");
    let result = audience.until_kind(EventType::ToolResult, run).await;
    assert_eq!(data(&result)["is_error"], true);
    assert!(data(&result)["content"].as_str().unwrap().contains("outcome unknown"));
}

async fn one_that_has_ended_says_how_it_ended(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, "!count 3").await;
    ended(api, run).await;
    let before = head(api, room).await;
    for _ in 0..2 {
        assert_eq!(api.cancel_run(run).await.unwrap().status, RunStatus::Completed);
    }
    assert_eq!(head(api, room).await, before);
}

async fn an_unknown_one(api: &Api) {
    for id in [Uuid::now_v7().to_string(), "nonsense".to_owned()] {
        post(api, &format!("/api/runs/{id}/cancel"), &json!({})).await.is_refused(404, "not_found");
        post(api, &format!("/api/rooms/{id}/cancel"), &json!({})).await.is_refused(404, "not_found");
    }
}

async fn everything_in_a_room(api: &Api) {
    let agents = [agent(api, "a", json!({})).await, agent(api, "b", json!({})).await];
    let room = room_of(api, &agents).await;
    let (first, second) = (json!({"text": "!hang"}), json!({"text": "!count 3"}));
    let mut runs = runs_of(&say_with(api, room, first).await.is(202));
    runs.extend(runs_of(&say_with(api, room, second).await.is(202)));
    let mut audience = Audience::of(api, room).await;
    audience.first_word(runs[0]).await;
    let stopped = post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.is(200);
    let expected: Vec<_> = runs.iter().map(|run| (json!(run), json!("cancelled"))).collect();
    let stopped: Vec<_> =
        stopped["runs"].as_array().unwrap().iter().map(|run| (run["id"].clone(), run["status"].clone())).collect();
    assert_eq!(stopped, expected);
    let again = post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.is(200);
    assert_eq!(again["runs"], json!([]), "nothing is left to stop");
}

async fn many_cancels_at_once_give_one_end(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, "!hang").await;
    let cancels = (0..20).map(|_| api.cancel_run(run));
    for cancelled in futures_util::future::join_all(cancels).await {
        assert_eq!(cancelled.unwrap().status, RunStatus::Cancelled);
    }
    let ends = journal(api, room).await.iter().filter(|event| event.kind.ends_a_run()).count();
    assert_eq!(ends, 1);
}
