//! Tool calls that wait for approval: allowed, denied, changed input, expired, too late.

use super::requests::{
    ApiResponse, RoomFollower, agent, data, get, journal, message_of, post, post_and_wait, post_text, room, room_of,
    room_with, wait_for_end,
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    message::Part,
    run::RunStatus,
};
use serde_json::{Value, json};
use testkit::client::TestClient;
use uuid::Uuid;

on_both_databases! {
    server: allowed, denied, allowed_with_changed_input, expired_approval_is_denied, unknown_approval, approval_after_the_end,
            invariant_01_durable_before_visible_an_accepted_decision_is_stored, concurrent_decisions_have_one_winner,
            tool_policy_decides_without_asking, questions_need_a_person_despite_the_policy,
            l1_another_input_for_an_answered_approval_is_a_conflict, h2_a_decision_names_its_author,
            approvals_of_all_rooms_are_listed;
}

const ASK: &str = r#"!ask Bash {"cmd":"ls"}"#;

/// Starts a run that waits, and returns it with its approval.
async fn waiting(api: &TestClient, room: RoomId) -> (RunId, String, RoomFollower) {
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, ASK).await;
    let requested = data(&follower.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!((&requested["name"], &requested["input"]), (&json!("Bash"), &json!({"cmd": "ls"})));
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    (run, requested["approval_id"].as_str().unwrap().to_owned(), follower)
}

async fn decide(api: &TestClient, run: RunId, approval: &str, body: Value) -> ApiResponse {
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await
}

async fn outcome(api: &TestClient, run: RunId, follower: &mut RoomFollower) -> (Value, Value, String) {
    let resolved = data(&follower.until_kind(EventType::ApprovalResolved, run).await);
    let result = data(&follower.until_kind(EventType::ToolResult, run).await);
    let run = wait_for_end(api, run).await;
    assert_eq!(run.status, RunStatus::Completed);
    let message = message_of(api, &run).await;
    let Some(Part::Tool(call)) = message.parts.first() else { panic!("{message:?}") };
    assert_eq!(call.result.as_ref().unwrap().content, result["content"]);
    (resolved, result, message.text)
}

async fn allowed(api: &TestClient) {
    let (run, approval, mut follower) = waiting(api, room(api).await).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow"})).await.status, 204);
    let (resolved, result, text) = outcome(api, run, &mut follower).await;
    assert_eq!((&resolved["approval_id"], &resolved["decision"]), (&json!(approval), &json!("allow")));
    assert_eq!((&result["content"], &result["is_error"]), (&json!({"cmd": "ls"}), &json!(false)));
    assert_eq!(text, "allowed");
}

async fn denied(api: &TestClient) {
    let (run, approval, mut follower) = waiting(api, room(api).await).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "deny"})).await.status, 204);
    let (resolved, result, text) = outcome(api, run, &mut follower).await;
    assert_eq!((&resolved["decision"], &result["is_error"]), (&json!("deny"), &json!(true)));
    assert_eq!(text, "denied");
}

async fn allowed_with_changed_input(api: &TestClient) {
    let (run, approval, mut follower) = waiting(api, room(api).await).await;
    let answer = decide(api, run, &approval, json!({"decision": "allow", "input": {"cmd": "ls -l"}})).await;
    assert_eq!(answer.status, 204);
    let (resolved, result, _) = outcome(api, run, &mut follower).await;
    assert_eq!(resolved["input"], json!({"cmd": "ls -l"}));
    assert_eq!(result["content"], json!({"cmd": "ls -l"}), "the tool must run with the changed input");
}

async fn expired_approval_is_denied(api: &TestClient) {
    let room = room_with(api, json!({"limits": {"approval_seconds": 1}})).await;
    let (run, approval, mut follower) = waiting(api, room).await;
    let (resolved, result, text) = outcome(api, run, &mut follower).await;
    assert_eq!((&resolved["decision"], &result["is_error"]), (&json!("expired"), &json!(true)));
    assert_eq!(text, "expired");
    decide(api, run, &approval, json!({"decision": "allow"})).await.expect_problem(409, "run_ended");
}

async fn unknown_approval(api: &TestClient) {
    let (run, approval, _audience) = waiting(api, room(api).await).await;
    let unknown = Uuid::now_v7().to_string();
    for (run, approval) in [(run.to_string(), unknown.as_str()), (run.to_string(), "x"), (unknown.clone(), &approval)] {
        let path = format!("/api/runs/{run}/approvals/{approval}");
        post(api, &path, &json!({"decision": "allow"})).await.expect_problem(404, "not_found");
    }
    for bad in [json!({}), json!({"decision": "expired"}), json!({"decision": "allow", "why": 1}), json!([])] {
        decide(api, run, &approval, bad).await.expect_problem(400, "invalid_request");
    }
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "the run must keep waiting");
    api.cancel_run(run).await.unwrap();
}

async fn approval_after_the_end(api: &TestClient) {
    let (run, approval, _audience) = waiting(api, room(api).await).await;
    api.cancel_run(run).await.unwrap();
    decide(api, run, &approval, json!({"decision": "allow"})).await.expect_problem(409, "run_ended");
}

/// A 2xx means that the decision is stored: the next read contains it.
async fn invariant_01_durable_before_visible_an_accepted_decision_is_stored(api: &TestClient) {
    for _ in 0..5 {
        let room = room(api).await;
        let (run, approval, _audience) = waiting(api, room).await;
        assert_eq!(decide(api, run, &approval, json!({"decision": "allow"})).await.status, 204);
        let stored = journal(api, room).await;
        assert!(stored.iter().any(|event| event.kind == EventType::ApprovalResolved), "{stored:?}");
        wait_for_end(api, run).await;
    }
}

/// Two people once allowed the same call with different inputs, and both were told that theirs ran.
async fn l1_another_input_for_an_answered_approval_is_a_conflict(api: &TestClient) {
    let (run, approval, _audience) = waiting(api, room(api).await).await;
    let first = json!({"decision": "allow", "input": {"cmd": "rm -rf build"}});
    assert_eq!(decide(api, run, &approval, first.clone()).await.status, 204);
    for other in [
        json!({"decision": "allow", "input": {"cmd": "ls build"}}),
        json!({"decision": "allow"}),
        json!({"decision": "allow", "input": {"cmd": "rm -rf build"}, "remember": "exact"}),
    ] {
        let refused = decide(api, run, &approval, other.clone()).await;
        assert_eq!(refused.status, 409, "{other}: {refused:?}");
    }
    assert_eq!(decide(api, run, &approval, first).await.status, 204, "repeating the same answer must succeed");
    wait_for_end(api, run).await;
}

/// The journal once read as if somebody had said yes, and did not say who.
async fn h2_a_decision_names_its_author(api: &TestClient) {
    let (run, approval, mut follower) = waiting(api, room(api).await).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow"})).await.status, 204);
    let (resolved, ..) = outcome(api, run, &mut follower).await;
    let author = &resolved["author"];
    assert_eq!(author["user_id"], resolved["user_id"], "{resolved}");
    assert!(author["name"].is_string() && author["credential"].is_string(), "{resolved}");
    assert_eq!(author["address"], "127.0.0.1", "{resolved}");
    let room = room_with(api, json!({"limits": {"approval_seconds": 1}})).await;
    let (run, _, mut follower) = waiting(api, room).await;
    let (resolved, ..) = outcome(api, run, &mut follower).await;
    assert_eq!(resolved.get("author"), None, "nobody decided");
}

async fn concurrent_decisions_have_one_winner(api: &TestClient) {
    let room = room(api).await;
    let (run, approval, mut follower) = waiting(api, room).await;
    let answers = (0..20).map(|n| {
        let decision = if n % 2 == 0 { "allow" } else { "deny" };
        decide(api, run, &approval, json!({"decision": decision}))
    });
    let mut accepted = 0;
    for answer in futures_util::future::join_all(answers).await {
        match answer.status {
            204 => accepted += 1,
            status => assert_eq!(status, 409, "{answer:?}"),
        }
    }
    assert_eq!(accepted, 10, "equal decisions succeed, others conflict");
    follower.end_of(run).await;
    let resolved = follower.seen.iter().filter(|event| event.kind == EventType::ApprovalResolved).count();
    assert_eq!(resolved, 1);
}

async fn tool_policy_decides_without_asking(api: &TestClient) {
    let policy = json!({"tools": {"allow": ["Ba*"], "deny": ["Bash"], "ask": []}});
    for (tool, said) in [("Bar", "allowed"), ("Bash", "denied")] {
        let agent = agent(api, tool, policy.clone()).await;
        let room = room_of(api, &[agent]).await;
        let run = post_and_wait(api, room, &format!("!ask {tool} {{}}")).await;
        assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, said));
        let asked = journal(api, room).await.iter().any(|event| event.kind == EventType::ApprovalRequested);
        assert!(!asked, "no approval must be requested");
    }
}

async fn questions_need_a_person_despite_the_policy(api: &TestClient) {
    let asks = r#"!script [{"tool_use":{"id":"t","name":"ask_user","input":{"question":"Which?"}}},
        {"approval":{"id":"t","name":"ask_user","input":{"question":"Which?"},"is_question":true}}]"#;
    let curious = agent(api, "curious", json!({"tools": {"allow": ["*"]}})).await;
    let room = room_of(api, &[curious]).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, asks).await;
    let requested = data(&follower.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!(requested["is_question"], true);
    let approval = requested["approval_id"].as_str().unwrap();
    let answer = |remember: bool| json!({"decision": "allow", "input": {"answer": "this one"}, "remember": remember});
    let problem = decide(api, run, approval, answer(true)).await.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/remember");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "the run must keep waiting");
    assert_eq!(decide(api, run, approval, answer(false)).await.status, 204);
    let result = data(&follower.until_kind(EventType::ToolResult, run).await);
    assert_eq!(result["content"], json!({"answer": "this one"}));
    wait_for_end(api, run).await;

    let silent = agent(api, "silent", json!({"tools": {"deny": ["ask_*"]}})).await;
    let room = room_of(api, &[silent]).await;
    let run = post_and_wait(api, room, asks).await;
    assert_eq!(run.status, RunStatus::Completed);
    let asked = journal(api, room).await.iter().any(|event| event.kind == EventType::ApprovalRequested);
    assert!(!asked, "a denied tool must not ask");
}

async fn approvals_of_all_rooms_are_listed(api: &TestClient) {
    let listed = async |query: &str| get(api, &format!("/api/approvals{query}")).await.expect_status(200);
    assert_eq!(listed("").await, json!({"approvals": [], "next": null}));
    let mut waiting_runs = Vec::new();
    for _ in 0..3 {
        let room = room(api).await;
        let (run, approval, _) = waiting(api, room).await;
        waiting_runs.push((room, run, approval));
    }
    let found = listed("?status=pending").await;
    assert_eq!((found["approvals"].as_array().unwrap().len(), &found["next"]), (3, &Value::Null));
    for ((room, run, approval), one) in waiting_runs.iter().zip(found["approvals"].as_array().unwrap()) {
        assert_eq!((&one["id"], &one["run_id"]), (&json!(approval), &json!(run)), "oldest first: {found}");
        assert_eq!((&one["room_id"], &one["tool"]), (&json!(room), &json!("Bash")));
        assert_eq!((&one["input"], &one["is_question"]), (&json!({"cmd": "ls"}), &json!(false)));
        assert!(one["expires_at"].as_str() > one["created_at"].as_str() && one["agent_id"].is_string(), "{one}");
    }
    let page = listed("?limit=2").await;
    assert_eq!(page["approvals"].as_array().unwrap(), &found["approvals"].as_array().unwrap()[..2]);
    let rest = listed(&format!("?limit=2&after={}", page["next"].as_str().unwrap())).await;
    assert_eq!(rest, json!({"approvals": [found["approvals"][2]], "next": null}));
    let (_, run, approval) = &waiting_runs[1];
    assert_eq!(decide(api, *run, approval, json!({"decision": "allow"})).await.status, 204);
    wait_for_end(api, *run).await;
    api.cancel_run(waiting_runs[0].1).await.unwrap();
    let left = listed("").await;
    assert_eq!(left["approvals"], json!([found["approvals"][2]]), "an answered and a cancelled one are gone");
    for bad in ["?status=answered", "?limit=0", "?after=x", "?before=1"] {
        get(api, &format!("/api/approvals{bad}")).await.expect_problem(400, "invalid_request");
    }
    api.cancel_run(waiting_runs[2].1).await.unwrap();
}
