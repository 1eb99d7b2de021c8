//! Tests of misbehaving programs: each ends the turn once, with a clear error, and leaves no process behind.

use super::fake::{ClaudeHarness, FakeClaudeProcess, RunningClaudeTurn};
use crate::{Provider as _, SavedInSession, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use domain::run::RunError;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, advance};
use workbench::process::MAX_LINE_BYTES;

async fn begun(harness: &ClaudeHarness) -> (RunningClaudeTurn, FakeClaudeProcess, Value) {
    let running = harness.begin(harness.request("hello"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    (running, claude, prompt)
}

fn error(outcome: &TurnOutcome) -> &RunError {
    match &outcome.end {
        TurnEnd::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn crash_is_reported_with_exit_code_and_stderr() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, _) = begun(&harness).await;
    claude.send_stream(&["Some "]).await;
    drop(claude);
    let (outcome, events) = running.outcome_and_events().await;
    let RunError { code, message } = error(&outcome);
    assert_eq!((code.as_str(), outcome.saved), ("program_crashed", SavedInSession::Nothing));
    assert!(message.contains("code 1") && message.contains("segmentation fault"), "{message}");
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Text { .. })), "text before the crash is kept");
    assert!(matches!(events.last(), Some(TurnEvent::Usage { usage, .. }) if usage.input_tokens == 10));
    assert_eq!(harness.alive(), 0);
    // The next turn gets a new process.
    let running = harness.begin(harness.request("again"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn unfinished_last_line_is_shown_in_the_error() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, _) = begun(&harness).await;
    claude.send_bytes(b"{\"type\":\"assist").await;
    drop(claude);
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "program_crashed");
    assert!(error(&outcome).message.contains("assist"), "{}", error(&outcome).message);
}

#[tokio::test(start_paused = true)]
async fn stray_lines_are_skipped_but_many_in_a_row_fail_the_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, prompt) = begun(&harness).await;
    for _ in 0..3 {
        for _ in 0..19 {
            claude.send_line("(node:1) Warning: something").await;
        }
        claude.send(json!({"type": "system", "subtype": "status", "status": null})).await;
    }
    claude.send_answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);

    let running = harness.begin(harness.resuming("again"));
    claude.accept_prompt().await;
    for _ in 0..20 {
        claude.send_line("<html>").await;
    }
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "bad_output");
    assert!(error(&outcome).message.contains("<html>"));
    assert_eq!(harness.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_an_endless_line_fails_the_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, _) = begun(&harness).await;
    let (outcome, ()) = tokio::join!(running.outcome(), async {
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..=MAX_LINE_BYTES / block.len() {
            claude.send_bytes(&block).await;
        }
    });
    assert_eq!(error(&outcome).code, "bad_output");
    assert_eq!(harness.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_answer_after_the_start_is_a_timeout() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("hello"));
    let _silent = harness.next_process().await;
    let began = tokio::time::Instant::now();
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "start_timeout");
    assert!(began.elapsed().as_secs() <= 61);
    assert_eq!(harness.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn rejected_first_request_is_reported() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("hello"));
    let mut claude = harness.next_process().await;
    let hello = claude.receive().await;
    let response =
        json!({"subtype": "error", "request_id": hello["request_id"], "error": "Unsupported control request"});
    claude.send(json!({"type": "control_response", "response": response})).await;
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "start_failed");
    assert!(error(&outcome).message.contains("Unsupported control request"));
}

#[tokio::test(start_paused = true)]
async fn wrong_key_fails_immediately() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, prompt) = begun(&harness).await;
    let began = tokio::time::Instant::now();
    claude
        .send(json!({
            "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 600000,
            "error_status": 401, "error": "authentication_failed",
        }))
        .await;
    claude.accept_interrupt(&prompt).await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!((error(&outcome).code.as_str(), outcome.saved), ("authentication_failed", SavedInSession::Prompt));
    assert!(error(&outcome).message.contains("ANTHROPIC_API_KEY"));
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Status { .. })), "no retry is reported");
    assert!(began.elapsed().as_secs() < 1);
    assert_eq!(harness.alive(), 0, "it would not pick up a new key");
}

#[tokio::test(start_paused = true)]
async fn wrong_key_fails_even_if_the_interrupt_is_ignored() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, _) = begun(&harness).await;
    claude.send(json!({"type": "system", "subtype": "api_retry", "error_status": 401})).await;
    assert_eq!(error(&running.outcome().await).code, "authentication_failed");
    assert_eq!(harness.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn process_without_login_is_not_kept() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, prompt) = begun(&harness).await;
    claude
        .send_result(&prompt, json!({"is_error": true, "terminal_reason": "api_error", "api_error_status": 401}))
        .await;
    let outcome = running.outcome().await;
    assert_eq!((error(&outcome).code.as_str(), harness.alive()), ("authentication_failed", 0));
}

#[tokio::test(start_paused = true)]
async fn api_error_keeps_the_process_and_the_prompt() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, prompt) = begun(&harness).await;
    let result =
        json!({"is_error": true, "terminal_reason": "api_error", "api_error_status": 529, "result": "Overloaded"});
    claude.send_result(&prompt, result).await;
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome), &RunError::new("api_error", "Overloaded"));
    assert_eq!((outcome.saved, harness.alive()), (SavedInSession::Prompt, 1));
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_background_tasks_do_not_outlive_the_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, prompt) = begun(&harness).await;
    let changed = |tasks: Value| json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks});
    claude.send(changed(json!([{"task_id": "a"}]))).await;
    claude.send(changed(json!([]))).await;
    claude.send_answer(&prompt, "done").await;
    assert_eq!((running.outcome().await.end, harness.alive()), (TurnEnd::Completed, 1));

    let running = harness.begin(harness.resuming("again"));
    let prompt = claude.accept_prompt().await;
    claude.send(changed(json!([{"task_id": "b"}]))).await;
    claude.send_answer(&prompt, "started").await;
    assert_eq!((running.outcome().await.end, harness.alive()), (TurnEnd::Completed, 0));
}

#[tokio::test(start_paused = true)]
async fn interrupt_during_start_stops_the_process_with_a_receipt() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("hello"));
    running.send(TurnCommand::Interrupt).await;
    let mut claude = harness.next_process().await;
    assert_eq!(claude.receive().await["request"]["subtype"], "initialize");
    let outcome = running.outcome().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Nothing));
    assert_eq!((outcome.receipt.processes, harness.alive()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn missing_program_is_reported_with_install_advice() {
    let harness = ClaudeHarness::new(1, 0);
    std::fs::remove_file(harness.workspace.home.parent().unwrap().join("claude")).unwrap();
    let outcome = harness.begin(harness.request("hello")).outcome().await;
    assert_eq!(error(&outcome).code, "program_missing");
    assert!(error(&outcome).message.contains("npm install"));
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_dropping_a_turn_kills_its_process() {
    let harness = ClaudeHarness::new(1, 0);
    let (running, mut claude, _) = begun(&harness).await;
    assert_eq!(harness.alive(), 1);
    running.turn.abort();
    assert!(running.turn.await.unwrap_err().is_cancelled());
    assert_eq!(harness.alive(), 0);
    assert!(claude.input_closed().await);
    // Its slot is free.
    let running = harness.begin(harness.request_in(harness.another_room(), "hello"));
    harness.next_process().await;
    running.turn.abort();
}

/// Runs a turn whose program crashes at once.
async fn crash(harness: &ClaudeHarness) {
    let running = harness.begin(harness.request("hello"));
    drop(harness.next_process().await);
    assert_eq!(error(&running.outcome().await).code, "program_crashed");
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_repeated_crashes_pause_further_starts() {
    let harness = ClaudeHarness::new(1, 1);
    for _ in 0..3 {
        crash(&harness).await;
    }
    let began = Instant::now();
    let outcome = harness.begin(harness.request("hello")).outcome().await;
    let RunError { code, message } = error(&outcome);
    assert_eq!((code.as_str(), began.elapsed()), ("program_crashed", Duration::ZERO));
    for part in ["crashed 3 times", "next try in 10 s", "segmentation fault"] {
        assert!(message.contains(part), "{message}");
    }
    harness.provider.prepare(harness.workspace.clone());
    assert!(!harness.has_started(), "neither for a turn nor as a spare");

    advance(Duration::from_secs(10)).await;
    drop(harness.run_first_turn().await);
    // The success reset the counter; otherwise the next crash would pause starts again.
    crash(&harness).await;
    crash(&harness).await;
    let running = harness.begin(harness.request("hello"));
    harness.next_process().await;
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_repeated_crashes_of_spares_pause_further_starts() {
    let harness = ClaudeHarness::new(1, 1);
    for _ in 0..3 {
        harness.provider.prepare(harness.workspace.clone());
        drop(harness.next_process().await);
        // The next request for its slot is granted when the spare has exited.
        let request = harness.provider.shared.pool.acquire(crate::pool::ConversationKey::of(&harness.workspace));
        let Some(crate::pool::SlotRequest::Queued(wait)) = request else { panic!("the spare is still starting") };
        drop(wait.slot().await);
    }
    harness.provider.prepare(harness.workspace.clone());
    let outcome = harness.begin(harness.request("hello")).outcome().await;
    assert!(error(&outcome).message.contains("crashed 3 times"), "{outcome:?}");
    assert!(!harness.has_started());
}

#[tokio::test(start_paused = true)]
async fn wrong_key_does_not_count_as_a_crash() {
    let harness = ClaudeHarness::new(1, 0);
    for _ in 0..5 {
        let (running, mut claude, _) = begun(&harness).await;
        claude.send(json!({"type": "system", "subtype": "api_retry", "error_status": 401})).await;
        assert_eq!(error(&running.outcome().await).code, "authentication_failed");
    }
}
