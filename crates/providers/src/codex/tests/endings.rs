//! Every way in which a turn ends, and the proof that it has.

use super::fake::{Asking, Running, Server, Stage, place, stage};
use crate::{Kept, TurnCommand, TurnEnd, TurnEvent};
use serde_json::json;
use std::{path::Path, sync::atomic::Ordering};
use tokio::io::AsyncWriteExt as _;

async fn begun() -> (Stage, Server, Running, Asking) {
    let mut stage = stage(1);
    let mut asking = stage.ask(&place(Path::new("a")), "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.say(&running, "i", "go").await;
    asking.text().await;
    (stage, server, running, asking)
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_then_its_commands_then_the_program_goes_on() {
    let (stage, mut server, running, asking) = begun().await;
    server.item(&running, "item/started", json!({"type": "commandExecution", "id": "c", "command": "sleep 60"})).await;
    asking.command(TurnCommand::Interrupt).await;
    server.be_interrupted(&running).await;
    let killed = json!({"type": "commandExecution", "id": "c", "status": "failed", "exitCode": -1});
    server.item(&running, "item/completed", killed).await;
    let (events, outcome) = asking.end().await;
    assert!(events.iter().any(|event| matches!(event, TurnEvent::ToolResult { is_error: true, .. })), "{events:?}");
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Prompt));
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
    let asking = stage.ask(&place(Path::new("a")), "again", None);
    server.start_thread().await;
    let running = server.start_turn().await;
    server.end(&running, "completed").await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn an_interrupt_before_the_turn_has_a_name_still_ends_it() {
    let mut stage = stage(1);
    let mut asking = stage.ask(&place(Path::new("a")), "hi", None);
    let mut server = stage.next_server().await;
    let thread = server.start_thread().await;
    asking.session().await;
    let start = server.expect("turn/start").await;
    asking.command(TurnCommand::Interrupt).await;
    server.answer(&start, json!({"turn": {"id": "x"}})).await;
    // Named, but not begun: Codex refuses, and would let it run.
    let early = server.expect("turn/interrupt").await;
    server.refuse(&early, "no active turn to interrupt").await;
    server.notify("turn/started", json!({"threadId": thread, "turn": {"id": "x"}})).await;
    server.be_interrupted(&Running { thread, turn: "x".into(), prompt: String::new() }).await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Stopped);
}

#[tokio::test]
async fn a_turn_that_ends_by_itself_while_it_is_interrupted_is_over_all_the_same() {
    let (_stage, mut server, running, asking) = begun().await;
    asking.command(TurnCommand::Interrupt).await;
    let late = server.expect("turn/interrupt").await;
    server.end(&running, "completed").await;
    server.refuse(&late, "no active turn to interrupt").await;
    let clean = server.expect("thread/backgroundTerminals/clean").await;
    server.answer(&clean, json!({})).await;
    let list = server.expect("thread/backgroundTerminals/list").await;
    server.answer(&list, json!({"data": []})).await;
    let (_, outcome) = asking.end().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::PromptAndAnswer));
}

#[tokio::test]
async fn an_interrupt_while_the_program_starts_starts_nothing() {
    let stage = stage(1);
    let asking = stage.ask(&place(Path::new("a")), "hi", None);
    asking.command(TurnCommand::Interrupt).await;
    let (_, outcome) = asking.end().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Nothing));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_answer_an_interrupt_is_killed_and_its_other_turns_are_told() {
    let (stage, mut server, running, asking) = begun().await;
    let other = stage.ask(&place(Path::new("a")), "other", None);
    server.start_thread().await;
    server.start_turn().await;
    let before = tokio::time::Instant::now();
    asking.command(TurnCommand::Interrupt).await;
    server.expect("turn/interrupt").await;
    let (_, outcome) = asking.end().await;
    assert!(before.elapsed() < std::time::Duration::from_secs(8));
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Nothing));
    assert_eq!(outcome.receipt.signals, ["interrupt", "SIGKILL"]);
    assert_eq!(outcome.receipt.processes, 1);
    let (_, outcome) = other.end().await;
    let TurnEnd::Failed(error) = outcome.end else { panic!("{outcome:?}") };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("interrupted"), "{}", error.message);
    assert_eq!(stage.running.load(Ordering::SeqCst), 0);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn commands_that_do_not_end_cost_the_instance() {
    let (stage, mut server, running, asking) = begun().await;
    server.item(&running, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"})).await;
    server.end(&running, "completed").await;
    let clean = server.expect("thread/backgroundTerminals/clean").await;
    server.answer(&clean, json!({})).await;
    let mut lists = 0;
    while let Some(list) = server.far_end.next().await {
        assert_eq!(list["method"], "thread/backgroundTerminals/list");
        lists += 1;
        let answer = json!({"id": list["id"], "result": {"data": [{"itemId": "c"}]}});
        // The last one finds nobody there any more.
        drop(server.far_end.output.write_all(format!("{answer}\n").as_bytes()).await);
    }
    assert!(lists > 3, "{lists}");
    let (_, outcome) = asking.end().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Completed, Kept::PromptAndAnswer));
    assert_eq!(outcome.receipt.processes, 1);
    assert_eq!(stage.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn nobody_waiting_for_the_turn_any_more_interrupts_it() {
    let (stage, mut server, running, asking) = begun().await;
    // Only the future: somebody still holds both ends of its channels.
    let Asking { task, heard, commands, .. } = asking;
    drop(task);
    let interrupt = server.expect("turn/interrupt").await;
    // A turn on the same thread waits until this one has ended.
    let again = stage.ask(&place(Path::new("a")), "again", Some(&running.thread));
    server.answer(&interrupt, json!({})).await;
    server.end_interrupted(&running).await;
    drop((heard, commands));
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
    let running = server.start_turn().await;
    assert_eq!(running.prompt, "again");
    server.end(&running, "completed").await;
    assert_eq!(again.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn nobody_listening_any_more_is_an_interrupt() {
    let (_stage, mut server, running, mut asking) = begun().await;
    asking.heard.close();
    server.be_interrupted(&running).await;
    assert_eq!(asking.task.join_next().await.unwrap().unwrap().end, TurnEnd::Stopped);
}

#[tokio::test]
async fn a_crash_in_a_turn_is_told_with_the_last_words_and_the_thread_goes_on_elsewhere() {
    let mut stage = stage(1);
    let place = place(Path::new("a"));
    let mut asking = stage.ask(&place, "hi", None);
    let mut server = stage.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    let session = asking.session().await;
    server.say(&running, "i", "half").await;
    asking.text().await;
    drop(server);
    let (_, outcome) = asking.end().await;
    let TurnEnd::Failed(error) = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!((error.code.as_str(), outcome.kept), ("program_crashed", Kept::Nothing));
    assert!(error.message.contains("exit code 101") && error.message.contains("panicked"), "{}", error.message);
    let asking = stage.ask(&place, "again", Some(&session));
    let mut server = stage.next_server().await;
    let resume = server.expect("thread/resume").await;
    assert_eq!(resume["params"]["threadId"], thread);
    server.answer(&resume, json!({"thread": {"id": thread}, "model": "m"})).await;
    let running = server.start_turn().await;
    assert_eq!(running.prompt, "again");
    server.end(&running, "completed").await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn garbage_and_half_a_line_end_in_words_a_person_understands() {
    for (output, code) in
        [("no json at all\n".repeat(20), "bad_output"), ("{\"method\":".to_owned(), "program_crashed")]
    {
        let (_stage, mut server, _running, asking) = begun().await;
        server.far_end.send_text(&output).await;
        drop(server);
        let TurnEnd::Failed(error) = asking.end().await.1.end else { panic!() };
        assert_eq!(error.code, code, "{}", error.message);
    }
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_a_crash_with_its_last_words() {
    let mut stage = stage(1);
    let asking = stage.ask(&place(Path::new("a")), "hi", None);
    drop(stage.next_raw_server().await);
    let TurnEnd::Failed(error) = asking.end().await.1.end else { panic!() };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("panicked"), "{}", error.message);
    assert_eq!(stage.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_program_that_crashes_again_and_again_is_given_a_rest() {
    let mut stage = stage(1);
    for _ in 0..3 {
        let asking = stage.ask(&place(Path::new("a")), "hi", None);
        drop(stage.next_raw_server().await);
        assert!(matches!(asking.end().await.1.end, TurnEnd::Failed(_)));
    }
    let TurnEnd::Failed(error) = stage.ask(&place(Path::new("a")), "hi", None).end().await.1.end else { panic!() };
    assert_eq!(error.code, "program_crashed");
    assert!(error.message.contains("next try in") && error.message.contains("panicked"), "{}", error.message);
    let asking = stage.ask(&place(Path::new("b")), "hi", None);
    stage.next_server().await;
    drop(asking);
}

#[tokio::test]
async fn what_a_command_left_running_ends_with_the_turn() {
    let mut stage = stage(1);
    let mut asking = stage.ask(&place(Path::new("leftover")), "hi", None);
    let mut server = stage.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    asking.session().await;
    // As Codex starts its commands; this one outlives its parent.
    let mut left = std::process::Command::new("sleep").arg("60").env("CODEX_THREAD_ID", &thread).spawn().unwrap();
    for (method, exit) in [("item/started", json!(null)), ("item/completed", json!(0))] {
        server
            .item(&running, method, json!({"type": "commandExecution", "id": "c", "command": "x", "exitCode": exit}))
            .await;
    }
    server.end(&running, "completed").await;
    let (events, outcome) = asking.end().await;
    assert!(left.try_wait().unwrap().is_some(), "it is gone when the turn is");
    assert_eq!((outcome.end, outcome.receipt.processes), (TurnEnd::Completed, 1));
    assert!(events.iter().any(|e| matches!(e, TurnEvent::Status { status, .. } if status == "leftovers_ended")));
}

#[tokio::test(start_paused = true)]
async fn silence_after_the_start_is_given_up() {
    let mut stage = stage(1);
    let asking = stage.ask(&place(Path::new("a")), "hi", None);
    let _silent = stage.next_raw_server().await;
    // Waiting for it in real time is what the paused clock saves.
    let outcome = tokio::time::timeout(std::time::Duration::from_secs(120), asking.end_whenever()).await.unwrap();
    let TurnEnd::Failed(error) = outcome.end else { panic!() };
    assert_eq!(error.code, "start_timeout");
}

#[tokio::test]
async fn a_refused_key_ends_the_turn_at_once_and_the_next_one_starts_anew() {
    let (mut stage, mut server, running, asking) = begun().await;
    let error = json!({"threadId": running.thread, "turnId": running.turn, "willRetry": true,
        "error": {"message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 401}}}});
    server.notify("error", error).await;
    server.be_interrupted(&running).await;
    assert_eq!(server.far_end.next().await, None, "somebody will log in, and a new one will see it");
    let (_, outcome) = asking.end().await;
    let TurnEnd::Failed(error) = outcome.end else { panic!() };
    assert_eq!((error.code.as_str(), outcome.kept), ("authentication_failed", Kept::Prompt));
    let asking = stage.ask(&place(Path::new("a")), "again", None);
    stage.next_server().await;
    drop(asking);
}

#[tokio::test]
async fn without_any_login_nothing_is_asked_of_the_model() {
    let mut stage = stage(1);
    let asking = stage.ask(&place(Path::new("a")), "hi", None);
    let mut server = stage.next_raw_server().await;
    let hello = server.expect("initialize").await;
    server.answer(&hello, json!({})).await;
    server.expect("initialized").await;
    let account = server.expect("account/read").await;
    server.answer(&account, json!({"account": null, "requiresOpenaiAuth": true})).await;
    let TurnEnd::Failed(error) = asking.end().await.1.end else { panic!() };
    assert_eq!(error.code, "authentication_failed");
    assert!(error.message.contains("codex login"), "{}", error.message);
}

#[tokio::test]
async fn waiting_for_the_network_is_told_and_can_be_interrupted() {
    let (_stage, mut server, running, mut asking) = begun().await;
    let error = json!({"threadId": running.thread, "turnId": running.turn, "willRetry": true,
        "error": {"message": "Reconnecting... waiting for network", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": null}}}});
    for _ in 0..3 {
        server.notify("error", error.clone()).await;
        let status =
            asking.until(|e| if let TurnEvent::Status { status, .. } = e { Some(status.clone()) } else { None }).await;
        assert_eq!(status, "retrying");
    }
    asking.command(TurnCommand::Interrupt).await;
    server.be_interrupted(&running).await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Stopped);
}

#[tokio::test]
async fn a_turn_that_is_stopped_while_nobody_takes_its_words_still_stops() {
    let (_stage, mut server, running, asking) = begun().await;
    for n in 0..3_000 {
        server.say(&running, "i", &format!("{n} ")).await;
    }
    asking.command(TurnCommand::Interrupt).await;
    server.be_interrupted(&running).await;
    let Asking { mut task, heard, .. } = asking;
    assert_eq!(task.join_next().await.unwrap().unwrap().end, TurnEnd::Stopped);
    drop(heard);
}
