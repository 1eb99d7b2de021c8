//! Codex asks, and is answered while it goes on.

use super::fake::{Asking, Running, Server, Stage, place, stage};
use crate::{TurnCommand, TurnEnd, TurnEvent};
use domain::{event::Decision, ids::ApprovalId};
use serde_json::{Value, json};
use std::path::Path;

async fn begun() -> (Stage, Server, Running, Asking) {
    let mut stage = stage(1);
    let asking = stage.ask(&place(Path::new("a")), "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    (stage, server, running, asking)
}

async fn asked(asking: &mut Asking) -> (ApprovalId, String, Value, Option<String>, bool) {
    asking
        .until(|event| match event {
            TurnEvent::Approval { id, tool_use_id, name, input, is_question } => {
                Some((*id, name.clone(), input.clone(), tool_use_id.clone(), *is_question))
            }
            _ => None,
        })
        .await
}

async fn decide(asking: &Asking, approval: ApprovalId, decision: Decision, input: Option<Value>) {
    asking.command(TurnCommand::Answer { approval, decision, input }).await;
}

#[tokio::test]
async fn commands_are_asked_and_answered_each_by_itself_while_text_flows() {
    let (_stage, mut server, running, mut asking) = begun().await;
    for (id, item) in [(0, "one"), (1, "two")] {
        let command = json!({"type": "commandExecution", "id": item, "command": item, "cwd": "/srv"});
        server.item(&running, "item/started", command).await;
        let params = json!({"itemId": item, "command": item, "cwd": "/srv", "availableDecisions": ["accept", "acceptForSession"]});
        server.ask(id, "item/commandExecution/requestApproval", &running, params).await;
    }
    server.say(&running, "i", "meanwhile").await;
    let first = asked(&mut asking).await;
    assert_eq!((first.1.as_str(), first.3.as_deref(), first.4), ("shell", Some("one"), false));
    assert_eq!(first.2, json!({"command": "one", "cwd": "/srv"}));
    let second = asked(&mut asking).await;
    assert_eq!(asking.text().await, "meanwhile");
    decide(&asking, second.0, Decision::Deny, None).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "decline"}));
    decide(&asking, first.0, Decision::Allow, Some(json!({"command": "one", "cwd": "/srv"}))).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "accept"}), "the same input is no change");
    for item in ["one", "two"] {
        server.item(&running, "item/completed", json!({"type": "commandExecution", "id": item, "exitCode": 0})).await;
    }
    server.end(&running, "completed").await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn a_change_that_codex_cannot_take_is_declined_and_said() {
    let (_stage, mut server, running, mut asking) = begun().await;
    let params = json!({"itemId": "c", "command": "rm -r x", "cwd": "/srv"});
    server.ask(0, "item/commandExecution/requestApproval", &running, params).await;
    let (id, ..) = asked(&mut asking).await;
    decide(&asking, id, Decision::Allow, Some(json!({"command": "rm x", "cwd": "/srv"}))).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
    let status =
        asking.until(|e| if let TurnEvent::Status { status, .. } = e { Some(status.clone()) } else { None }).await;
    assert_eq!(status, "change_not_possible");
}

#[tokio::test]
async fn a_patch_is_asked_with_its_diff() {
    let (_stage, mut server, running, mut asking) = begun().await;
    let changes = json!([{"path": "/srv/a", "kind": {"type": "add"}, "diff": "hello\n"}]);
    server.item(&running, "item/started", json!({"type": "fileChange", "id": "f", "changes": changes})).await;
    server.ask(0, "item/fileChange/requestApproval", &running, json!({"itemId": "f"})).await;
    let (id, name, input, ..) = asked(&mut asking).await;
    assert_eq!((name.as_str(), input), ("apply_patch", json!({"changes": changes})));
    decide(&asking, id, Decision::Expired, None).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
}

#[tokio::test]
async fn an_ask_that_is_withdrawn_is_forgotten_and_the_room_is_told() {
    let (_stage, mut server, running, mut asking) = begun().await;
    server.ask(0, "item/commandExecution/requestApproval", &running, json!({"itemId": "c", "command": "x"})).await;
    let (withdrawn, ..) = asked(&mut asking).await;
    server.notify("serverRequest/resolved", json!({"threadId": running.thread, "requestId": 0})).await;
    assert_eq!(asking.next().await, TurnEvent::Withdrawn { id: withdrawn });
    decide(&asking, withdrawn, Decision::Allow, None).await;
    server.ask(1, "item/commandExecution/requestApproval", &running, json!({"itemId": "d", "command": "y"})).await;
    let (id, ..) = asked(&mut asking).await;
    decide(&asking, id, Decision::Allow, None).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "accept"}), "the first answer was not sent");
    // What was answered is resolved, too, and not withdrawn.
    server.notify("serverRequest/resolved", json!({"threadId": running.thread, "requestId": 1})).await;
    server.end(&running, "completed").await;
    let (events, _) = asking.end().await;
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Withdrawn { .. })), "{events:?}");
}

#[tokio::test]
async fn host_tools_are_answered_here_and_questions_by_people() {
    let (_stage, mut server, running, mut asking) = begun().await;
    server.ask(0, "item/tool/call", &running, json!({"callId": "c", "tool": "current_time", "arguments": {}})).await;
    let now = server.result_of(0).await;
    assert_eq!(now["success"], true);
    let question = json!({"question": "Which one?"});
    server.ask(1, "item/tool/call", &running, json!({"callId": "d", "tool": "ask_user", "arguments": question})).await;
    let (id, name, input, tool_use_id, is_question) = asked(&mut asking).await;
    assert_eq!((name.as_str(), input, tool_use_id.as_deref(), is_question), ("ask_user", question, Some("d"), true));
    decide(&asking, id, Decision::Allow, Some(json!({"answer": "the blue one"}))).await;
    let answer = server.result_of(1).await;
    assert_eq!(answer["contentItems"][0]["text"], "the blue one");
}

#[tokio::test]
async fn requests_of_threads_without_a_turn_are_refused_not_left_open() {
    let (_stage, mut server, running, asking) = begun().await;
    let stranger = Running { thread: "a sub-agent's".into(), turn: "x".into(), prompt: String::new() };
    server.ask(0, "item/commandExecution/requestApproval", &stranger, json!({"itemId": "c", "command": "x"})).await;
    assert_eq!(server.result_of(0).await, json!({"decision": "decline"}));
    let earlier = Running { thread: running.thread.clone(), turn: "an earlier turn".into(), prompt: String::new() };
    server.ask(1, "item/fileChange/requestApproval", &earlier, json!({"itemId": "c"})).await;
    assert_eq!(server.result_of(1).await, json!({"decision": "decline"}));
    server.end(&running, "completed").await;
    let (events, _) = asking.end().await;
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Approval { .. })));
}
