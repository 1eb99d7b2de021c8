//! Messages that are added to a running turn.

use super::{
    super::steering::CONFIRM_TIMEOUT,
    fake::{ClaudeHarness, SESSION, text_of},
};
use crate::{TurnCommand, TurnEnd, TurnEvent};
use domain::ids::MessageId;
use serde_json::json;

fn steer(text: &str) -> (MessageId, TurnCommand) {
    let message = MessageId::generate();
    (message, TurnCommand::Steer { message, text: text.into(), attachments: Vec::new() })
}

#[tokio::test(start_paused = true)]
async fn a_message_during_a_tool_call_is_answered_in_the_same_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (message, command) = steer("left");
    running.send(command).await;
    let steered = claude.receive().await;
    assert_eq!(steered["message"]["content"], "left");
    assert_eq!(steered["uuid"], message.to_string());
    claude.send_state(&steered, "queued").await;
    assert_eq!(running.next_event().await, TurnEvent::Steered { message, taken: true });
    claude.send_state(&steered, "started").await;
    claude.send_result(&prompt, json!({"user_message_uuids": [prompt["uuid"], steered["uuid"]]})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_message_during_an_answer_is_answered_after_it_and_the_run_waits_for_both() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (message, command) = steer("left");
    running.send(command).await;
    let steered = claude.receive().await;
    claude.send_state(&steered, "queued").await;
    claude.send_answer(&prompt, "One. ").await;
    claude.send_state(&steered, "started").await;
    claude.send(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
    claude.send_answer(&steered, "Two.").await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "One. Two."));
    assert!(events.contains(&TurnEvent::Steered { message, taken: true }), "{events:?}");
    let usages = events.iter().filter(|event| matches!(event, TurnEvent::Usage { .. })).count();
    assert_eq!(usages, 2, "the usage of both answers is counted: {events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_answer_fails_the_run_although_the_next_message_is_answered() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (_, command) = steer("left");
    running.send(command).await;
    let steered = claude.receive().await;
    claude.send_state(&steered, "queued").await;
    claude.send_result(&prompt, json!({"is_error": true, "result": "no", "terminal_reason": "api_error"})).await;
    claude.send_state(&steered, "started").await;
    claude.send_answer(&steered, "Two.").await;
    let (outcome, _) = running.outcome_and_events().await;
    assert!(matches!(outcome.end, TurnEnd::Failed(_)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_waiting_messages_too() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (_, command) = steer("left");
    running.send(command).await;
    let steered = claude.receive().await;
    claude.send_state(&steered, "queued").await;
    running.send(TurnCommand::Interrupt).await;
    let interrupt = claude.receive().await;
    assert_eq!(interrupt["request"]["cancel_queued"], true);
    claude.accept(&interrupt).await;
    claude.send_state(&steered, "cancelled").await;
    claude.end_interrupted(&prompt).await;
    let (outcome, _) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    assert_eq!(harness.alive(), 1, "the process obeyed and is kept");
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_message_is_taken_back_and_declined() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (message, command) = steer("left");
    running.send(command).await;
    let steered = claude.receive().await;
    claude.send_result(&prompt, json!({})).await;
    tokio::time::sleep(CONFIRM_TIMEOUT).await;
    let cancel = claude.receive().await;
    assert_eq!(cancel["request"], json!({"subtype": "cancel_async_message", "message_uuid": steered["uuid"]}));
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(events.contains(&TurnEvent::Steered { message, taken: false }), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_report_its_messages_is_not_steered() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.receive().await;
    claude.send(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let (message, command) = steer("left");
    running.send(command).await;
    assert_eq!(running.next_event().await, TurnEvent::Steered { message, taken: false });
    claude.send_result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}
