//! Tests of all the ways in which a turn ends.

use super::fake::{CodexHarness, CodexTurnHandle, FakeCodexServer, RunningCodexTurn, harness};
use crate::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

async fn begun() -> (CodexHarness, FakeCodexServer, RunningCodexTurn, CodexTurnHandle) {
    let mut harness = harness(1);
    let mut turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.send_text(&running, "i", "go").await;
    turn_handle.text().await;
    (harness, server, running, turn_handle)
}

#[tokio::test]
async fn interrupt_ends_the_turn_and_its_commands_but_not_the_program() {
    let (harness, mut server, running, turn_handle) = begun().await;
    server.item(&running, "item/started", json!({"type": "commandExecution", "id": "c", "command": "sleep 60"})).await;
    turn_handle.command(TurnCommand::Interrupt).await;
    server.accept_interrupt(&running).await;
    let killed = json!({"type": "commandExecution", "id": "c", "status": "failed", "exitCode": -1});
    server.item(&running, "item/completed", killed).await;
    let (events, outcome) = turn_handle.end().await;
    assert!(events.iter().any(|event| matches!(event, TurnEvent::ToolResult { is_error: true, .. })), "{events:?}");
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Prompt));
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    assert_eq!(harness.count.running(), 1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "again", None);
    server.start_thread().await;
    let running = server.start_turn().await;
    server.end(&running, "completed").await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn interrupt_before_the_turn_id_is_known_ends_the_turn() {
    let mut harness = harness(1);
    let mut turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    turn_handle.session().await;
    let start = server.expect("turn/start").await;
    turn_handle.command(TurnCommand::Interrupt).await;
    server.answer(&start, json!({"turn": {"id": "x"}})).await;
    // The turn has an id but has not started: Codex refuses the interrupt and would run the turn.
    let early = server.expect("turn/interrupt").await;
    server.refuse(&early, "no active turn to interrupt").await;
    server.notify("turn/started", json!({"threadId": thread, "turn": {"id": "x"}})).await;
    server.accept_interrupt(&RunningCodexTurn { thread, turn: "x".into(), prompt: String::new() }).await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Stopped);
}

#[tokio::test]
async fn turn_that_completes_during_an_interrupt_is_stopped() {
    let (_harness, mut server, running, turn_handle) = begun().await;
    turn_handle.command(TurnCommand::Interrupt).await;
    let late = server.expect("turn/interrupt").await;
    server.end(&running, "completed").await;
    server.refuse(&late, "no active turn to interrupt").await;
    let clean = server.expect("thread/backgroundTerminals/clean").await;
    server.answer(&clean, json!({})).await;
    let list = server.expect("thread/backgroundTerminals/list").await;
    server.answer(&list, json!({"data": []})).await;
    let (_, outcome) = turn_handle.end().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::PromptAndAnswer));
}

#[tokio::test]
async fn interrupt_during_program_start_starts_no_turn() {
    let harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    turn_handle.command(TurnCommand::Interrupt).await;
    let (_, outcome) = turn_handle.end().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Nothing));
}

#[tokio::test(start_paused = true)]
async fn unanswered_interrupt_kills_the_program_and_fails_its_other_turns() {
    let (harness, mut server, running, turn_handle) = begun().await;
    let other = harness.begin_turn(&harness.workspace("a"), "other", None);
    server.start_thread().await;
    server.start_turn().await;
    let before = tokio::time::Instant::now();
    turn_handle.command(TurnCommand::Interrupt).await;
    server.expect("turn/interrupt").await;
    let (_, outcome) = turn_handle.end().await;
    assert!(before.elapsed() < std::time::Duration::from_secs(8));
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Nothing));
    assert_eq!(outcome.receipt.signals, ["interrupt", "SIGKILL"]);
    assert_eq!(outcome.receipt.processes, 1);
    let (_, outcome) = other.end().await;
    let TurnEnd::Failed(error) = outcome.end else { panic!("{outcome:?}") };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("interrupted"), "{}", error.message);
    assert_eq!(harness.count.running(), 0);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn commands_that_do_not_end_kill_the_instance() {
    let (harness, mut server, running, turn_handle) = begun().await;
    server.item(&running, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"})).await;
    server.end(&running, "completed").await;
    let clean = server.expect("thread/backgroundTerminals/clean").await;
    server.answer(&clean, json!({})).await;
    let mut lists = 0;
    while let Some(list) = server.far_end.next().await {
        assert_eq!(list["method"], "thread/backgroundTerminals/list");
        lists += 1;
        let answer = json!({"id": list["id"], "result": {"data": [{"itemId": "c"}]}});
        // The last response fails, because the instance was killed.
        drop(server.far_end.output.write_all(format!("{answer}\n").as_bytes()).await);
    }
    assert!(lists > 3, "{lists}");
    let (_, outcome) = turn_handle.end().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Completed, SavedInSession::PromptAndAnswer));
    assert_eq!(outcome.receipt.processes, 1);
    assert_eq!(harness.count.running(), 0);
}

#[tokio::test]
async fn dropped_turn_future_interrupts_the_turn() {
    let (harness, mut server, running, turn_handle) = begun().await;
    // Only the future is dropped; both channels stay open.
    let CodexTurnHandle { task, events, commands, .. } = turn_handle;
    drop(task);
    let interrupt = server.expect("turn/interrupt").await;
    // A turn on the same thread waits until this one has ended.
    let again = harness.begin_turn(&harness.workspace("a"), "again", Some(&running.thread));
    server.answer(&interrupt, json!({})).await;
    server.end_interrupted(&running).await;
    drop((events, commands));
    assert_eq!(harness.count.running(), 1);
    let running = server.start_turn().await;
    assert_eq!(running.prompt, "again");
    server.end(&running, "completed").await;
    assert_eq!(again.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn closed_event_receiver_interrupts_the_turn() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    turn_handle.events.close();
    server.accept_interrupt(&running).await;
    assert_eq!(turn_handle.task.join_next().await.unwrap().unwrap().end, TurnEnd::Stopped);
}

#[tokio::test]
async fn crash_is_reported_with_stderr_and_the_thread_continues_on_another_instance() {
    let mut harness = harness(1);
    let workspace = harness.workspace("a");
    let mut turn_handle = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    let session = turn_handle.session().await;
    server.send_text(&running, "i", "half").await;
    turn_handle.text().await;
    drop(server);
    let (_, outcome) = turn_handle.end().await;
    let TurnEnd::Failed(error) = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!((error.code.as_str(), outcome.saved), ("program_crashed", SavedInSession::Nothing));
    assert!(error.message.contains("exit code 101") && error.message.contains("panicked"), "{}", error.message);
    let turn_handle = harness.begin_turn(&workspace, "again", Some(&session));
    let mut server = harness.next_server().await;
    let resume = server.expect("thread/resume").await;
    assert_eq!(resume["params"]["threadId"], thread);
    server.answer(&resume, json!({"thread": {"id": thread}, "model": "m"})).await;
    let running = server.start_turn().await;
    assert_eq!(running.prompt, "again");
    server.end(&running, "completed").await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn invalid_and_unfinished_output_have_error_codes() {
    for (output, code) in
        [("no json at all\n".repeat(20), "bad_output"), ("{\"method\":".to_owned(), "program_crashed")]
    {
        let (_harness, mut server, _running, turn_handle) = begun().await;
        server.far_end.send_text(&output).await;
        drop(server);
        let TurnEnd::Failed(error) = turn_handle.end().await.1.end else { panic!() };
        assert_eq!(error.code, code, "{}", error.message);
    }
}

#[tokio::test]
async fn program_that_exits_at_once_is_reported_with_stderr() {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    drop(harness.next_raw_server().await);
    let TurnEnd::Failed(error) = turn_handle.end().await.1.end else { panic!() };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("panicked"), "{}", error.message);
    assert_eq!(harness.count.running(), 0);
}

#[tokio::test]
async fn repeated_crashes_pause_further_starts() {
    let mut harness = harness(1);
    for _ in 0..3 {
        let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
        drop(harness.next_raw_server().await);
        assert!(matches!(turn_handle.end().await.1.end, TurnEnd::Failed(_)));
    }
    let TurnEnd::Failed(error) = harness.begin_turn(&harness.workspace("a"), "hi", None).end().await.1.end else {
        panic!()
    };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("next try in") && error.message.contains("panicked"), "{}", error.message);
    let turn_handle = harness.begin_turn(&harness.workspace("b"), "hi", None);
    harness.next_server().await;
    drop(turn_handle);
}

#[tokio::test]
async fn leftover_processes_end_with_the_turn() {
    let mut harness = harness(1);
    let mut turn_handle = harness.begin_turn(&harness.workspace("leftover"), "hi", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    turn_handle.session().await;
    // Started like a command of Codex; this process outlives its parent.
    let mut left = std::process::Command::new("sleep").arg("60").env("CODEX_THREAD_ID", &thread).spawn().unwrap();
    for (method, exit) in [("item/started", json!(null)), ("item/completed", json!(0))] {
        server
            .item(&running, method, json!({"type": "commandExecution", "id": "c", "command": "x", "exitCode": exit}))
            .await;
    }
    server.end(&running, "completed").await;
    let (events, outcome) = turn_handle.end().await;
    assert!(left.try_wait().unwrap().is_some(), "it has exited when the turn ends");
    assert_eq!((outcome.end, outcome.receipt.processes), (TurnEnd::Completed, 1));
    assert!(events.iter().any(|e| matches!(e, TurnEvent::Status { status, .. } if status == "leftovers_ended")));
}

#[tokio::test(start_paused = true)]
async fn no_answer_after_the_start_is_a_timeout() {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let _silent = harness.next_raw_server().await;
    // The paused clock makes this timeout immediate.
    let outcome = tokio::time::timeout(std::time::Duration::from_secs(120), turn_handle.end_whenever()).await.unwrap();
    let TurnEnd::Failed(error) = outcome.end else { panic!() };
    assert_eq!(error.code, "start_timeout");
}

#[tokio::test]
async fn refused_key_ends_the_turn_at_once_and_the_next_turn_starts_a_new_program() {
    let (mut harness, mut server, running, turn_handle) = begun().await;
    let error = json!({"threadId": running.thread, "turnId": running.turn, "willRetry": true,
        "error": {"message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 401}}}});
    server.notify("error", error).await;
    server.accept_interrupt(&running).await;
    assert_eq!(server.far_end.next().await, None, "only a new program picks up a new login");
    let (_, outcome) = turn_handle.end().await;
    let TurnEnd::Failed(error) = outcome.end else { panic!() };
    assert_eq!((error.code.as_str(), outcome.saved), ("authentication_failed", SavedInSession::Prompt));
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "again", None);
    harness.next_server().await;
    drop(turn_handle);
}

#[tokio::test]
async fn without_a_login_no_turn_is_started() {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_raw_server().await;
    let request = server.expect("initialize").await;
    server.answer(&request, json!({})).await;
    server.expect("initialized").await;
    let account = server.expect("account/read").await;
    server.answer(&account, json!({"account": null, "requiresOpenaiAuth": true})).await;
    let TurnEnd::Failed(error) = turn_handle.end().await.1.end else { panic!() };
    assert_eq!(error.code, "authentication_failed");
    assert!(error.message.contains("codex login"), "{}", error.message);
}

#[tokio::test]
async fn waiting_for_the_network_is_reported_and_can_be_interrupted() {
    let (_harness, mut server, running, mut turn_handle) = begun().await;
    let error = json!({"threadId": running.thread, "turnId": running.turn, "willRetry": true,
        "error": {"message": "Reconnecting... waiting for network", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": null}}}});
    for _ in 0..3 {
        server.notify("error", error.clone()).await;
        let status = turn_handle
            .until(|e| if let TurnEvent::Status { status, .. } = e { Some(status.clone()) } else { None })
            .await;
        assert_eq!(status, "retrying");
    }
    turn_handle.command(TurnCommand::Interrupt).await;
    server.accept_interrupt(&running).await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Stopped);
}

#[tokio::test]
async fn interrupt_works_while_events_are_not_consumed() {
    let (_harness, mut server, running, turn_handle) = begun().await;
    for n in 0..3_000 {
        server.send_text(&running, "i", &format!("{n} ")).await;
    }
    turn_handle.command(TurnCommand::Interrupt).await;
    server.accept_interrupt(&running).await;
    let CodexTurnHandle { mut task, events, .. } = turn_handle;
    assert_eq!(task.join_next().await.unwrap().unwrap().end, TurnEnd::Stopped);
    drop(events);
}
