//! Tests of approval requests.

use super::fake::{CodexHarness, CodexTurnHandle, FakeCodexServer, RunningCodexTurn, harness};
use crate::{TurnCommand, TurnEnd, TurnEvent};
use domain::{event::Decision, ids::ApprovalId};
use serde_json::{Value, json};

async fn begun() -> (CodexHarness, FakeCodexServer, RunningCodexTurn, CodexTurnHandle) {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    (harness, server, running, turn_handle)
}

async fn asked(turn_handle: &mut CodexTurnHandle) -> (ApprovalId, String, Value, Option<String>, bool) {
    turn_handle
        .until(|event| match event {
            TurnEvent::Approval { id, tool_use_id, name, input, is_question } => {
                Some((*id, name.clone(), input.clone(), tool_use_id.clone(), *is_question))
            }
            _ => None,
        })
        .await
}

async fn decide(turn_handle: &CodexTurnHandle, approval: ApprovalId, decision: Decision, input: Option<Value>) {
    turn_handle.command(TurnCommand::ResolveApproval { approval, decision, input }).await;
}

#[tokio::test]
async fn approvals_are_answered_independently_while_text_is_streamed() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    for (id, item) in [(0, "one"), (1, "two")] {
        let command = json!({"type": "commandExecution", "id": item, "command": item, "cwd": "/srv"});
        server.item(&running, "item/started", command).await;
        let params = json!({"itemId": item, "command": item, "cwd": "/srv", "availableDecisions": ["accept", "acceptForSession"]});
        server.send_request(id, "item/commandExecution/requestApproval", &running, params).await;
    }
    server.send_text(&running, "i", "meanwhile").await;
    let first = asked(&mut turn_handle).await;
    assert_eq!((first.1.as_str(), first.3.as_deref(), first.4), ("shell", Some("one"), false));
    assert_eq!(first.2, json!({"command": "one", "cwd": "/srv"}));
    let second = asked(&mut turn_handle).await;
    assert_eq!(turn_handle.text().await, "meanwhile");
    decide(&turn_handle, second.0, Decision::Deny, None).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "decline"}));
    decide(&turn_handle, first.0, Decision::Allow, Some(json!({"command": "one", "cwd": "/srv"}))).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "accept"}), "the same input is not a change");
    for item in ["one", "two"] {
        server.item(&running, "item/completed", json!({"type": "commandExecution", "id": item, "exitCode": 0})).await;
    }
    server.end(&running, "completed").await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn changed_input_is_declined_and_reported() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    let params = json!({"itemId": "c", "command": "rm -r x", "cwd": "/srv"});
    server.send_request(0, "item/commandExecution/requestApproval", &running, params).await;
    let (id, ..) = asked(&mut turn_handle).await;
    decide(&turn_handle, id, Decision::Allow, Some(json!({"command": "rm x", "cwd": "/srv"}))).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
    let status =
        turn_handle.until(|e| if let TurnEvent::Status { status, .. } = e { Some(status.clone()) } else { None }).await;
    assert_eq!(status, "change_not_possible");
}

#[tokio::test]
async fn patch_approval_has_its_diff() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    let changes = json!([{"path": "/srv/a", "kind": {"type": "add"}, "diff": "hello\n"}]);
    server.item(&running, "item/started", json!({"type": "fileChange", "id": "f", "changes": changes})).await;
    server.send_request(0, "item/fileChange/requestApproval", &running, json!({"itemId": "f"})).await;
    let (id, name, input, ..) = asked(&mut turn_handle).await;
    assert_eq!((name.as_str(), input), ("apply_patch", json!({"changes": changes})));
    decide(&turn_handle, id, Decision::Expired, None).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
}

#[tokio::test]
async fn withdrawn_request_is_removed_and_reported() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    server
        .send_request(0, "item/commandExecution/requestApproval", &running, json!({"itemId": "c", "command": "x"}))
        .await;
    let (withdrawn, ..) = asked(&mut turn_handle).await;
    server.notify("serverRequest/resolved", json!({"threadId": running.thread, "requestId": 0})).await;
    assert_eq!(turn_handle.next().await, TurnEvent::ApprovalWithdrawn { id: withdrawn });
    decide(&turn_handle, withdrawn, Decision::Allow, None).await;
    server
        .send_request(1, "item/commandExecution/requestApproval", &running, json!({"itemId": "d", "command": "y"}))
        .await;
    let (id, ..) = asked(&mut turn_handle).await;
    decide(&turn_handle, id, Decision::Allow, None).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "accept"}), "the first answer was not sent");
    // An answered request is also resolved, but not withdrawn.
    server.notify("serverRequest/resolved", json!({"threadId": running.thread, "requestId": 1})).await;
    server.end(&running, "completed").await;
    let (events, _) = turn_handle.end().await;
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::ApprovalWithdrawn { .. })), "{events:?}");
}

#[tokio::test]
async fn host_tools_are_answered_by_greenroom_and_questions_by_users() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    server
        .send_request(0, "item/tool/call", &running, json!({"callId": "c", "tool": "current_time", "arguments": {}}))
        .await;
    let now = server.result_of(0).await;
    assert_eq!(now["success"], true);
    let question = json!({"question": "Which one?"});
    server
        .send_request(1, "item/tool/call", &running, json!({"callId": "d", "tool": "ask_user", "arguments": question}))
        .await;
    let (id, name, input, tool_use_id, is_question) = asked(&mut turn_handle).await;
    assert_eq!((name.as_str(), input, tool_use_id.as_deref(), is_question), ("ask_user", question, Some("d"), true));
    decide(&turn_handle, id, Decision::Allow, Some(json!({"answer": "the blue one"}))).await;
    let answer = server.result_of(1).await;
    assert_eq!(answer["contentItems"][0]["text"], "the blue one");
}

#[tokio::test]
async fn requests_of_threads_without_a_turn_are_refused() {
    let (_harness, mut server, running, turn_handle) = begun().await;
    let other_thread = RunningCodexTurn { thread: "a sub-agent's".into(), turn: "x".into(), prompt: String::new() };
    server
        .send_request(0, "item/commandExecution/requestApproval", &other_thread, json!({"itemId": "c", "command": "x"}))
        .await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
    let earlier =
        RunningCodexTurn { thread: running.thread.clone(), turn: "an earlier turn".into(), prompt: String::new() };
    server.send_request(1, "item/fileChange/requestApproval", &earlier, json!({"itemId": "c"})).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "decline"}));
    server.end(&running, "completed").await;
    let (events, _) = turn_handle.end().await;
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Approval { .. })));
}
