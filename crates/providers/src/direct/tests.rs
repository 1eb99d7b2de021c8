//! Whole turns against a fake model API on loopback.

use super::testing::{FakeModelApi, FakeReply, begin, calls, deadlines, direct, ends, says};
use crate::{Inspection, Provider as _, TurnCommand, TurnEnd, TurnEvent};
use domain::event::Decision;
use serde_json::{Value, json};
use tokio::time::timeout;

const LONG: u64 = 60_000;

fn whole(text: &str) -> FakeReply {
    FakeReply::Frames([says(text), ends()].concat())
}

fn text_of(events: &[TurnEvent]) -> String {
    let text = |event: &TurnEvent| match event {
        TurnEvent::Text { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn has_status(events: &[TurnEvent], wanted: &str) -> bool {
    events.iter().any(|event| matches!(event, TurnEvent::Status { status, .. } if status == wanted))
}

#[tokio::test]
async fn server_tool_is_approved_run_and_returned() {
    let api = FakeModelApi::start(vec![
        FakeReply::Frames(calls("mcp__files__read_file_x", &json!({"path": "a"}))),
        whole("Done."),
    ])
    .await;
    // The API's name of the tool is taken from the first request.
    let direct = direct(&api.url, deadlines(LONG));
    let running = begin(&direct, "read it", &["files", "broken"]);
    let (events, outcome) = running.rest().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(has_status(&events, "mcp_server_failed"), "a broken server does not affect the others: {events:?}");
    let offered = api.requests()[0]["tools"].clone();
    let names: Vec<&str> = offered.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let fitted = names.iter().find(|name| name.starts_with("mcp__files__read_file_")).unwrap();

    let api = FakeModelApi::start(vec![FakeReply::Frames(calls(fitted, &json!({"path": "a"}))), whole("Done.")]).await;
    {
        let decision = Decision::Allow;
        let direct = super::testing::direct(&api.url, deadlines(LONG));
        let mut running = begin(&direct, "read it", &["files"]);
        let asked = running.until(|event| matches!(event, TurnEvent::Approval { .. })).await;
        let TurnEvent::Approval { id, name, input, is_question, .. } = asked else { panic!() };
        assert_eq!((name.as_str(), input, is_question), ("mcp__files__read.file", json!({"path": "a"}), false));
        running
            .commands
            .send(TurnCommand::ResolveApproval { approval: id, decision, input: Some(json!({"path": "b"})) })
            .await
            .unwrap();
        let (events, outcome) = running.rest().await;
        assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "Done."));
        assert!(has_status(&events, "mcp_restarted"), "{events:?}");
        let sent = api.requests()[1]["messages"].to_string();
        assert!(sent.contains("files read.file {\\\"path\\\":\\\"b\\\"}"), "{sent}");
    }
}

#[tokio::test]
async fn denied_call_is_not_run() {
    let api =
        FakeModelApi::start(vec![FakeReply::Frames(calls("mcp__files__hang", &json!({}))), whole("Then not.")]).await;
    let direct = direct(&api.url, deadlines(LONG));
    let mut running = begin(&direct, "x", &["files"]);
    let asked = running.until(|event| matches!(event, TurnEvent::Approval { .. })).await;
    let TurnEvent::Approval { id, .. } = asked else { panic!() };
    running
        .commands
        .send(TurnCommand::ResolveApproval { approval: id, decision: Decision::Deny, input: None })
        .await
        .unwrap();
    let (events, outcome) = running.rest().await;
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "Then not."));
    assert!(api.requests()[1]["messages"].to_string().contains("not allowed"));
}

#[tokio::test]
async fn question_of_a_host_tool_is_answered_by_a_person() {
    let question = json!({"question": "Which?"});
    let api = FakeModelApi::start(vec![FakeReply::Frames(calls("ask_user", &question)), whole("That one.")]).await;
    let direct = direct(&api.url, deadlines(LONG));
    let mut running = begin(&direct, "x", &[]);
    let asked = running.until(|event| matches!(event, TurnEvent::Approval { .. })).await;
    let TurnEvent::Approval { id, tool_use_id, name, input, is_question } = asked else { panic!() };
    assert_eq!((name.as_str(), input, is_question), ("ask_user", question, true));
    let input = Some(json!({"answer": "the left one"}));
    running
        .commands
        .send(TurnCommand::ResolveApproval { approval: id, decision: Decision::Allow, input })
        .await
        .unwrap();
    let (events, outcome) = running.rest().await;
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "That one."));
    let (call, content) = (tool_use_id.unwrap(), json!("the left one"));
    assert!(events.contains(&TurnEvent::ToolResult { id: call, content, is_error: false }), "{events:?}");
    assert!(api.requests()[1]["messages"].to_string().contains("the left one"));
}

#[tokio::test]
async fn stopping_a_turn_with_an_open_question_ends_its_tool() {
    let question = json!({"question": "Which?"});
    let api = FakeModelApi::start(vec![FakeReply::Frames(calls("ask_user", &question))]).await;
    let direct = direct(&api.url, deadlines(LONG));
    let mut running = begin(&direct, "x", &[]);
    running.until(|event| matches!(event, TurnEvent::Approval { .. })).await;
    running.commands.send(TurnCommand::Interrupt).await.unwrap();
    let (events, outcome) = running.rest().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    let is_late =
        |event: &TurnEvent| matches!(event, TurnEvent::ToolResult { .. } | TurnEvent::ApprovalWithdrawn { .. });
    assert!(!events.iter().any(is_late), "{events:?}");
}

#[tokio::test]
async fn interrupt_closes_the_socket_and_cancels_tools() {
    let mut api = FakeModelApi::start(vec![FakeReply::Hangs(says("Half"))]).await;
    let direct = direct(&api.url, deadlines(LONG));
    let mut running = begin(&direct, "x", &[]);
    running.until(|event| matches!(event, TurnEvent::Text { .. })).await;
    running.commands.send(TurnCommand::Interrupt).await.unwrap();
    let (events, outcome) = running.rest().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    // The API has reported the prompt; what it said of the answer is estimated.
    let is_counted = |event: &TurnEvent| matches!(event, TurnEvent::EstimatedUsage { usage, .. } if usage.input_tokens == 3 && usage.output_tokens > 0);
    assert!(events.iter().any(is_counted), "{events:?}");
    timeout(super::testing::DEADLINE, api.disconnects.recv()).await.expect("the socket is closed").unwrap();

    let api = FakeModelApi::start(vec![FakeReply::Frames(calls("mcp__files__hang", &json!({})))]).await;
    let direct = super::testing::direct(&api.url, deadlines(LONG));
    let mut running = begin(&direct, "x", &["files"]);
    let asked = running.until(|event| matches!(event, TurnEvent::Approval { .. })).await;
    let TurnEvent::Approval { id, .. } = asked else { panic!() };
    running
        .commands
        .send(TurnCommand::ResolveApproval { approval: id, decision: Decision::Allow, input: None })
        .await
        .unwrap();
    running.commands.send(TurnCommand::Interrupt).await.unwrap();
    let (events, outcome) = running.rest().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    let cancelled =
        |event: &TurnEvent| matches!(event, TurnEvent::ToolResult { content, .. } if *content == "cancelled");
    assert!(events.iter().any(cancelled), "{events:?}");
}

#[tokio::test]
async fn idle_timeout_is_retried() {
    let api = FakeModelApi::start(vec![FakeReply::Hangs(says("Half")), whole("Whole.")]).await;
    let direct = direct(&api.url, deadlines(300));
    let (events, outcome) = begin(&direct, "x", &[]).rest().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(has_status(&events, "retrying"));
    let retracted = events.iter().position(|event| matches!(event, TurnEvent::Retract { .. })).unwrap();
    assert_eq!(text_of(&events[retracted..]), "Whole.", "the partial answer is retracted");
}

#[tokio::test]
async fn error_responses_fail_with_a_code() {
    for (reply, code) in [
        (FakeReply::Whole(401, "", r#"{"error":{"message":"bad sk-123"}}"#.into()), "authentication_failed"),
        (FakeReply::Whole(400, "", r#"{"error":{"message":"no such key: sk-0123456789"}}"#.into()), "model_refused"),
        (FakeReply::Whole(200, "content-type: application/json\r\n", "{}".into()), "model_garbled"),
        (FakeReply::Frames(vec![Value::from("no object")]), "model_cut_off"),
    ] {
        let api = FakeModelApi::start(vec![reply.clone(), reply]).await;
        let direct = direct(&api.url, deadlines(LONG));
        let (events, outcome) = begin(&direct, "x", &[]).rest().await;
        let TurnEnd::Failed(error) = outcome.end else { panic!("{events:?}") };
        assert_eq!(error.code, code);
        assert!(!error.message.contains("sk-"), "{}", error.message);
    }
    let unreachable = direct("http://127.0.0.1:9", deadlines(LONG));
    let (_, outcome) = begin(&unreachable, "x", &[]).rest().await;
    assert!(matches!(outcome.end, TurnEnd::Failed(error) if error.code == "model_unreachable"));
}

#[tokio::test]
async fn missing_key_is_reported_unless_the_api_is_local() {
    let made = direct("https://api.example.org", deadlines(LONG));
    let (mut config, http) = (made.0.config.clone(), made.0.http.clone());
    let toolbox = || std::sync::Arc::new(super::testing::EmptyToolbox);
    config.access.key = None;
    let without = super::DirectProvider::new(config.clone(), toolbox(), http.clone());
    let Inspection::NeedsKey { advice } = without.inspect().await else { panic!() };
    assert!(advice.contains("set KEY"), "{advice}");
    let (_, outcome) = begin(&without, "x", &[]).rest().await;
    assert!(matches!(outcome.end, TurnEnd::Failed(error) if error.code == "authentication_failed"));
    config.access.base_url = "http://localhost:11434/v1".into();
    let local = super::DirectProvider::new(config, toolbox(), http);
    assert!(matches!(local.inspect().await, Inspection::Ready { .. }));
}
