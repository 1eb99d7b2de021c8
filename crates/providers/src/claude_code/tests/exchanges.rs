//! Tests of single turns: text, approvals and interrupts.

use super::fake::{ClaudeHarness, SESSION, text_of};
use crate::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use domain::{agent::ToolPolicy, event::Decision};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn text_is_forwarded_as_it_is_streamed() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("say hello"));
    let mut claude = harness.next_process().await;
    let hello = claude.accept_initialize().await;
    assert_eq!(hello["request"]["sdkMcpServers"], json!(["greenroom"]));
    let prompt = claude.accept_prompt().await;
    assert_eq!(prompt["message"]["content"], "say hello");
    assert_eq!(running.next_event().await, TurnEvent::Session { id: SESSION.into() });
    let id = claude.send_stream(&["Hel", "lo"]).await;
    assert_eq!(running.next_event().await, TurnEvent::ModelCall);
    for delta in ["Hel", "lo"] {
        assert_eq!(running.next_event().await, TurnEvent::Text { delta: delta.into(), item: Some(format!("{id}#0")) });
    }
    claude.send_result(&prompt, json!({"result": "Hello"})).await;
    let (outcome, rest) = running.outcome_and_events().await;
    assert_eq!((outcome.end, outcome.saved), (TurnEnd::Completed, SavedInSession::PromptAndAnswer));
    assert!(matches!(rest[..], [TurnEvent::Usage { .. }]), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_approval_can_be_allowed_changed_denied_or_expired() {
    let asked = json!({"command": "touch x"});
    let changed = json!({"command": "echo"});
    for (decision, input, behavior, updated) in [
        (Decision::Allow, None, "allow", asked.clone()),
        (Decision::Allow, Some(changed.clone()), "allow", changed),
        (Decision::Deny, None, "deny", Value::Null),
        (Decision::Expired, None, "deny", Value::Null),
    ] {
        let harness = ClaudeHarness::new(1, 0);
        let mut running = harness.begin(harness.request("use a tool"));
        let mut claude = harness.next_process().await;
        claude.accept_initialize().await;
        let prompt = claude.accept_prompt().await;
        claude.request_permission("Bash", asked.clone()).await;
        // Text is forwarded while the approval is open.
        claude.send_stream(&["waiting"]).await;
        let (approval, name, input_asked, is_question) = running.approval().await;
        assert_eq!((name.as_str(), &input_asked, is_question), ("Bash", &asked, false));
        while !matches!(running.next_event().await, TurnEvent::Text { .. }) {}
        running.send(TurnCommand::ResolveApproval { approval, decision, input }).await;
        let reply = claude.expect_reply("ask-1").await;
        assert_eq!(reply["response"]["behavior"], behavior);
        assert_eq!(reply["response"]["updatedInput"], updated);
        assert!(reply["response"].get("updatedPermissions").is_none(), "suggested permission rules are not applied");
        claude.send_result(&prompt, json!({})).await;
        assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_is_not_answered() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("use a tool"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.request_permission("Bash", json!({})).await;
    let (approval, ..) = running.approval().await;
    claude.send(json!({"type": "control_cancel_request", "request_id": "ask-1"})).await;
    claude.send(json!({"type": "control_cancel_request", "request_id": "ask-1"})).await;
    claude.send_stream(&["never mind"]).await;
    assert_eq!(running.next_event().await, TurnEvent::ApprovalWithdrawn { id: approval });
    assert_eq!(running.next_event().await, TurnEvent::ModelCall, "it is reported once");
    while !matches!(running.next_event().await, TurnEvent::Text { .. }) {}
    running.send(TurnCommand::ResolveApproval { approval, decision: Decision::Allow, input: None }).await;
    running.send(TurnCommand::Interrupt).await;
    // The next message that it receives is the interrupt.
    claude.accept_interrupt(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_program_are_answered_by_a_user() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("ask me"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    let questions =
        json!({"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
    claude.request_permission("AskUserQuestion", questions).await;
    let (approval, _, _, is_question) = running.approval().await;
    assert!(is_question);
    let input = Some(json!({"answer": "Blue"}));
    running.send(TurnCommand::ResolveApproval { approval, decision: Decision::Allow, input }).await;
    let reply = claude.expect_reply("ask-1").await;
    assert_eq!(reply["response"]["updatedInput"]["answers"], json!({"Which colour?": "Blue"}));
    claude.send_result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

fn mcp(message: Value) -> Value {
    json!({"subtype": "mcp_message", "server_name": "greenroom", "message": message})
}

#[tokio::test(start_paused = true)]
async fn host_tools_are_listed_and_called_and_can_ask_a_user() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("what time is it"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.send_request("m1", mcp(json!({"id": 0, "method": "initialize", "params": {}}))).await;
    assert!(claude.expect_reply("m1").await["response"]["mcp_response"]["result"]["serverInfo"].is_object());
    // A notification arrives in a control request, which needs a response.
    claude.send_request("m2", mcp(json!({"method": "notifications/initialized"}))).await;
    assert_eq!(claude.expect_reply("m2").await["subtype"], "success");
    claude.send_request("m3", mcp(json!({"id": 1, "method": "tools/list"}))).await;
    assert_eq!(
        claude.expect_reply("m3").await["response"]["mcp_response"]["result"]["tools"][0]["name"],
        "current_time"
    );
    let call = |id: u32, name: &str, arguments: Value| {
        let meta = json!({"claudecode/toolUseId": "toolu_9"});
        mcp(json!({"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta}}))
    };
    claude.send_request("m4", call(2, "current_time", json!({}))).await;
    let time = claude.expect_reply("m4").await["response"]["mcp_response"]["result"]["content"][0]["text"].clone();
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");

    claude.send_request("m5", call(3, "ask_user", json!({"question": "Which?"}))).await;
    let TurnEvent::Approval { id, tool_use_id, name, is_question, .. } = (loop {
        let event = running.next_event().await;
        if matches!(event, TurnEvent::Approval { .. }) {
            break event;
        }
    }) else {
        panic!()
    };
    assert_eq!((tool_use_id.as_deref(), name.as_str(), is_question), (Some("toolu_9"), "ask_user", true));
    let input = Some(json!({"answer": "the left one"}));
    running.send(TurnCommand::ResolveApproval { approval: id, decision: Decision::Allow, input }).await;
    let answer = claude.expect_reply("m5").await["response"]["mcp_response"].clone();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(3), &json!("the left one")));

    claude.send_request("m6", json!({"subtype": "mcp_message", "server_name": "other", "message": {}})).await;
    assert_eq!(claude.expect_reply("m6").await["subtype"], "error");
    claude.send_result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn host_tools_are_not_called_outside_of_a_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    let params = json!({"name": "current_time", "arguments": {}});
    claude.send_request("m1", mcp(json!({"id": 7, "method": "tools/call", "params": params}))).await;
    let running = harness.begin(harness.resuming("again"));
    let result = claude.expect_reply("m1").await["response"]["mcp_response"]["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn interrupt_cancels_a_host_tool() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("ask"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    let params = json!({"name": "ask_user", "arguments": {"question": "Which?"}});
    claude.send_request("m1", mcp(json!({"id": 7, "method": "tools/call", "params": params}))).await;
    running.approval().await;
    running.send(TurnCommand::Interrupt).await;
    claude.accept_interrupt(&prompt).await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::ApprovalWithdrawn { .. })), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_host_tool_call_withdraws_its_question() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("ask"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    let params = json!({"name": "ask_user", "arguments": {"question": "Which?"}});
    claude.send_request("m1", mcp(json!({"id": 7, "method": "tools/call", "params": params}))).await;
    let (approval, ..) = running.approval().await;
    claude.send_request("m2", mcp(json!({"method": "notifications/cancelled", "params": {"requestId": 7}}))).await;
    assert_eq!(claude.expect_reply("m2").await["subtype"], "success");
    assert_eq!(running.next_event().await, TurnEvent::ApprovalWithdrawn { id: approval });
    running.send(TurnCommand::ResolveApproval { approval, decision: Decision::Allow, input: None }).await;
    running.send(TurnCommand::Interrupt).await;
    claude.accept_interrupt(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn policy_denies_tools_for_which_the_program_does_not_ask() {
    let harness = ClaudeHarness::new(1, 0);
    let mut request = harness.request("read it");
    request.workspace.agent.spec.tools = ToolPolicy { deny: vec!["Read".into()], ..ToolPolicy::default() };
    let running = harness.begin(request);
    let mut claude = harness.next_process().await;
    let hooks = claude.accept_initialize().await["request"]["hooks"]["PreToolUse"][0].clone();
    let prompt = claude.accept_prompt().await;
    for (tool, decision) in [("Read", json!("deny")), ("Write", Value::Null)] {
        let input = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}});
        let callback = hooks["hookCallbackIds"][0].clone();
        claude.send_request("h1", json!({"subtype": "hook_callback", "callback_id": callback, "input": input})).await;
        let reply = claude.expect_reply("h1").await;
        assert_eq!(reply["response"]["hookSpecificOutput"]["permissionDecision"], decision, "{tool}");
    }
    claude.send_result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn unsupported_requests_are_declined() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("x"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    let form = json!({"subtype": "elicitation", "mcp_server_name": "shop", "message": "Your name?"});
    claude.send_request("e1", form).await;
    assert_eq!(claude.expect_reply("e1").await["response"]["action"], "decline");
    claude.send_request("d1", json!({"subtype": "request_user_dialog", "dialog_kind": "new"})).await;
    assert_eq!(claude.expect_reply("d1").await["subtype"], "error");
    claude.send_result(&prompt, json!({})).await;
    let (_, events) = running.outcome_and_events().await;
    let is_declined = |event: &TurnEvent| match event {
        TurnEvent::Status { status, message } => status == "elicitation_declined" && message.contains("shop"),
        _ => false,
    };
    assert!(events.iter().any(is_declined), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn interrupted_process_is_reused_for_the_next_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin(harness.request("slow"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.send_stream(&["one ", "two "]).await;
    while !matches!(running.next_event().await, TurnEvent::Text { delta, .. } if delta == "two ") {}
    running.send(TurnCommand::Interrupt).await;
    let interrupt = claude.receive().await;
    claude.send_stream(&["too late"]).await;
    claude.accept(&interrupt).await;
    claude.end_interrupted(&prompt).await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!(
        (outcome.end, outcome.saved, text_of(&events).as_str()),
        (TurnEnd::Stopped, SavedInSession::PromptAndAnswer, "")
    );
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    // The result has no usage; the stream does.
    let used = |event: &TurnEvent| matches!(event, TurnEvent::Usage { usage, .. } if usage.input_tokens == 20);
    assert!(events.iter().any(used), "{events:?}");

    let next = harness.begin(harness.resuming("go on"));
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "three").await;
    let (outcome, events) = next.outcome_and_events().await;
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "three"));
}

#[tokio::test(start_paused = true)]
async fn late_interrupt_does_not_affect_the_next_turn() {
    for is_answered in [true, false] {
        let harness = ClaudeHarness::new(1, 0);
        let mut running = harness.begin(harness.request("x"));
        let mut claude = harness.next_process().await;
        claude.accept_initialize().await;
        let prompt = claude.accept_prompt().await;
        claude.send_stream(&["done"]).await;
        while !matches!(running.next_event().await, TurnEvent::Text { .. }) {}
        running.send(TurnCommand::Interrupt).await;
        let interrupt = claude.receive().await;
        // The turn finishes before the program handles the interrupt.
        claude.send_result(&prompt, json!({"result": "done"})).await;
        if is_answered {
            claude.accept(&interrupt).await;
        }
        assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
        // A process that may still act on the interrupt is not reused.
        assert_eq!(harness.alive(), usize::from(is_answered));
    }
}

#[tokio::test(start_paused = true)]
async fn process_that_ignores_an_interrupt_is_stopped_by_force() {
    for answers in [false, true] {
        let harness = ClaudeHarness::new(1, 0);
        let mut running = harness.begin(harness.request("slow"));
        let mut claude = harness.next_process().await;
        claude.accept_initialize().await;
        claude.accept_prompt().await;
        claude.send_stream(&["one"]).await;
        while !matches!(running.next_event().await, TurnEvent::Text { .. }) {}
        running.send(TurnCommand::Interrupt).await;
        let interrupt = claude.receive().await;
        if answers {
            // It accepts the interrupt but sends no result.
            claude.accept(&interrupt).await;
        }
        let began = tokio::time::Instant::now();
        let (outcome, events) = running.outcome_and_events().await;
        assert!(began.elapsed() <= Duration::from_secs(4));
        assert_eq!((outcome.end, outcome.saved), (TurnEnd::Stopped, SavedInSession::Prompt));
        assert_eq!(
            (outcome.receipt.processes, outcome.receipt.signals),
            (1, vec!["interrupt".to_owned(), "term".to_owned()])
        );
        assert!(events.iter().any(|event| matches!(event, TurnEvent::Usage { .. })), "{events:?}");
        assert_eq!(harness.alive(), 0);
        assert!(claude.input_closed().await);
    }
}

#[tokio::test(start_paused = true)]
async fn closed_event_receiver_interrupts_the_turn() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("slow"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    drop(running.events);
    claude.accept_interrupt(&prompt).await;
    assert_eq!(running.turn.await.unwrap().end, TurnEnd::Stopped);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn invariant_10_isolation_a_slow_reader_slows_the_program_and_can_still_interrupt_it() {
    let harness = ClaudeHarness::new(1, 0);
    let mut running = harness.begin_with_capacity(1, harness.request("slow"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    claude.accept_prompt().await;
    let long = "x".repeat(10_000);
    let flood = async {
        for _ in 0..1000 {
            claude.send_stream(&[long.as_str()]).await;
        }
    };
    // Events are not read, so only as much as fits into the pipe can be written.
    tokio::time::timeout(Duration::from_secs(1), flood).await.unwrap_err();
    running.send(TurnCommand::Interrupt).await;
    while running.next_event().await != (TurnEvent::Session { id: SESSION.into() }) {}
    let (outcome, _) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn output_between_turns_is_not_part_of_the_answer() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    // The program produces output between turns and is not finished when the next prompt arrives.
    claude.send_stream(&["mumble"]).await;
    let running = harness.begin(harness.resuming("go on"));
    let prompt = claude.receive().await;
    let state = |state: &str| json!({"type": "command_lifecycle", "command_uuid": prompt["uuid"], "state": state});
    claude.send(state("queued")).await;
    claude.send_stream(&["mumble on"]).await;
    claude.send(json!({"type": "result", "subtype": "success", "is_error": false, "result": "mumble on"})).await;
    claude.send(state("started")).await;
    claude.send(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
    claude.send_answer(&prompt, "Yes").await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "Yes"));
}
