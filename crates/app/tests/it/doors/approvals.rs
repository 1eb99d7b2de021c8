//! A tool call that waits for a person: yes, no, another input, nobody, too late.

use super::scene::{
    Answer, Audience, agent, answered, data, ended, journal, message_of, post, room, room_of, room_with, say,
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    message::Part,
    run::RunStatus,
};
use serde_json::{Value, json};
use testkit::client::Api;
use uuid::Uuid;

doors! {
    server: allowed, denied, allowed_with_another_input, expired_is_denied, an_unknown_one, one_after_the_end,
            invariant_01_durable_before_visible_an_accepted_decision_is_stored, of_many_answers_one_counts,
            the_tool_policy_allows_and_denies_without_asking, a_question_is_for_a_person_whatever_is_allowed;
}

const ASK: &str = r#"!ask Bash {"cmd":"ls"}"#;

/// A run that waits, and the approval it waits for.
async fn waiting(api: &Api, room: RoomId) -> (RunId, String, Audience) {
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, ASK).await;
    let requested = data(&audience.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!((&requested["name"], &requested["input"]), (&json!("Bash"), &json!({"cmd": "ls"})));
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    (run, requested["approval_id"].as_str().unwrap().to_owned(), audience)
}

async fn decide(api: &Api, run: RunId, approval: &str, body: Value) -> Answer {
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await
}

async fn outcome(api: &Api, run: RunId, audience: &mut Audience) -> (Value, Value, String) {
    let resolved = data(&audience.until_kind(EventType::ApprovalResolved, run).await);
    let result = data(&audience.until_kind(EventType::ToolResult, run).await);
    let run = ended(api, run).await;
    assert_eq!(run.status, RunStatus::Completed);
    let message = message_of(api, &run).await;
    let Some(Part::Tool(call)) = message.parts.first() else { panic!("{message:?}") };
    assert_eq!(call.result.as_ref().unwrap().content, result["content"]);
    (resolved, result, message.text)
}

async fn allowed(api: &Api) {
    let (run, approval, mut audience) = waiting(api, room(api).await).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow"})).await.status, 204);
    let (resolved, result, text) = outcome(api, run, &mut audience).await;
    assert_eq!((&resolved["approval_id"], &resolved["decision"]), (&json!(approval), &json!("allow")));
    assert_eq!((&result["content"], &result["is_error"]), (&json!({"cmd": "ls"}), &json!(false)));
    assert_eq!(text, "allowed");
}

async fn denied(api: &Api) {
    let (run, approval, mut audience) = waiting(api, room(api).await).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "deny"})).await.status, 204);
    let (resolved, result, text) = outcome(api, run, &mut audience).await;
    assert_eq!((&resolved["decision"], &result["is_error"]), (&json!("deny"), &json!(true)));
    assert_eq!(text, "denied");
}

async fn allowed_with_another_input(api: &Api) {
    let (run, approval, mut audience) = waiting(api, room(api).await).await;
    let answer = decide(api, run, &approval, json!({"decision": "allow", "input": {"cmd": "ls -l"}})).await;
    assert_eq!(answer.status, 204);
    let (resolved, result, _) = outcome(api, run, &mut audience).await;
    assert_eq!(resolved["input"], json!({"cmd": "ls -l"}));
    assert_eq!(result["content"], json!({"cmd": "ls -l"}), "the tool ran with what the person made of it");
}

async fn expired_is_denied(api: &Api) {
    let room = room_with(api, json!({"limits": {"approval_seconds": 1}})).await;
    let (run, approval, mut audience) = waiting(api, room).await;
    let (resolved, result, text) = outcome(api, run, &mut audience).await;
    assert_eq!((&resolved["decision"], &result["is_error"]), (&json!("expired"), &json!(true)));
    assert_eq!(text, "expired");
    decide(api, run, &approval, json!({"decision": "allow"})).await.is_refused(409, "run_ended");
}

async fn an_unknown_one(api: &Api) {
    let (run, approval, _audience) = waiting(api, room(api).await).await;
    let unknown = Uuid::now_v7().to_string();
    for (run, approval) in [(run.to_string(), unknown.as_str()), (run.to_string(), "x"), (unknown.clone(), &approval)] {
        let path = format!("/api/runs/{run}/approvals/{approval}");
        post(api, &path, &json!({"decision": "allow"})).await.is_refused(404, "not_found");
    }
    for bad in [json!({}), json!({"decision": "expired"}), json!({"decision": "allow", "why": 1}), json!([])] {
        decide(api, run, &approval, bad).await.is_refused(400, "invalid_request");
    }
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "it waits on");
    api.cancel_run(run).await.unwrap();
}

async fn one_after_the_end(api: &Api) {
    let (run, approval, _audience) = waiting(api, room(api).await).await;
    api.cancel_run(run).await.unwrap();
    decide(api, run, &approval, json!({"decision": "allow"})).await.is_refused(409, "run_ended");
}

/// A 2xx means that it is on disk: the next read has it.
async fn invariant_01_durable_before_visible_an_accepted_decision_is_stored(api: &Api) {
    for _ in 0..5 {
        let room = room(api).await;
        let (run, approval, _audience) = waiting(api, room).await;
        assert_eq!(decide(api, run, &approval, json!({"decision": "allow"})).await.status, 204);
        let stored = journal(api, room).await;
        assert!(stored.iter().any(|event| event.kind == EventType::ApprovalResolved), "{stored:?}");
        ended(api, run).await;
    }
}

async fn of_many_answers_one_counts(api: &Api) {
    let room = room(api).await;
    let (run, approval, mut audience) = waiting(api, room).await;
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
    assert_eq!(accepted, 10, "those who said the same are told that it counts, the others that it does not");
    audience.end_of(run).await;
    let resolved = audience.seen.iter().filter(|event| event.kind == EventType::ApprovalResolved).count();
    assert_eq!(resolved, 1);
}

async fn the_tool_policy_allows_and_denies_without_asking(api: &Api) {
    let policy = json!({"tools": {"allow": ["Ba*"], "deny": ["Bash"], "ask": []}});
    for (tool, said) in [("Bar", "allowed"), ("Bash", "denied")] {
        let agent = agent(api, tool, policy.clone()).await;
        let room = room_of(api, &[agent]).await;
        let run = answered(api, room, &format!("!ask {tool} {{}}")).await;
        assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, said));
        let asked = journal(api, room).await.iter().any(|event| event.kind == EventType::ApprovalRequested);
        assert!(!asked, "nobody was asked");
    }
}

async fn a_question_is_for_a_person_whatever_is_allowed(api: &Api) {
    let asks = r#"!script [{"tool_use":{"id":"t","name":"ask_user","input":{"question":"Which?"}}},
        {"approval":{"id":"t","name":"ask_user","input":{"question":"Which?"},"is_question":true}}]"#;
    let curious = agent(api, "curious", json!({"tools": {"allow": ["*"]}})).await;
    let room = room_of(api, &[curious]).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, asks).await;
    let requested = data(&audience.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!(requested["is_question"], true);
    let approval = requested["approval_id"].as_str().unwrap();
    let answer = |remember: bool| json!({"decision": "allow", "input": {"answer": "this one"}, "remember": remember});
    let problem = decide(api, run, approval, answer(true)).await.is_refused(422, "unprocessable");
    assert_eq!(problem["pointer"], "/remember");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "it waits on");
    assert_eq!(decide(api, run, approval, answer(false)).await.status, 204);
    let result = data(&audience.until_kind(EventType::ToolResult, run).await);
    assert_eq!(result["content"], json!({"answer": "this one"}));
    ended(api, run).await;

    let silent = agent(api, "silent", json!({"tools": {"deny": ["ask_*"]}})).await;
    let room = room_of(api, &[silent]).await;
    let run = answered(api, room, asks).await;
    assert_eq!(run.status, RunStatus::Completed);
    let asked = journal(api, room).await.iter().any(|event| event.kind == EventType::ApprovalRequested);
    assert!(!asked, "what is denied is denied");
}
