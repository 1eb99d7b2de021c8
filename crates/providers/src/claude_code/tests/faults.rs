//! Programs that misbehave. Each ends the turn once, with a message a person understands, and leaves nothing alive.

use super::double::{Actor, Running, Theatre};
use crate::{Kept, Provider as _, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use domain::run::RunError;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, advance};
use workbench::process::MAX_LINE_BYTES;

async fn begun(theatre: &Theatre) -> (Running, Actor, Value) {
    let running = theatre.begin(theatre.request("hello"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    (running, actor, prompt)
}

fn error(outcome: &TurnOutcome) -> &RunError {
    match &outcome.end {
        TurnEnd::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_is_told_with_its_exit_and_last_words() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, _) = begun(&theatre).await;
    actor.stream(&["Some "]).await;
    drop(actor);
    let (outcome, events) = running.both().await;
    let RunError { code, message } = error(&outcome);
    assert_eq!((code.as_str(), outcome.kept), ("program_crashed", Kept::Nothing));
    assert!(message.contains("code 1") && message.contains("segmentation fault"), "{message}");
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Text { .. })), "what was said is kept");
    assert!(matches!(events.last(), Some(TurnEvent::Usage { usage, .. }) if usage.input_tokens == 10));
    assert_eq!(theatre.alive(), 0);
    // The next turn gets a process of its own.
    let running = theatre.begin(theatre.request("again"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn half_a_line_at_the_end_is_a_crash_that_shows_it() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, _) = begun(&theatre).await;
    actor.say_bytes(b"{\"type\":\"assist").await;
    drop(actor);
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "program_crashed");
    assert!(error(&outcome).message.contains("assist"), "{}", error(&outcome).message);
}

#[tokio::test(start_paused = true)]
async fn a_stray_line_is_skipped_many_in_a_row_are_not() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, prompt) = begun(&theatre).await;
    for _ in 0..3 {
        for _ in 0..19 {
            actor.say_line("(node:1) Warning: something").await;
        }
        actor.say(json!({"type": "system", "subtype": "status", "status": null})).await;
    }
    actor.answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);

    let running = theatre.begin(theatre.resuming("again"));
    actor.prompt().await;
    for _ in 0..20 {
        actor.say_line("<html>").await;
    }
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "bad_output");
    assert!(error(&outcome).message.contains("<html>"));
    assert_eq!(theatre.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_a_line_without_end_is_a_clear_failure() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, _) = begun(&theatre).await;
    let (outcome, ()) = tokio::join!(running.outcome(), async {
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..=MAX_LINE_BYTES / block.len() {
            actor.say_bytes(&block).await;
        }
    });
    assert_eq!(error(&outcome).code, "bad_output");
    assert_eq!(theatre.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn silence_after_the_start_is_a_timeout() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("hello"));
    let _silent = theatre.actor().await;
    let began = tokio::time::Instant::now();
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "start_timeout");
    assert!(began.elapsed().as_secs() <= 61);
    assert_eq!(theatre.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_refuses_the_first_request_is_told_of() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("hello"));
    let mut actor = theatre.actor().await;
    let hello = actor.hear().await;
    let response =
        json!({"subtype": "error", "request_id": hello["request_id"], "error": "Unsupported control request"});
    actor.say(json!({"type": "control_response", "response": response})).await;
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome).code, "start_failed");
    assert!(error(&outcome).message.contains("Unsupported control request"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_final_at_once() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, prompt) = begun(&theatre).await;
    let began = tokio::time::Instant::now();
    actor
        .say(json!({
            "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 600000,
            "error_status": 401, "error": "authentication_failed",
        }))
        .await;
    actor.be_interrupted(&prompt).await;
    let (outcome, events) = running.both().await;
    assert_eq!((error(&outcome).code.as_str(), outcome.kept), ("authentication_failed", Kept::Prompt));
    assert!(error(&outcome).message.contains("ANTHROPIC_API_KEY"));
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Status { .. })), "no retry is announced");
    assert!(began.elapsed().as_secs() < 1);
    assert_eq!(theatre.alive(), 0, "it would not see another key");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_final_even_when_the_program_does_not_listen() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, _) = begun(&theatre).await;
    actor.say(json!({"type": "system", "subtype": "api_retry", "error_status": 401})).await;
    assert_eq!(error(&running.outcome().await).code, "authentication_failed");
    assert_eq!(theatre.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_logged_in_is_not_kept() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, prompt) = begun(&theatre).await;
    actor.result(&prompt, json!({"is_error": true, "terminal_reason": "api_error", "api_error_status": 401})).await;
    let outcome = running.outcome().await;
    assert_eq!((error(&outcome).code.as_str(), theatre.alive()), ("authentication_failed", 0));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_api_leaves_the_process_fit_and_the_prompt_in_its_memory() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, prompt) = begun(&theatre).await;
    let result =
        json!({"is_error": true, "terminal_reason": "api_error", "api_error_status": 529, "result": "Overloaded"});
    actor.result(&prompt, result).await;
    let outcome = running.outcome().await;
    assert_eq!(error(&outcome), &RunError::new("api_error", "Overloaded"));
    assert_eq!((outcome.kept, theatre.alive()), (Kept::Prompt, 1));
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_what_goes_on_in_the_background_does_not_outlive_the_turn() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, prompt) = begun(&theatre).await;
    let changed = |tasks: Value| json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks});
    actor.say(changed(json!([{"task_id": "a"}]))).await;
    actor.say(changed(json!([]))).await;
    actor.answer(&prompt, "done").await;
    assert_eq!((running.outcome().await.end, theatre.alive()), (TurnEnd::Completed, 1));

    let running = theatre.begin(theatre.resuming("again"));
    let prompt = actor.prompt().await;
    actor.say(changed(json!([{"task_id": "b"}]))).await;
    actor.answer(&prompt, "started").await;
    assert_eq!((running.outcome().await.end, theatre.alive()), (TurnEnd::Completed, 0));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_told_to_stop_while_it_starts_is_stopped_with_proof() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("hello"));
    running.tell(TurnCommand::Interrupt).await;
    let mut actor = theatre.actor().await;
    assert_eq!(actor.hear().await["request"]["subtype"], "initialize");
    let outcome = running.outcome().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Nothing));
    assert_eq!((outcome.receipt.processes, theatre.alive()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_there_is_told_how_to_get() {
    let theatre = Theatre::new(1, 0);
    std::fs::remove_file(theatre.place.home.parent().unwrap().join("claude")).unwrap();
    let outcome = theatre.begin(theatre.request("hello")).outcome().await;
    assert_eq!(error(&outcome).code, "program_missing");
    assert!(error(&outcome).message.contains("npm install"));
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_a_dropped_turn_ends_its_process() {
    let theatre = Theatre::new(1, 0);
    let (running, mut actor, _) = begun(&theatre).await;
    assert_eq!(theatre.alive(), 1);
    running.turn.abort();
    assert!(running.turn.await.unwrap_err().is_cancelled());
    assert_eq!(theatre.alive(), 0);
    assert!(actor.is_let_go().await);
    // Its place is free.
    let running = theatre.begin(theatre.request_in(theatre.another_room(), "hello"));
    theatre.actor().await;
    running.turn.abort();
}

/// A turn whose program dies at once.
async fn crash(theatre: &Theatre) {
    let running = theatre.begin(theatre.request("hello"));
    drop(theatre.actor().await);
    assert_eq!(error(&running.outcome().await).code, "program_crashed");
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_a_program_that_crashes_again_and_again_is_not_started_for_a_while() {
    let theatre = Theatre::new(1, 1);
    for _ in 0..3 {
        crash(&theatre).await;
    }
    let began = Instant::now();
    let outcome = theatre.begin(theatre.request("hello")).outcome().await;
    let RunError { code, message } = error(&outcome);
    assert_eq!((code.as_str(), began.elapsed()), ("program_crashed", Duration::ZERO));
    for part in ["crashed 3 times", "next try in 10 s", "segmentation fault"] {
        assert!(message.contains(part), "{message}");
    }
    theatre.provider.prepare(theatre.place.clone());
    assert!(!theatre.has_started(), "neither for a turn nor ahead of one");

    advance(Duration::from_secs(10)).await;
    drop(theatre.warmed().await);
    // What was before the success no longer counts, else the next crash would mean a rest.
    crash(&theatre).await;
    crash(&theatre).await;
    let running = theatre.begin(theatre.request("hello"));
    theatre.actor().await;
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_one_that_crashes_ahead_of_turns_is_not_made_ready_for_a_while() {
    let theatre = Theatre::new(1, 1);
    for _ in 0..3 {
        theatre.provider.prepare(theatre.place.clone());
        drop(theatre.actor().await);
        // Whoever asks for its place next gets it when it has ended.
        let place = theatre.provider.shared.pool.ask(crate::claude_code::turn::key(&theatre.place));
        let Some(crate::pool::Asked::Wait(wait)) = place else { panic!("it is being made ready") };
        drop(wait.place().await);
    }
    theatre.provider.prepare(theatre.place.clone());
    let outcome = theatre.begin(theatre.request("hello")).outcome().await;
    assert!(error(&outcome).message.contains("crashed 3 times"), "{outcome:?}");
    assert!(!theatre.has_started());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_no_crash() {
    let theatre = Theatre::new(1, 0);
    for _ in 0..5 {
        let (running, mut actor, _) = begun(&theatre).await;
        actor.say(json!({"type": "system", "subtype": "api_retry", "error_status": 401})).await;
        assert_eq!(error(&running.outcome().await).code, "authentication_failed");
    }
}
