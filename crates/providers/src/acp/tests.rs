//! Whole turns, with an agent that the test plays.

use super::{
    Acp, Config, folder,
    preset::Preset,
    testing::{Stage, door, place, program, tame},
};
use crate::{Inspection, Kept, Provider as _, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use domain::{
    event::Decision,
    ids::MessageId,
    mcp::{Server, Transport},
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
    TurnOutcome { kept: Kept::PromptAndAnswer, ..TurnOutcome::of(TurnEnd::Completed) }
}

fn failed(outcome: TurnOutcome) -> (String, String) {
    match outcome.end {
        TurnEnd::Failed(error) => (error.code, error.message),
        other => panic!("{other:?}"),
    }
}

fn statuses(events: &[TurnEvent]) -> Vec<&str> {
    let mut told = Vec::new();
    for event in events {
        if let TurnEvent::Status { status, .. } = event {
            told.push(status.as_str());
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn thinks_and_answers_and_the_next_turn_goes_to_the_same_process() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    let made = stage.opened().await;
    assert_eq!(made["cwd"].as_str(), stage.request.place.workplace.to_str());
    let (prompt, words) = stage.prompted().await;
    assert!(words.starts_with("<conversation_so_far>") && words.contains("earlier") && words.ends_with("hello"));
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    stage.update(thought).await;
    stage.say("hi ").await;
    stage.say("there").await;
    let usage = json!({"inputTokens": 3, "outputTokens": 2});
    let result = json!({"stopReason": "end_turn", "usage": usage});
    stage.agent.send(json!({"jsonrpc": "2.0", "id": prompt, "result": result})).await;
    let (told, outcome) = stage.outcome().await;
    let thinking = TurnEvent::Thinking { delta: "hm".into(), item: None };
    assert_eq!(told[..5], [session("s1"), TurnEvent::ModelCall, thinking, text("hi "), text("there")]);
    assert!(matches!(told[5..], [TurnEvent::Usage { .. }]), "{told:?}");
    assert_eq!(outcome, completed());

    stage.remember("s1");
    stage.again(64);
    let (prompt, words) = stage.prompted().await;
    assert!(words.contains("meanwhile") && !words.contains("earlier"), "{words}");
    stage.say("again").await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await, (vec![TurnEvent::ModelCall, text("again")], completed()));
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_is_allowed_once_and_what_is_not_ends_with_a_result() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.ask_permission(7, "c1").await;
    let (approval, asked) = stage.approval().await;
    let TurnEvent::Approval { tool_use_id, name, input, is_question, .. } = asked else { panic!() };
    assert_eq!((tool_use_id.as_deref(), name.as_str(), is_question), (Some("c1"), "execute", false));
    assert_eq!(input, json!({"command": "ls"}));
    // The agent goes on talking while a person thinks.
    stage.say("meanwhile").await;
    assert_eq!(stage.next().await, text("meanwhile"));
    stage.decide(approval, Decision::Allow, None).await;
    let answer = stage.agent.next().await.unwrap();
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    );
    stage.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"})).await;

    for (decision, input) in
        [(Decision::Deny, None), (Decision::Expired, None), (Decision::Allow, Some(json!({"command": "ls -l"})))]
    {
        stage.ask_permission(8, &format!("{decision:?}")).await;
        let (approval, _) = stage.approval().await;
        stage.decide(approval, decision, input).await;
        let answer = stage.agent.next().await.unwrap();
        assert_eq!(answer["result"]["outcome"]["optionId"], "no");
        let result = stage.next().await;
        assert!(matches!(&result, TurnEvent::ToolResult { is_error: true, .. }), "{result:?}");
    }
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await, (vec![], completed()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_gives_up_after_a_no_has_ended_its_turn_by_itself() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.ask_permission(7, "c1").await;
    let (approval, _) = stage.approval().await;
    stage.decide(approval, Decision::Deny, None).await;
    stage.agent.next().await.unwrap();
    stage.end(&prompt, "cancelled").await;
    let (told, outcome) = stage.outcome().await;
    assert_eq!(statuses(&told), ["agent_stopped"]);
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Completed, Kept::Nothing));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_withdraws_what_is_asked_and_the_process_lives_on() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.ask_permission(7, "c1").await;
    stage.approval().await;
    stage.commands.send(TurnCommand::Interrupt).await.unwrap();
    stage.agent.expect("session/cancel").await;
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(stage.agent.next().await.unwrap()["result"], cancelled);
    stage.ask_permission(8, "c2").await;
    assert_eq!(stage.agent.next().await.unwrap()["result"], cancelled);
    stage.end(&prompt, "cancelled").await;
    let (_, outcome) = stage.outcome().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Nothing));
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));

    stage.remember("s1");
    stage.again(64);
    let (prompt, _) = stage.prompted().await;
    stage.say("still here").await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await.1, completed());
}

#[tokio::test(start_paused = true)]
async fn gemini_gets_a_new_session_after_an_interrupt_among_tool_calls() {
    let gemini = Preset::named("gemini").unwrap();
    let mut stage = Stage::new(gemini.clone());
    stage.begin().await;
    stage.greeted(true).await;
    let made = json!({"sessionId": "s1", "modes": {"currentModeId": "default"}});
    stage.answer("session/new", made.clone()).await;
    let (prompt, _) = stage.prompted().await;
    stage.ask_permission(7, "run_shell_command__1").await;
    stage.approval().await;
    stage.commands.send(TurnCommand::Interrupt).await.unwrap();
    stage.agent.expect("session/cancel").await;
    stage.agent.next().await.unwrap();
    stage.end(&prompt, "cancelled").await;
    stage.outcome().await;
    let long_after = Timestamp::now() + Duration::from_secs(3600);
    assert!(!folder::is_settled(&gemini, &stage.request.place, "s1", long_after), "never loaded again");

    stage.remember("s1");
    stage.again(64);
    stage.answer("session/new", json!({"sessionId": "s2", "modes": {"currentModeId": "default"}})).await;
    let prompt = stage.agent.expect("session/prompt").await;
    assert!(prompt["params"]["prompt"][0]["text"].as_str().unwrap().contains("earlier"));
    stage.agent.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": {"stopReason": "end_turn"}})).await;
    let (told, _) = stage.outcome().await;
    assert_eq!(statuses(&told), ["session_rebuilt", "empty_answer"]);
}

#[tokio::test(start_paused = true)]
async fn invariant_05_no_orphans_a_tool_that_nobody_saw_ending_is_stopped_with_its_agent() {
    for status in [Some("failed"), None] {
        let mut stage = Stage::new(tame());
        stage.begin().await;
        stage.opened().await;
        let (prompt, _) = stage.prompted().await;
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "kind": "execute"});
        stage.update(call).await;
        while !matches!(stage.next().await, TurnEvent::ToolUse { .. }) {}
        stage.commands.send(TurnCommand::Interrupt).await.unwrap();
        stage.agent.expect("session/cancel").await;
        if let Some(status) = status {
            stage.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status})).await;
        }
        stage.end(&prompt, "cancelled").await;
        assert_eq!(stage.outcome().await.1.end, TurnEnd::Stopped);
        if status.is_some() {
            stage.remember("s1");
            stage.again(64);
            stage.prompted().await;
        } else {
            assert_eq!(stage.agent.next().await, None, "its input is closed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_obey_is_stopped() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    stage.prompted().await;
    // Nobody listening means the same as an interrupt.
    stage.events.close();
    stage.agent.expect("session/cancel").await;
    let outcome = stage.ended().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Nothing));
    assert!(outcome.receipt.millis >= 3000 && outcome.receipt.signals[0] == "interrupt", "{:?}", outcome.receipt);
    assert_eq!(stage.agent.next().await, None, "its input is closed");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_while_the_agent_starts_stops_it() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.agent.expect("initialize").await;
    stage.commands.send(TurnCommand::Interrupt).await.unwrap();
    assert_eq!(stage.outcome().await, (vec![], TurnOutcome::of(TurnEnd::Stopped)));
    assert_eq!(stage.agent.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_is_heard_although_nobody_takes_the_events() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.end(&prompt, "end_turn").await;
    stage.outcome().await;
    stage.remember("s1");
    stage.again(1);
    let (prompt, _) = stage.prompted().await;
    // More than there is room for on the way, so that the answer cannot be seen without taking some of it.
    for _ in 0..600 {
        stage.say("word ").await;
    }
    stage.commands.send(TurnCommand::Interrupt).await.unwrap();
    stage.agent.expect("session/cancel").await;
    stage.end(&prompt, "cancelled").await;
    let (_, outcome) = stage.outcome().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    assert!(outcome.receipt.millis < 3000, "it obeyed");
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_fails_the_turn_and_nothing_of_it_is_kept() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    stage.prompted().await;
    stage.say("half").await;
    stage.agent.send_text("{\"jsonrpc\":").await;
    let (_, _, nobody) = crate::jsonrpc::far_end::FarEnd::new();
    stage.agent = nobody;
    let (told, outcome) = stage.outcome().await;
    assert_eq!((told.last(), outcome.kept), (Some(&text("half")), Kept::Nothing));
    assert_eq!(failed(outcome).0, "program_crashed");
    // The process is not used again, and there is no other.
    stage.remember("s1");
    stage.again(64);
    let (code, message) = failed(stage.outcome().await.1);
    assert_eq!(code, "program_missing");
    assert!(message.contains("install there-is-no-such-program"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn stray_lines_are_ignored_a_stream_of_them_is_not() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.agent.send_text("Loading…\nnull\n[1]\n").await;
    stage.update(json!({"sessionUpdate": "horoscope", "mood": "good"})).await;
    stage.agent.send(json!({"jsonrpc": "2.0", "method": "_auth/status_update", "params": {}})).await;
    stage.agent.send(json!({"jsonrpc": "2.0", "id": 9, "method": "fs/read_text_file", "params": {"path": "x"}})).await;
    assert_eq!(stage.agent.next().await.unwrap()["error"]["code"], -32601);
    stage.say("fine").await;
    stage.end(&prompt, "end_turn").await;
    let (told, outcome) = stage.outcome().await;
    assert_eq!((told.last(), outcome), (Some(&text("fine")), completed()));

    stage.remember("s1");
    stage.again(64);
    stage.prompted().await;
    stage.agent.send_text(&"garbage\n".repeat(50)).await;
    assert_eq!(failed(stage.outcome().await.1).0, "bad_output");
}

#[tokio::test(start_paused = true)]
async fn a_loaded_session_tells_nothing_of_its_history_again() {
    let mut stage = Stage::new(tame());
    stage.remember("s1");
    stage.begin().await;
    stage.greeted(true).await;
    let load = stage.agent.expect("session/load").await;
    assert_eq!(load["params"]["sessionId"], "s1");
    stage.say("old answer").await;
    stage.agent.send(json!({"jsonrpc": "2.0", "id": load["id"], "result": {}})).await;
    // Some go on after they said that they were done.
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "old", "status": "completed"})).await;
    stage.say("older answer").await;
    let (prompt, words) = stage.prompted().await;
    assert!(words.contains("meanwhile") && !words.contains("earlier"), "{words}");
    stage.say("new").await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await, (vec![TurnEvent::ModelCall, text("new")], completed()));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_rebuilt_from_what_was_said() {
    for can_load in [true, false] {
        let mut stage = Stage::new(tame());
        stage.remember("gone");
        stage.begin().await;
        stage.greeted(can_load).await;
        if can_load {
            stage.refuse("session/load", -32603, "no such session").await;
        }
        stage.answer("session/new", json!({"sessionId": "s1"})).await;
        let (prompt, words) = stage.prompted().await;
        assert!(words.contains("earlier"), "{words}");
        stage.say("ok").await;
        stage.end(&prompt, "end_turn").await;
        let (told, outcome) = stage.outcome().await;
        assert_eq!(statuses(&told), ["session_rebuilt"]);
        assert!(told.contains(&session("s1")));
        assert_eq!(outcome, completed());
    }
}

#[tokio::test(start_paused = true)]
async fn gemini_is_never_asked_to_load_a_fresh_session() {
    for (age, is_loaded) in [(Duration::from_secs(10), false), (Duration::from_secs(70), true)] {
        let gemini = Preset::named("gemini").unwrap();
        let mut stage = Stage::new(gemini.clone());
        let now = Timestamp::now().as_millis();
        let made = Timestamp::from_millis(now - i64::try_from(age.as_millis()).unwrap());
        folder::remember_session(&gemini, &stage.request.place, "s1", made).unwrap();
        stage.remember("s1");
        stage.begin().await;
        stage.greeted(true).await;
        let next = stage.agent.next().await.unwrap();
        assert_eq!(next["method"], if is_loaded { "session/load" } else { "session/new" });
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_in_which_the_agent_does_not_ask_is_left_or_the_turn_fails() {
    let mut stage = Stage::new(Preset::named("codex-acp").unwrap());
    let modes = |ids: &[&str]| {
        let available: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"sessionId": "s1", "modes": {"currentModeId": "agent", "availableModes": available}})
    };
    stage.begin().await;
    stage.greeted(true).await;
    stage.answer("session/new", modes(&["agent", "read-only"])).await;
    let switch = stage.agent.expect("session/set_mode").await;
    assert_eq!(switch["params"]["modeId"], "read-only");
    // Gemini says it as if it were an answer.
    stage.say("[MODE_UPDATE] read-only").await;
    stage.agent.send(json!({"jsonrpc": "2.0", "id": switch["id"], "result": {}})).await;
    let (prompt, _) = stage.prompted().await;
    stage.say("ok").await;
    stage.end(&prompt, "end_turn").await;
    let (told, _) = stage.outcome().await;
    assert_eq!(told, [session("s1"), TurnEvent::ModelCall, text("ok")]);

    let mut stage = Stage::new(Preset::named("codex-acp").unwrap());
    stage.begin().await;
    stage.greeted(true).await;
    stage.answer("session/new", modes(&["agent"])).await;
    assert!(failed(stage.outcome().await.1).1.contains("read-only"));
}

#[tokio::test(start_paused = true)]
async fn the_model_is_chosen_in_the_way_the_agent_offers() {
    let option = json!([{"id": "llm", "category": "model", "options": []}]);
    for (offer, method, field) in [
        (json!({"sessionId": "s1", "configOptions": option, "models": {}}), Some("session/set_config_option"), "value"),
        (json!({"sessionId": "s1", "models": {"availableModels": []}}), Some("session/set_model"), "modelId"),
        (json!({"sessionId": "s1"}), None, ""),
    ] {
        let mut stage = Stage::new(tame());
        stage.request.place.agent.spec.model = Some("best".into());
        stage.begin().await;
        stage.greeted(true).await;
        stage.answer("session/new", offer).await;
        if let Some(method) = method {
            assert_eq!(stage.answer(method, json!({})).await[field], "best");
        }
        let (prompt, _) = stage.prompted().await;
        stage.say("ok").await;
        stage.end(&prompt, "end_turn").await;
        let (told, _) = stage.outcome().await;
        let expected: &[&str] = if method.is_some() { &[] } else { &["model_ignored"] };
        assert_eq!(statuses(&told), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_logged_in_is_told_how_and_a_method_that_is_set_is_tried_first() {
    let mut stage = Stage::new(Preset::named("gemini").unwrap());
    stage.begin().await;
    stage.greeted(true).await;
    stage.refuse("session/new", -32000, "Gemini API key is missing or not configured.").await;
    let (code, message) = failed(stage.outcome().await.1);
    assert_eq!(code, "authentication_failed");
    assert!(message.contains("missing") && message.contains("Set GEMINI_API_KEY"), "{message}");

    let mut stage = Stage::new(Preset { auth: Some("key".into()), ..tame() });
    stage.begin().await;
    stage.greeted(true).await;
    stage.refuse("session/new", -32000, "Authentication required").await;
    assert_eq!(stage.answer("authenticate", json!({})).await["methodId"], "key");
    stage.answer("session/new", json!({"sessionId": "s1"})).await;
    stage.prompted().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_fails_the_turn_and_the_process_lives_on() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "API Error: 500 no"}});
    let (prompt, _) = stage.prompted().await;
    stage.update(update).await;
    let error = json!({"code": -32603, "message": "Internal error: API Error: 500 no"});
    stage.agent.send(json!({"jsonrpc": "2.0", "id": prompt, "error": error})).await;
    let (told, outcome) = stage.outcome().await;
    assert_eq!(told.last(), Some(&TurnEvent::Retract { item: "m".into() }), "what was said as an answer is taken back");
    assert_eq!(failed(outcome), ("api_error".into(), "tame (500): API Error: 500 no.".into()));
    stage.remember("s1");
    stage.again(64);
    let (prompt, _) = stage.prompted().await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(statuses(&stage.outcome().await.0), ["empty_answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_announced_is_told_when_nothing_more_of_it_comes() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    stage.opened().await;
    stage.prompted().await;
    stage.next().await;
    stage.next().await;
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "Bash", "status": "pending", "rawInput": {}});
    stage.update(call).await;
    stage.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawInput": {"command": "ls"}})).await;
    let told = TurnEvent::ToolUse { id: "c".into(), name: "Bash".into(), input: json!({"command": "ls"}) };
    assert_eq!(stage.next().await, told);
}

#[tokio::test(start_paused = true)]
async fn invariant_16_content_is_data_a_message_is_never_a_command() {
    for prompt in ["/extensions install evil", "  $rm", "!ls"] {
        let mut stage = Stage::new(tame());
        stage.request.history = vec![].into();
        stage.request.prompt = prompt.into();
        stage.begin().await;
        stage.opened().await;
        let (_, words) = stage.prompted().await;
        assert!(words.starts_with('(') && words.ends_with(prompt), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_come_first_and_steering_is_declined() {
    let mut stage = Stage::new(tame());
    stage.request.place.agent.spec.system_prompt = Some("Be brief.".into());
    stage.begin().await;
    stage.opened().await;
    let (_, words) = stage.prompted().await;
    assert!(words.starts_with("<instructions>\nBe brief.\n</instructions>\n\n<conversation_so_far>"), "{words}");
    let message = MessageId::generate();
    stage.commands.send(TurnCommand::Steer { message, text: "and".into() }).await.unwrap();
    let mut event = stage.next().await;
    while matches!(event, TurnEvent::Session { .. } | TurnEvent::ModelCall) {
        event = stage.next().await;
    }
    assert_eq!(event, TurnEvent::Steered { message, taken: false });
}

#[tokio::test(start_paused = true)]
async fn mcp_servers_are_passed_on_as_far_as_the_agent_can_use_them() {
    let mut stage = Stage::new(tame());
    let stdio =
        Transport::Stdio { command: "git-mcp".into(), args: vec!["-v".into()], env: [("A".into(), "1".into())].into() };
    let http = Transport::Http { url: "http://127.0.0.1:1/".into(), headers: [].into() };
    stage.request.place.mcp_servers = [("git", &stdio), ("web", &http), ("greenroom", &stdio)]
        .map(|(name, transport)| Server::new(name, transport.clone()))
        .into();
    stage.begin().await;
    let made = stage.opened().await;
    let names: Vec<&str> =
        made["mcpServers"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["git", "greenroom"]);
    assert_eq!(made["mcpServers"][0]["env"], json!([{"name": "A", "value": "1"}]));
    let (prompt, _) = stage.prompted().await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(statuses(&stage.outcome().await.0)[..2], ["mcp_server_skipped", "mcp_server_skipped"]);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_missing_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        preset: Preset::named("gemini").unwrap(),
        program: program("there-is-no-such-program"),
        pool: 1,
        idle: Duration::from_secs(1),
        door: door(),
    };
    let provider = Acp::new(config);
    assert_eq!(provider.name(), "gemini");
    let Inspection::Missing { advice } = provider.inspect().await else { panic!() };
    assert!(advice.contains("npm install"), "{advice}");
    provider.prepare(place(folder.path()));
    provider.close().await;
    assert!(provider.shared.pool.ask(super::turn::key(&place(folder.path()))).is_none(), "closed");
}
