//! One turn: words, questions and their answers, and the word to stop.

use super::double::{SESSION, Theatre};
use crate::{Kept, TurnCommand, TurnEnd, TurnEvent};
use domain::{agent::ToolPolicy, event::Decision, ids::MessageId};
use serde_json::{Value, json};
use std::time::Duration;

fn said(events: &[TurnEvent]) -> String {
    let text = events.iter().filter_map(|event| match event {
        TurnEvent::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    text.collect()
}

#[tokio::test(start_paused = true)]
async fn words_come_as_they_are_said() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("say hello"));
    let mut actor = theatre.actor().await;
    let hello = actor.greet().await;
    assert_eq!(hello["request"]["sdkMcpServers"], json!(["greenroom"]));
    let prompt = actor.prompt().await;
    assert_eq!(prompt["message"]["content"], "say hello");
    assert_eq!(running.event().await, TurnEvent::Session { id: SESSION.into() });
    let id = actor.stream(&["Hel", "lo"]).await;
    assert_eq!(running.event().await, TurnEvent::ModelCall);
    for delta in ["Hel", "lo"] {
        assert_eq!(running.event().await, TurnEvent::Text { delta: delta.into(), item: Some(format!("{id}#0")) });
    }
    actor.result(&prompt, json!({"result": "Hello"})).await;
    let (outcome, rest) = running.both().await;
    assert_eq!((outcome.end, outcome.kept), (TurnEnd::Completed, Kept::PromptAndAnswer));
    assert!(matches!(rest[..], [TurnEvent::Usage { .. }]), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_allowed_denied_changed_or_not_answered_for() {
    let asked = json!({"command": "touch x"});
    let changed = json!({"command": "echo"});
    for (decision, input, behavior, updated) in [
        (Decision::Allow, None, "allow", asked.clone()),
        (Decision::Allow, Some(changed.clone()), "allow", changed),
        (Decision::Deny, None, "deny", Value::Null),
        (Decision::Expired, None, "deny", Value::Null),
    ] {
        let theatre = Theatre::new(1, 0);
        let mut running = theatre.begin(theatre.request("use a tool"));
        let mut actor = theatre.actor().await;
        actor.greet().await;
        let prompt = actor.prompt().await;
        actor.ask("Bash", asked.clone()).await;
        // Words flow on while nobody has answered.
        actor.stream(&["waiting"]).await;
        let (approval, name, input_asked, is_question) = running.approval().await;
        assert_eq!((name.as_str(), &input_asked, is_question), ("Bash", &asked, false));
        while !matches!(running.event().await, TurnEvent::Text { .. }) {}
        running.tell(TurnCommand::Answer { approval, decision, input }).await;
        let reply = actor.reply("ask-1").await;
        assert_eq!(reply["response"]["behavior"], behavior);
        assert_eq!(reply["response"]["updatedInput"], updated);
        assert!(reply["response"].get("updatedPermissions").is_none(), "its own suggestions are not taken up");
        actor.result(&prompt, json!({})).await;
        assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_withdrawn_is_not_answered() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("use a tool"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.ask("Bash", json!({})).await;
    let (approval, ..) = running.approval().await;
    actor.say(json!({"type": "control_cancel_request", "request_id": "ask-1"})).await;
    actor.say(json!({"type": "control_cancel_request", "request_id": "ask-1"})).await;
    actor.stream(&["never mind"]).await;
    assert_eq!(running.event().await, TurnEvent::Withdrawn { id: approval });
    assert_eq!(running.event().await, TurnEvent::ModelCall, "it is said once");
    while !matches!(running.event().await, TurnEvent::Text { .. }) {}
    running.tell(TurnCommand::Answer { approval, decision: Decision::Allow, input: None }).await;
    running.tell(TurnCommand::Interrupt).await;
    // The next thing it hears is the interrupt.
    actor.be_interrupted(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn its_own_questions_are_answered_by_a_person() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("ask me"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    let questions =
        json!({"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
    actor.ask("AskUserQuestion", questions).await;
    let (approval, _, _, is_question) = running.approval().await;
    assert!(is_question);
    let input = Some(json!({"answer": "Blue"}));
    running.tell(TurnCommand::Answer { approval, decision: Decision::Allow, input }).await;
    let reply = actor.reply("ask-1").await;
    assert_eq!(reply["response"]["updatedInput"]["answers"], json!({"Which colour?": "Blue"}));
    actor.result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

fn mcp(message: Value) -> Value {
    json!({"subtype": "mcp_message", "server_name": "greenroom", "message": message})
}

#[tokio::test(start_paused = true)]
async fn host_tools_are_listed_called_and_may_ask_a_person() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("what time is it"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.request("m1", mcp(json!({"id": 0, "method": "initialize", "params": {}}))).await;
    assert!(actor.reply("m1").await["response"]["mcp_response"]["result"]["serverInfo"].is_object());
    // A message that wants no answer comes in a request that does.
    actor.request("m2", mcp(json!({"method": "notifications/initialized"}))).await;
    assert_eq!(actor.reply("m2").await["subtype"], "success");
    actor.request("m3", mcp(json!({"id": 1, "method": "tools/list"}))).await;
    assert_eq!(actor.reply("m3").await["response"]["mcp_response"]["result"]["tools"][0]["name"], "current_time");
    let call = |id: u32, name: &str, arguments: Value| {
        let meta = json!({"claudecode/toolUseId": "toolu_9"});
        mcp(json!({"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta}}))
    };
    actor.request("m4", call(2, "current_time", json!({}))).await;
    let time = actor.reply("m4").await["response"]["mcp_response"]["result"]["content"][0]["text"].clone();
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");

    actor.request("m5", call(3, "ask_user", json!({"question": "Which?"}))).await;
    let TurnEvent::Approval { id, tool_use_id, name, is_question, .. } = (loop {
        let event = running.event().await;
        if matches!(event, TurnEvent::Approval { .. }) {
            break event;
        }
    }) else {
        panic!()
    };
    assert_eq!((tool_use_id.as_deref(), name.as_str(), is_question), (Some("toolu_9"), "ask_user", true));
    let input = Some(json!({"answer": "the left one"}));
    running.tell(TurnCommand::Answer { approval: id, decision: Decision::Allow, input }).await;
    let answer = actor.reply("m5").await["response"]["mcp_response"].clone();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(3), &json!("the left one")));

    actor.request("m6", json!({"subtype": "mcp_message", "server_name": "other", "message": {}})).await;
    assert_eq!(actor.reply("m6").await["subtype"], "error");
    actor.result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_question_of_a_host_tool_is_forgotten() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("ask"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    let params = json!({"name": "ask_user", "arguments": {"question": "Which?"}});
    actor.request("m1", mcp(json!({"id": 7, "method": "tools/call", "params": params}))).await;
    let (approval, ..) = running.approval().await;
    actor.request("m2", mcp(json!({"method": "notifications/cancelled", "params": {"requestId": 7}}))).await;
    assert_eq!(actor.reply("m2").await["subtype"], "success");
    assert_eq!(running.event().await, TurnEvent::Withdrawn { id: approval });
    running.tell(TurnCommand::Answer { approval, decision: Decision::Allow, input: None }).await;
    running.tell(TurnCommand::Interrupt).await;
    actor.be_interrupted(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_denies_is_denied_even_where_the_program_would_not_ask() {
    let theatre = Theatre::new(1, 0);
    let mut request = theatre.request("read it");
    request.place.agent.spec.tools = ToolPolicy { deny: vec!["Read".into()], ..ToolPolicy::default() };
    let running = theatre.begin(request);
    let mut actor = theatre.actor().await;
    let hooks = actor.greet().await["request"]["hooks"]["PreToolUse"][0].clone();
    let prompt = actor.prompt().await;
    for (tool, decision) in [("Read", json!("deny")), ("Write", Value::Null)] {
        let input = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}});
        let callback = hooks["hookCallbackIds"][0].clone();
        actor.request("h1", json!({"subtype": "hook_callback", "callback_id": callback, "input": input})).await;
        let reply = actor.reply("h1").await;
        assert_eq!(reply["response"]["hookSpecificOutput"]["permissionDecision"], decision, "{tool}");
    }
    actor.result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_here_is_declined_never_left_open() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("x"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    let form = json!({"subtype": "elicitation", "mcp_server_name": "shop", "message": "Your name?"});
    actor.request("e1", form).await;
    assert_eq!(actor.reply("e1").await["response"]["action"], "decline");
    actor.request("d1", json!({"subtype": "request_user_dialog", "dialog_kind": "new"})).await;
    assert_eq!(actor.reply("d1").await["subtype"], "error");
    actor.result(&prompt, json!({})).await;
    let (_, events) = running.both().await;
    let told = |event: &TurnEvent| match event {
        TurnEvent::Status { status, message } => status == "elicitation_declined" && message.contains("shop"),
        _ => false,
    };
    assert!(events.iter().any(told), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_leaves_the_process_fit_for_the_next_turn() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("slow"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.stream(&["one ", "two "]).await;
    while !matches!(running.event().await, TurnEvent::Text { delta, .. } if delta == "two ") {}
    running.tell(TurnCommand::Interrupt).await;
    let interrupt = actor.hear().await;
    actor.stream(&["too late"]).await;
    actor.agree(&interrupt).await;
    actor.stop(&prompt).await;
    let (outcome, events) = running.both().await;
    assert_eq!((outcome.end, outcome.kept, said(&events).as_str()), (TurnEnd::Stopped, Kept::PromptAndAnswer, ""));
    assert_eq!((outcome.receipt.processes, outcome.receipt.signals), (0, vec!["interrupt".to_owned()]));
    // The result says nothing of what was used; the stream did.
    let used = |event: &TurnEvent| matches!(event, TurnEvent::Usage { usage, .. } if usage.input_tokens == 20);
    assert!(events.iter().any(used), "{events:?}");

    let next = theatre.begin(theatre.resuming("go on"));
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "three").await;
    let (outcome, events) = next.both().await;
    assert_eq!((outcome.end, said(&events).as_str()), (TurnEnd::Completed, "three"));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_that_comes_too_late_does_not_hit_the_next_turn() {
    for is_answered in [true, false] {
        let theatre = Theatre::new(1, 0);
        let mut running = theatre.begin(theatre.request("x"));
        let mut actor = theatre.actor().await;
        actor.greet().await;
        let prompt = actor.prompt().await;
        actor.stream(&["done"]).await;
        while !matches!(running.event().await, TurnEvent::Text { .. }) {}
        running.tell(TurnCommand::Interrupt).await;
        let interrupt = actor.hear().await;
        // It had finished before it heard of it.
        actor.result(&prompt, json!({"result": "done"})).await;
        if is_answered {
            actor.agree(&interrupt).await;
        }
        assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
        // One that may still act on it is not used again.
        assert_eq!(theatre.alive(), usize::from(is_answered));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_is_stopped_by_force() {
    for answers in [false, true] {
        let theatre = Theatre::new(1, 0);
        let mut running = theatre.begin(theatre.request("slow"));
        let mut actor = theatre.actor().await;
        actor.greet().await;
        actor.prompt().await;
        actor.stream(&["one"]).await;
        while !matches!(running.event().await, TurnEvent::Text { .. }) {}
        running.tell(TurnCommand::Interrupt).await;
        let interrupt = actor.hear().await;
        if answers {
            // It says that it stops, but no result follows.
            actor.agree(&interrupt).await;
        }
        let began = tokio::time::Instant::now();
        let (outcome, events) = running.both().await;
        assert!(began.elapsed() <= Duration::from_secs(4));
        assert_eq!((outcome.end, outcome.kept), (TurnEnd::Stopped, Kept::Prompt));
        assert_eq!(
            (outcome.receipt.processes, outcome.receipt.signals),
            (1, vec!["interrupt".to_owned(), "term".to_owned()])
        );
        assert!(events.iter().any(|event| matches!(event, TurnEvent::Usage { .. })), "{events:?}");
        assert_eq!(theatre.alive(), 0);
        assert!(actor.is_let_go().await);
    }
}

#[tokio::test(start_paused = true)]
async fn when_nobody_listens_it_is_interrupted() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("slow"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    drop(running.events);
    actor.be_interrupted(&prompt).await;
    assert_eq!(running.turn.await.unwrap().end, TurnEnd::Stopped);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn invariant_10_isolation_a_slow_reader_slows_the_program_and_can_still_stop_it() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin_with_room_for(1, theatre.request("slow"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    actor.prompt().await;
    let long = "x".repeat(10_000);
    let flood = async {
        for _ in 0..1000 {
            actor.stream(&[long.as_str()]).await;
        }
    };
    // Nobody reads, so it cannot say it all; how much it can is what fits into the pipe.
    tokio::time::timeout(Duration::from_secs(1), flood).await.unwrap_err();
    running.tell(TurnCommand::Interrupt).await;
    while running.event().await != (TurnEvent::Session { id: SESSION.into() }) {}
    let (outcome, _) = running.both().await;
    assert_eq!(outcome.end, TurnEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn it_cannot_be_steered_and_says_so() {
    let theatre = Theatre::new(1, 0);
    let mut running = theatre.begin(theatre.request("x"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    let message = MessageId::generate();
    assert_eq!(running.event().await, TurnEvent::Session { id: SESSION.into() });
    running.tell(TurnCommand::Steer { message, text: "left".into() }).await;
    assert_eq!(running.event().await, TurnEvent::Steered { message, taken: false });
    actor.result(&prompt, json!({})).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_to_nobody_is_not_taken_for_the_answer() {
    let theatre = Theatre::new(1, 0);
    let mut actor = theatre.warmed().await;
    // The program talks to itself between turns, and is not done when the next prompt comes.
    actor.stream(&["mumble"]).await;
    let running = theatre.begin(theatre.resuming("go on"));
    let prompt = actor.hear().await;
    let state = |state: &str| json!({"type": "command_lifecycle", "command_uuid": prompt["uuid"], "state": state});
    actor.say(state("queued")).await;
    actor.stream(&["mumble on"]).await;
    actor.say(json!({"type": "result", "subtype": "success", "is_error": false, "result": "mumble on"})).await;
    actor.say(state("started")).await;
    actor.say(json!({"type": "system", "subtype": "init", "session_id": SESSION})).await;
    actor.answer(&prompt, "Yes").await;
    let (outcome, events) = running.both().await;
    assert_eq!((outcome.end, said(&events).as_str()), (TurnEnd::Completed, "Yes"));
}
