//! Tests of full turns with a fake agent.

use super::{
    AcpConfig, AcpProvider, folder,
    preset::Preset,
    testing::{AcpHarness, custom_preset, endpoint, program, workspace},
};
use crate::{Inspection, Provider as _, SavedInSession, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use domain::{
    event::Decision,
    ids::MessageId,
    mcp::{McpTransport, NamedMcpServer},
    time::Timestamp,
};
use serde_json::{Value, json};
use std::time::Duration;

fn text(delta: &str) -> TurnEvent {
    TurnEvent::Text { delta: delta.into(), item: None }
}

fn session(id: &str) -> TurnEvent {
    TurnEvent::Session { id: id.into() }
}

fn completed() -> TurnOutcome {
    TurnOutcome { saved: SavedInSession::PromptAndAnswer, ..TurnOutcome::from_end(TurnEnd::Completed) }
}

fn failed(outcome: TurnOutcome) -> (String, String) {
    match outcome.end {
        TurnEnd::Failed(error) => (error.code, error.message),
        other => panic!("{other:?}"),
    }
}

fn statuses(events: &[TurnEvent]) -> Vec<&str> {
    let mut statuses = Vec::new();
    for event in events {
        if let TurnEvent::Status { status, .. } = event {
            statuses.push(status.as_str());
        }
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn next_turn_uses_the_same_process() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    let made = harness.accept_session().await;
    assert_eq!(made["cwd"].as_str(), harness.request.workspace.folder.to_str());
    let (prompt, words) = harness.accept_prompt().await;
    assert!(words.starts_with("<conversation_so_far>") && words.contains("earlier") && words.ends_with("hello"));
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    harness.update(thought).await;
    harness.send_text("hi ").await;
    harness.send_text("there").await;
    let usage = json!({"inputTokens": 3, "outputTokens": 2});
    let result = json!({"stopReason": "end_turn", "usage": usage});
    harness.agent.send(json!({"jsonrpc": "2.0", "id": prompt, "result": result})).await;
    let (events, outcome) = harness.outcome().await;
    let thinking = TurnEvent::Thinking { delta: "hm".into(), item: None };
    assert_eq!(events[..5], [session("s1"), TurnEvent::ModelCall, thinking, text("hi "), text("there")]);
    assert!(matches!(events[5..], [TurnEvent::Usage { .. }]), "{events:?}");
    assert_eq!(outcome, completed());

    harness.remember("s1");
    harness.begin_next(64);
    let (prompt, words) = harness.accept_prompt().await;
    assert!(words.contains("meanwhile") && !words.contains("earlier"), "{words}");
    harness.send_text("again").await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await, (vec![TurnEvent::ModelCall, text("again")], completed()));
}

#[tokio::test(start_paused = true)]
async fn allowed_calls_are_allowed_once_and_denied_calls_end_with_a_result() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.ask_permission(7, "c1").await;
    let (approval, asked) = harness.approval().await;
    let TurnEvent::Approval { tool_use_id, name, input, is_question, .. } = asked else { panic!() };
    assert_eq!((tool_use_id.as_deref(), name.as_str(), is_question), (Some("c1"), "execute", false));
    assert_eq!(input, json!({"command": "ls"}));
    // The agent continues while the approval is open.
    harness.send_text("meanwhile").await;
    assert_eq!(harness.next_event().await, text("meanwhile"));
    harness.decide(approval, Decision::Allow, None).await;
    let answer = harness.agent.next().await.unwrap();
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    );
    harness.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"})).await;

    for (decision, input) in
        [(Decision::Deny, None), (Decision::Expired, None), (Decision::Allow, Some(json!({"command": "ls -l"})))]
    {
        harness.ask_permission(8, &format!("{decision:?}")).await;
        let (approval, _) = harness.approval().await;
        harness.decide(approval, decision, input).await;
        let answer = harness.agent.next().await.unwrap();
        assert_eq!(answer["result"]["outcome"]["optionId"], "no");
        let result = harness.next_event().await;
        assert!(matches!(&result, TurnEvent::ToolResult { is_error: true, .. }), "{result:?}");
    }
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await, (vec![], completed()));
}

#[tokio::test(start_paused = true)]
async fn agent_that_stops_after_a_denial_completes_its_turn() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.ask_permission(7, "c1").await;
    let (approval, _) = harness.approval().await;
    harness.decide(approval, Decision::Deny, None).await;
    harness.agent.next().await.unwrap();
    harness.end(&prompt, "cancelled").await;
    let (events, outcome) = harness.outcome().await;
    assert_eq!(statuses(&events), ["agent_stopped"]);
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Completed, SavedInSession::Nothing));
}

#[tokio::test(start_paused = true)]
async fn interrupt_cancels_open_requests_and_keeps_the_process() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.ask_permission(7, "c1").await;
    harness.approval().await;
    harness.commands.send(TurnCommand::Interrupt).await.unwrap();
    harness.agent.expect("session/cancel").await;
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(harness.agent.next().await.unwrap()["result"], cancelled);
    harness.ask_permission(8, "c2").await;
    assert_eq!(harness.agent.next().await.unwrap()["result"], cancelled);
    harness.end(&prompt, "cancelled").await;
    let (_, outcome) = harness.outcome().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Nothing));
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));

    harness.remember("s1");
    harness.begin_next(64);
    let (prompt, _) = harness.accept_prompt().await;
    harness.send_text("still here").await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await.1, completed());
}

#[tokio::test(start_paused = true)]
async fn gemini_gets_a_new_session_after_an_interrupt_during_tool_calls() {
    let gemini = Preset::named("gemini").unwrap();
    let mut harness = AcpHarness::new(gemini.clone());
    harness.begin().await;
    harness.accept_initialize(true).await;
    let made = json!({"sessionId": "s1", "modes": {"currentModeId": "default"}});
    harness.answer("session/new", made.clone()).await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.ask_permission(7, "run_shell_command__1").await;
    harness.approval().await;
    harness.commands.send(TurnCommand::Interrupt).await.unwrap();
    harness.agent.expect("session/cancel").await;
    harness.agent.next().await.unwrap();
    harness.end(&prompt, "cancelled").await;
    harness.outcome().await;
    let long_after = Timestamp::now() + Duration::from_secs(3600);
    assert!(
        !folder::is_old_enough_to_load(&gemini, &harness.request.workspace, "s1", long_after),
        "never loaded again"
    );

    harness.remember("s1");
    harness.begin_next(64);
    harness.answer("session/new", json!({"sessionId": "s2", "modes": {"currentModeId": "default"}})).await;
    let prompt = harness.agent.expect("session/prompt").await;
    assert!(prompt["params"]["prompt"][0]["text"].as_str().unwrap().contains("earlier"));
    harness.agent.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": {"stopReason": "end_turn"}})).await;
    let (events, _) = harness.outcome().await;
    assert_eq!(statuses(&events), ["session_rebuilt", "empty_answer"]);
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_a_tool_that_may_still_run_is_stopped_with_its_agent() {
    for status in [Some("failed"), None] {
        let mut harness = AcpHarness::new(custom_preset());
        harness.begin().await;
        harness.accept_session().await;
        let (prompt, _) = harness.accept_prompt().await;
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "kind": "execute"});
        harness.update(call).await;
        while !matches!(harness.next_event().await, TurnEvent::ToolUse { .. }) {}
        harness.commands.send(TurnCommand::Interrupt).await.unwrap();
        harness.agent.expect("session/cancel").await;
        if let Some(status) = status {
            harness.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status})).await;
        }
        harness.end(&prompt, "cancelled").await;
        assert_eq!(harness.outcome().await.1.end, TurnEnd::Stopped);
        if status.is_some() {
            harness.remember("s1");
            harness.begin_next(64);
            harness.accept_prompt().await;
        } else {
            assert_eq!(harness.agent.next().await, None, "its input is closed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn agent_that_ignores_an_interrupt_is_stopped() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    harness.accept_prompt().await;
    // A closed event receiver means the same as an interrupt.
    harness.events.close();
    harness.agent.expect("session/cancel").await;
    let outcome = harness.wait_for_outcome().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Nothing));
    assert!(outcome.receipt.millis >= 3000 && outcome.receipt.signals[0] == "interrupt", "{:?}", outcome.receipt);
    assert_eq!(harness.agent.next().await, None, "its input is closed");
}

#[tokio::test(start_paused = true)]
async fn interrupt_during_initialization_stops_the_agent() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.agent.expect("initialize").await;
    harness.commands.send(TurnCommand::Interrupt).await.unwrap();
    assert_eq!(harness.outcome().await, (vec![], TurnOutcome::from_end(TurnEnd::Stopped)));
    assert_eq!(harness.agent.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn interrupt_works_while_events_are_not_consumed() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.end(&prompt, "end_turn").await;
    harness.outcome().await;
    harness.remember("s1");
    harness.begin_next(1);
    let (prompt, _) = harness.accept_prompt().await;
    // More than fits into all queues, so that the response is only reached by reading on.
    for _ in 0..600 {
        harness.send_text("word ").await;
    }
    harness.commands.send(TurnCommand::Interrupt).await.unwrap();
    harness.agent.expect("session/cancel").await;
    harness.end(&prompt, "cancelled").await;
    let (_, outcome) = harness.outcome().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    assert!(outcome.receipt.millis < 3000, "it stopped in time");
}

#[tokio::test(start_paused = true)]
async fn crash_fails_the_turn_and_saves_nothing() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    harness.accept_prompt().await;
    harness.send_text("half").await;
    harness.agent.send_text("{\"jsonrpc\":").await;
    let (_, _, nobody) = crate::jsonrpc::fake_peer::FakeRpcPeer::new();
    harness.agent = nobody;
    let (events, outcome) = harness.outcome().await;
    assert_eq!((events.last(), outcome.saved), (Some(&text("half")), SavedInSession::Nothing));
    assert_eq!(failed(outcome).0, "program_crashed");
    // The process is not reused, and there is no other.
    harness.remember("s1");
    harness.begin_next(64);
    let (code, message) = failed(harness.outcome().await.1);
    assert_eq!(code, "program_missing");
    assert!(message.contains("install there-is-no-such-program"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn stray_lines_are_skipped_but_many_in_a_row_fail_the_turn() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.agent.send_text("Loading…\nnull\n[1]\n").await;
    harness.update(json!({"sessionUpdate": "horoscope", "mood": "good"})).await;
    harness.agent.send(json!({"jsonrpc": "2.0", "method": "_auth/status_update", "params": {}})).await;
    harness
        .agent
        .send(json!({"jsonrpc": "2.0", "id": 9, "method": "fs/read_text_file", "params": {"path": "x"}}))
        .await;
    assert_eq!(harness.agent.next().await.unwrap()["error"]["code"], -32601);
    harness.send_text("fine").await;
    harness.end(&prompt, "end_turn").await;
    let (events, outcome) = harness.outcome().await;
    assert_eq!((events.last(), outcome), (Some(&text("fine")), completed()));

    harness.remember("s1");
    harness.begin_next(64);
    harness.accept_prompt().await;
    harness.agent.send_text(&"garbage\n".repeat(50)).await;
    assert_eq!(failed(harness.outcome().await.1).0, "bad_output");
}

#[tokio::test(start_paused = true)]
async fn replayed_history_of_a_loaded_session_is_not_reported() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.remember("s1");
    harness.begin().await;
    harness.accept_initialize(true).await;
    let load = harness.agent.expect("session/load").await;
    assert_eq!(load["params"]["sessionId"], "s1");
    harness.send_text("old answer").await;
    harness.agent.send(json!({"jsonrpc": "2.0", "id": load["id"], "result": {}})).await;
    // Some agents continue the replay after the response.
    harness.update(json!({"sessionUpdate": "tool_call", "toolCallId": "old", "status": "completed"})).await;
    harness.send_text("older answer").await;
    let (prompt, words) = harness.accept_prompt().await;
    assert!(words.contains("meanwhile") && !words.contains("earlier"), "{words}");
    harness.send_text("new").await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await, (vec![TurnEvent::ModelCall, text("new")], completed()));
}

#[tokio::test(start_paused = true)]
async fn missing_session_is_rebuilt_from_the_history() {
    for can_load in [true, false] {
        let mut harness = AcpHarness::new(custom_preset());
        harness.remember("gone");
        harness.begin().await;
        harness.accept_initialize(can_load).await;
        if can_load {
            harness.refuse("session/load", -32603, "no such session").await;
        }
        harness.answer("session/new", json!({"sessionId": "s1"})).await;
        let (prompt, words) = harness.accept_prompt().await;
        assert!(words.contains("earlier"), "{words}");
        harness.send_text("ok").await;
        harness.end(&prompt, "end_turn").await;
        let (events, outcome) = harness.outcome().await;
        assert_eq!(statuses(&events), ["session_rebuilt"]);
        assert!(events.contains(&session("s1")));
        assert_eq!(outcome, completed());
    }
}

#[tokio::test(start_paused = true)]
async fn gemini_never_loads_a_fresh_session() {
    for (age, is_loaded) in [(Duration::from_secs(10), false), (Duration::from_secs(70), true)] {
        let gemini = Preset::named("gemini").unwrap();
        let mut harness = AcpHarness::new(gemini.clone());
        let now = Timestamp::now().as_millis();
        let made = Timestamp::from_millis(now - i64::try_from(age.as_millis()).unwrap());
        folder::remember_session(&gemini, &harness.request.workspace, "s1", made).unwrap();
        harness.remember("s1");
        harness.begin().await;
        harness.accept_initialize(true).await;
        let next = harness.agent.next().await.unwrap();
        assert_eq!(next["method"], if is_loaded { "session/load" } else { "session/new" });
    }
}

#[tokio::test(start_paused = true)]
async fn mode_with_permission_requests_is_required() {
    let mut harness = AcpHarness::new(Preset::named("codex-acp").unwrap());
    let modes = |ids: &[&str]| {
        let available: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"sessionId": "s1", "modes": {"currentModeId": "agent", "availableModes": available}})
    };
    harness.begin().await;
    harness.accept_initialize(true).await;
    harness.answer("session/new", modes(&["agent", "read-only"])).await;
    let switch = harness.agent.expect("session/set_mode").await;
    assert_eq!(switch["params"]["modeId"], "read-only");
    // Gemini reports the mode change as text.
    harness.send_text("[MODE_UPDATE] read-only").await;
    harness.agent.send(json!({"jsonrpc": "2.0", "id": switch["id"], "result": {}})).await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.send_text("ok").await;
    harness.end(&prompt, "end_turn").await;
    let (events, _) = harness.outcome().await;
    assert_eq!(events, [session("s1"), TurnEvent::ModelCall, text("ok")]);

    let mut harness = AcpHarness::new(Preset::named("codex-acp").unwrap());
    harness.begin().await;
    harness.accept_initialize(true).await;
    harness.answer("session/new", modes(&["agent"])).await;
    assert!(failed(harness.outcome().await.1).1.contains("read-only"));
}

#[tokio::test(start_paused = true)]
async fn model_is_selected_by_the_method_that_the_agent_supports() {
    let option = json!([{"id": "llm", "category": "model", "options": []}]);
    for (offer, method, field) in [
        (json!({"sessionId": "s1", "configOptions": option, "models": {}}), Some("session/set_config_option"), "value"),
        (json!({"sessionId": "s1", "models": {"availableModels": []}}), Some("session/set_model"), "modelId"),
        (json!({"sessionId": "s1"}), None, ""),
    ] {
        let mut harness = AcpHarness::new(custom_preset());
        harness.request.workspace.agent.spec.model = Some("best".into());
        harness.begin().await;
        harness.accept_initialize(true).await;
        harness.answer("session/new", offer).await;
        if let Some(method) = method {
            assert_eq!(harness.answer(method, json!({})).await[field], "best");
        }
        let (prompt, _) = harness.accept_prompt().await;
        harness.send_text("ok").await;
        harness.end(&prompt, "end_turn").await;
        let (events, _) = harness.outcome().await;
        let expected: &[&str] = if method.is_some() { &[] } else { &["model_ignored"] };
        assert_eq!(statuses(&events), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn missing_login_is_reported_with_advice_and_a_configured_method_is_tried_first() {
    let mut harness = AcpHarness::new(Preset::named("gemini").unwrap());
    harness.begin().await;
    harness.accept_initialize(true).await;
    harness.refuse("session/new", -32000, "Gemini API key is missing or not configured.").await;
    let (code, message) = failed(harness.outcome().await.1);
    assert_eq!(code, "authentication_failed");
    assert!(message.contains("missing") && message.contains("Set GEMINI_API_KEY"), "{message}");

    let mut harness = AcpHarness::new(Preset { auth: Some("key".into()), ..custom_preset() });
    harness.begin().await;
    harness.accept_initialize(true).await;
    harness.refuse("session/new", -32000, "Authentication required").await;
    assert_eq!(harness.answer("authenticate", json!({})).await["methodId"], "key");
    harness.answer("session/new", json!({"sessionId": "s1"})).await;
    harness.accept_prompt().await;
}

#[tokio::test(start_paused = true)]
async fn failed_prompt_fails_the_turn_and_keeps_the_process() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "API Error: 500 no"}});
    let (prompt, _) = harness.accept_prompt().await;
    harness.update(update).await;
    let error = json!({"code": -32603, "message": "Internal error: API Error: 500 no"});
    harness.agent.send(json!({"jsonrpc": "2.0", "id": prompt, "error": error})).await;
    let (events, outcome) = harness.outcome().await;
    assert_eq!(events.last(), Some(&TurnEvent::Retract { item: "m".into() }), "the error text is retracted");
    assert_eq!(failed(outcome), ("api_error".into(), "tame (500): API Error: 500 no.".into()));
    harness.remember("s1");
    harness.begin_next(64);
    let (prompt, _) = harness.accept_prompt().await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(statuses(&harness.outcome().await.0), ["empty_answer"]);
}

#[tokio::test(start_paused = true)]
async fn announced_call_is_reported_when_no_update_follows() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_session().await;
    harness.accept_prompt().await;
    harness.next_event().await;
    harness.next_event().await;
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "Bash", "status": "pending", "rawInput": {}});
    harness.update(call).await;
    harness
        .update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawInput": {"command": "ls"}}))
        .await;
    let expected = TurnEvent::ToolUse { id: "c".into(), name: "Bash".into(), input: json!({"command": "ls"}) };
    assert_eq!(harness.next_event().await, expected);
}

#[tokio::test(start_paused = true)]
async fn invariant_16_content_is_data_a_message_is_never_a_command() {
    for prompt in ["/extensions install evil", "  $rm", "!ls"] {
        let mut harness = AcpHarness::new(custom_preset());
        harness.request.history = vec![].into();
        harness.request.prompt = prompt.into();
        harness.begin().await;
        harness.accept_session().await;
        let (_, words) = harness.accept_prompt().await;
        assert!(words.starts_with('(') && words.ends_with(prompt), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_come_first_and_steering_is_declined() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.request.workspace.agent.spec.system_prompt = Some("Be brief.".into());
    harness.begin().await;
    harness.accept_session().await;
    let (_, words) = harness.accept_prompt().await;
    assert!(words.starts_with("<instructions>\nBe brief.\n</instructions>\n\n<conversation_so_far>"), "{words}");
    let message = MessageId::generate();
    harness.commands.send(TurnCommand::Steer { message, text: "and".into(), attachments: Vec::new() }).await.unwrap();
    let mut event = harness.next_event().await;
    while matches!(event, TurnEvent::Session { .. } | TurnEvent::ModelCall) {
        event = harness.next_event().await;
    }
    assert_eq!(event, TurnEvent::Steered { message, taken: false });
}

#[tokio::test(start_paused = true)]
async fn supported_mcp_servers_are_passed_to_the_agent() {
    let mut harness = AcpHarness::new(custom_preset());
    let stdio = McpTransport::Stdio {
        command: "git-mcp".into(),
        args: vec!["-v".into()],
        env: [("A".into(), "1".into())].into(),
    };
    let http = McpTransport::Http { url: "http://127.0.0.1:1/".into(), headers: [].into() };
    harness.request.workspace.mcp_servers = [("git", &stdio), ("web", &http), ("greenroom", &stdio)]
        .map(|(name, transport)| NamedMcpServer::new(name, transport.clone()))
        .into();
    harness.begin().await;
    let made = harness.accept_session().await;
    let names: Vec<&str> =
        made["mcpServers"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["git", "greenroom"]);
    assert_eq!(made["mcpServers"][0]["env"], json!([{"name": "A", "value": "1"}]));
    let (prompt, _) = harness.accept_prompt().await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(statuses(&harness.outcome().await.0)[..2], ["mcp_server_skipped", "mcp_server_skipped"]);
}

#[tokio::test]
async fn missing_program_is_reported_with_install_advice() {
    let folder = tempfile::tempdir().unwrap();
    let config = AcpConfig {
        preset: Preset::named("gemini").unwrap(),
        program: program("there-is-no-such-program"),
        pool: 1,
        idle: Duration::from_secs(1),
        host_tools_endpoint: endpoint(),
    };
    let provider = AcpProvider::new(config);
    assert_eq!(provider.name(), "gemini");
    let Inspection::Missing { advice } = provider.inspect().await else { panic!() };
    assert!(advice.contains("npm install"), "{advice}");
    provider.prepare(workspace(folder.path()));
    provider.close().await;
    assert!(
        provider.shared.pool.acquire(crate::pool::ConversationKey::of(&workspace(folder.path()))).is_none(),
        "closed"
    );
}
