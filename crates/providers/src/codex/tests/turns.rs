//! Tests of turns and of continued threads.

use super::fake::{harness, workspace};
use crate::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use domain::{
    agent::{ModelOptions, Thinking},
    ids::MessageId,
    run::Receipt,
    usage::Usage,
};
use serde_json::{Value, json};

#[tokio::test]
async fn full_turn() {
    let mut harness = harness(3);
    let workspace = harness.workspace("a");
    let turn_handle = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    let start = server.expect("thread/start").await;
    assert_eq!(start["params"]["cwd"], workspace.folder.to_str().unwrap());
    // Messages of the thread that arrive before the turn is attached are not lost.
    server
        .notify(
            "mcpServer/startupStatus/updated",
            json!({"threadId": "t", "name": "x", "status": "failed", "error": "no"}),
        )
        .await;
    server.answer(&start, json!({"thread": {"id": "t"}, "model": "m"})).await;
    let running = server.start_turn().await;
    assert!(running.prompt.contains("before") && running.prompt.ends_with("hi"), "{}", running.prompt);
    server.send_text(&running, "i", "Hel").await;
    server.send_text(&running, "i", "lo").await;
    server.item(&running, "item/completed", json!({"type": "agentMessage", "id": "i", "text": "Hello"})).await;
    let counts = json!({"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 2});
    let usage = json!({"threadId": "t", "turnId": running.turn, "tokenUsage": {"total": counts, "last": counts}});
    server.notify("thread/tokenUsage/updated", usage).await;
    server.end(&running, "completed").await;
    let (mut events, outcome) = turn_handle.end().await;
    // True of the folders of these tests, but not the subject of this one.
    events.retain(|event| !matches!(event, TurnEvent::Status { status, .. } if status == "sandbox_unavailable"));
    let text = |delta: &str| TurnEvent::Text { delta: delta.into(), item: Some("i".into()) };
    let used = Usage { input_tokens: 6, cache_read_tokens: 4, output_tokens: 2, ..Usage::default() };
    assert!(matches!(&events[0], TurnEvent::Session { id } if id.starts_with("t:")));
    assert!(matches!(&events[1], TurnEvent::Status { status, .. } if status == "mcp_server_failed"), "{events:?}");
    let rest = [
        TurnEvent::ModelCall,
        text("Hel"),
        text("lo"),
        TurnEvent::Usage { usage: used, model: Some("m".into()), cost: None },
    ];
    assert_eq!(events[2..], rest);
    assert_eq!(
        (outcome.end, outcome.saved, outcome.receipt),
        (TurnEnd::Completed, SavedInSession::PromptAndAnswer, Receipt::default())
    );
}

#[tokio::test]
async fn the_model_and_the_effort_of_a_turn_are_those_of_its_agent() {
    let mut harness = harness(1);
    let mut workspace = harness.workspace("a");
    workspace.agent.spec.model = Some("m-2".into());
    let options = ModelOptions { thinking: Some(Thinking::Low), ..ModelOptions::default() };
    workspace.agent.spec.model_options = Some(options);
    let _turn = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let params = server.expect("turn/start").await["params"].clone();
    assert_eq!((&params["model"], &params["effort"]), (&json!("m-2"), &json!("low")), "{params}");
}

#[tokio::test]
async fn turn_notifications_may_come_before_the_response_with_its_id() {
    let mut harness = harness(1);
    let workspace = harness.workspace("a");
    let turn_handle = harness.begin_turn(&workspace, "hi", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    let start = server.expect("turn/start").await;
    server.notify("turn/started", json!({"threadId": thread, "turn": {"id": "x"}})).await;
    server
        .notify("item/agentMessage/delta", json!({"threadId": thread, "turnId": "x", "itemId": "i", "delta": "yes"}))
        .await;
    server.answer(&start, json!({"turn": {"id": "x"}})).await;
    server.notify("turn/completed", json!({"threadId": thread, "turn": {"id": "x", "status": "completed"}})).await;
    let (events, outcome) = turn_handle.end().await;
    assert!(events.contains(&TurnEvent::Text { delta: "yes".into(), item: Some("i".into()) }));
    assert_eq!(events.iter().filter(|event| **event == TurnEvent::ModelCall).count(), 1);
    assert_eq!(outcome.end, TurnEnd::Completed);
}

#[tokio::test]
async fn ten_thousand_deltas_arrive_complete_and_in_order() {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    let mut burst = String::new();
    for n in 0..10_000 {
        let params =
            json!({"threadId": running.thread, "turnId": running.turn, "itemId": "i", "delta": format!("{n} ")});
        burst += &format!("{}\n", json!({"method": "item/agentMessage/delta", "params": params}));
    }
    let mut sending = tokio::task::JoinSet::new();
    sending.spawn(async move {
        server.far_end.send_text(&burst).await;
        server.end(&running, "completed").await;
        server
    });
    let (events, outcome) = turn_handle.end().await;
    let text: String = events
        .iter()
        .filter_map(|e| if let TurnEvent::Text { delta, .. } = e { Some(delta.as_str()) } else { None })
        .collect();
    assert_eq!(text, (0..10_000).map(|n| format!("{n} ")).collect::<String>());
    assert_eq!(outcome.end, TurnEnd::Completed);
}

#[tokio::test]
async fn second_turn_continues_the_open_thread() {
    let mut harness = harness(3);
    let workspace = harness.workspace("a");
    let mut turn_handle = harness.begin_turn(&workspace, "one", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    let session = turn_handle.session().await;
    server.end(&running, "completed").await;
    turn_handle.end().await;
    let turn_handle = harness.begin_turn(&workspace, "two", Some(&session));
    let running = server.start_turn().await;
    assert_eq!((running.thread.as_str(), running.prompt.as_str()), (thread.as_str(), "two"));
    server.end(&running, "completed").await;
    assert_eq!(turn_handle.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn thread_closed_by_codex_is_resumed() {
    let mut harness = harness(3);
    let workspace = harness.workspace("a");
    let mut turn_handle = harness.begin_turn(&workspace, "one", None);
    let mut server = harness.next_server().await;
    let thread = server.start_thread().await;
    let running = server.start_turn().await;
    let session = turn_handle.session().await;
    server.end(&running, "completed").await;
    turn_handle.end().await;
    let turn_handle = harness.begin_turn(&workspace, "two", Some(&session));
    let start = server.expect("turn/start").await;
    server.refuse(&start, "thread not found: it").await;
    let resume = server.expect("thread/resume").await;
    server.answer(&resume, json!({"thread": {"id": thread}, "model": "m"})).await;
    let running = server.start_turn().await;
    server.end(&running, "completed").await;
    let (events, outcome) = turn_handle.end().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(!events.iter().any(|e| matches!(e, TurnEvent::Status { .. })), "nothing was lost: {events:?}");
}

#[tokio::test(start_paused = true)]
async fn thread_has_one_turn_at_a_time() {
    let mut harness = harness(3);
    let workspace = harness.workspace("a");
    let mut turn_handle = harness.begin_turn(&workspace, "one", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.end(&running, "completed").await;
    let session = turn_handle.session().await;
    turn_handle.end().await;
    let first = harness.begin_turn(&workspace, "two", Some(&session));
    let running = server.start_turn().await;
    let second = harness.begin_turn(&workspace, "three", Some(&session));
    let TurnEnd::Failed(error) = second.end().await.1.end else { panic!() };
    assert_eq!(error.code, "session_busy");
    server.end(&running, "completed").await;
    assert_eq!(first.end().await.1.end, TurnEnd::Completed, "a second turn/start would have interrupted it");
}

#[tokio::test]
async fn broken_sandbox_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = harness(1);
    let workspace = workspace(folder.path());
    let mut server = None;
    for expected in [1, 0] {
        let turn_handle = harness.begin_turn(&workspace, "hi", None);
        let server = match &mut server {
            Some(server) => server,
            none => none.insert(harness.next_server().await),
        };
        server.start_thread().await;
        let running = server.start_turn().await;
        server.end(&running, "completed").await;
        let (events, _) = turn_handle.end().await;
        let reported =
            events.iter().filter(|e| matches!(e, TurnEvent::Status { status, .. } if status == "sandbox_unavailable"));
        assert_eq!(reported.count(), expected);
    }
}

#[tokio::test]
async fn missing_thread_is_rebuilt_and_reported() {
    let mut harness = harness(3);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "two", Some("gone"));
    let mut server = harness.next_server().await;
    let resume = server.expect("thread/resume").await;
    assert_eq!((&resume["params"]["threadId"], &resume["params"]["excludeTurns"]), (&json!("gone"), &json!(true)));
    server.refuse(&resume, "no rollout found for thread id gone").await;
    server.start_thread().await;
    let running = server.start_turn().await;
    assert!(running.prompt.contains("before"), "the prompt has the history");
    server.end(&running, "completed").await;
    let (events, _) = turn_handle.end().await;
    assert!(events.iter().any(|e| matches!(e, TurnEvent::Status { status, .. } if status == "session_rebuilt")));
}

#[tokio::test]
async fn changed_instructions_start_a_new_thread() {
    let mut harness = harness(3);
    let mut workspace = harness.workspace("a");
    let mut turn_handle = harness.begin_turn(&workspace, "one", None);
    let mut server = harness.next_server().await;
    let first = server.start_thread().await;
    let running = server.start_turn().await;
    let session = turn_handle.session().await;
    server.end(&running, "completed").await;
    turn_handle.end().await;
    workspace.agent.spec.system_prompt = Some("Be loud.".into());
    let turn_handle = harness.begin_turn(&workspace, "two", Some(&session));
    let second = server.start_thread().await;
    assert_ne!(first, second);
    let running = server.start_turn().await;
    server.end(&running, "completed").await;
    let (events, _) = turn_handle.end().await;
    assert!(events.iter().any(|e| matches!(e, TurnEvent::Status { status, .. } if status == "session_rebuilt")));
}

#[tokio::test(start_paused = true)]
async fn resume_of_a_busy_thread_is_retried_then_fails() {
    let mut harness = harness(3);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", Some("t"));
    let mut server = harness.next_server().await;
    let mut tries = 0;
    let mut end = std::pin::pin!(turn_handle.end_whenever());
    let outcome = loop {
        tokio::select! {
            outcome = &mut end => break outcome,
            resume = server.expect("thread/resume") => {
                tries += 1;
                server.refuse(&resume, "thread t already has an active writer").await;
            }
        }
    };
    assert!(tries > 5, "{tries}");
    let TurnEnd::Failed(error) = outcome.end else { panic!("{outcome:?}") };
    assert_eq!(error.code, "session_busy");
}

#[tokio::test]
async fn steering_reaches_the_running_turn_and_is_reported() {
    let mut harness = harness(1);
    let mut turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.send_text(&running, "i", "I will").await;
    turn_handle.text().await;
    let (one, two) = (MessageId::generate(), MessageId::generate());
    turn_handle.command(TurnCommand::Steer { message: one, text: "rather not".into(), attachments: Vec::new() }).await;
    let steer = server.expect("turn/steer").await;
    assert_eq!(steer["params"]["expectedTurnId"], running.turn);
    assert_eq!(steer["params"]["input"][0]["text"], "rather not");
    server.answer(&steer, json!({"turnId": running.turn})).await;
    let steered = |wanted: MessageId| {
        move |event: &TurnEvent| match event {
            TurnEvent::Steered { message, taken } if *message == wanted => Some(*taken),
            _ => None,
        }
    };
    assert!(turn_handle.until(steered(one)).await);
    turn_handle.command(TurnCommand::Steer { message: two, text: "again".into(), attachments: Vec::new() }).await;
    let steer = server.expect("turn/steer").await;
    server.refuse(&steer, "no active turn to steer").await;
    server.end(&running, "completed").await;
    let (events, outcome) = turn_handle.end().await;
    assert!(events.contains(&TurnEvent::Steered { message: two, taken: false }), "{events:?}");
    assert_eq!(outcome.end, TurnEnd::Completed);
}

#[tokio::test]
async fn unfinished_text_is_retracted_on_a_retry() {
    let mut harness = harness(1);
    let turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.send_text(&running, "first", "Hel").await;
    let error = json!({"threadId": running.thread, "turnId": running.turn, "willRetry": true,
        "error": {"message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": null}}}});
    server.notify("error", error).await;
    server.send_text(&running, "second", "Hello").await;
    server.end(&running, "completed").await;
    let (events, _) = turn_handle.end().await;
    let at = |wanted: &TurnEvent| events.iter().position(|event| event == wanted).unwrap();
    let retract = at(&TurnEvent::Retract { item: "first".into() });
    assert!(retract > at(&TurnEvent::Text { delta: "Hel".into(), item: Some("first".into()) }));
    assert!(retract < at(&TurnEvent::Text { delta: "Hello".into(), item: Some("second".into()) }));
    assert!(events.iter().any(|e| matches!(e, TurnEvent::Status { status, .. } if status == "retrying")));
}

#[tokio::test]
async fn events_other_than_deltas_have_raw_lines() {
    let mut harness = harness(1);
    let mut turn_handle = harness.begin_turn(&harness.workspace("a"), "hi", None);
    let mut server = harness.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    server.send_text(&running, "i", "x").await;
    server.item(&running, "item/started", json!({"type": "commandExecution", "id": "c", "command": "ls"})).await;
    server.item(&running, "item/completed", json!({"type": "commandExecution", "id": "c", "exitCode": 0})).await;
    server.end(&running, "completed").await;
    let mut seen = Vec::new();
    while let Some(reported) = turn_handle.events.recv().await {
        let raw = reported.raw.map(|raw| serde_json::from_str::<Value>(&raw).unwrap()["method"].clone());
        match reported.event {
            TurnEvent::Text { .. } => seen.push(("text", raw)),
            TurnEvent::ToolUse { .. } => seen.push(("use", raw)),
            TurnEvent::ToolResult { .. } => seen.push(("result", raw)),
            _ => {}
        }
    }
    assert_eq!(seen, [("text", None), ("use", Some(json!("item/started"))), ("result", Some(json!("item/completed")))]);
}
