//! Whole turns through the `Provider` trait, on a paused clock.

use super::ScriptedProvider;
use crate::{
    AgentWorkspace, Capabilities, Provider, ProviderEvent, TurnChannel, TurnCommand, TurnEnd, TurnEvent, TurnFuture,
    TurnRequest,
};
use domain::{
    agent::{Agent, AgentSpec, ToolPolicy},
    event::Decision,
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    limits::LimitOverrides,
    name::Name,
    run::RunError,
    time::Timestamp,
    usage::{Cost, Usage},
};
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::Instant,
};

fn start(prompt: &str, capacity: usize) -> (TurnFuture, Receiver<ProviderEvent>, Sender<TurnCommand>) {
    let spec = AgentSpec {
        name: Name::parse("echo").unwrap(),
        provider: "scripted".into(),
        model: None,
        system_prompt: None,
        skills: vec![],
        skill_parameters: std::collections::BTreeMap::new(),
        mcp_servers: vec![],
        tools: ToolPolicy::default(),
        limits: LimitOverrides::default(),
        model_options: None,
    };
    let born = Timestamp::from_millis(0);
    let request = TurnRequest {
        run_id: RunId::generate(),
        workspace: AgentWorkspace {
            owner: domain::owner::Owner::local(),
            room_id: RoomId::generate(),
            agent: Agent { id: AgentId::generate(), spec, created_at: born, updated_at: born },
            folder: PathBuf::new(),
            space: std::sync::Arc::new(domain::project::ProjectSpace::scratch(
                domain::owner::Owner::local(),
                RoomId::generate(),
                PathBuf::new(),
            )),
            home: PathBuf::new(),
            sandbox: None,
            servers_sandbox: None,
            skills: Vec::new(),
            mcp_servers: Vec::new(),
            host_tools: crate::host_tools::HostTools::new(crate::host_tools::tools::all()).unwrap(),
            provider_settings: Default::default(),
            has_company: false,
            depth: 0,
        },
        prompt: prompt.into(),
        attachments: Vec::new(),
        later: crate::LaterMessages::default(),
        history: vec![].into(),
        session: None,
        meter: crate::gateway::RunMeter::default(),
    };
    let (events, receiver) = channel(capacity);
    let (sender, commands) = channel(4);
    (ScriptedProvider.turn(request, TurnChannel { events, commands, keeps_raw: false }), receiver, sender)
}

async fn all(mut events: Receiver<ProviderEvent>) -> Vec<ProviderEvent> {
    let mut seen = vec![];
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    seen
}

async fn play(prompt: &str) -> (Vec<ProviderEvent>, TurnEnd) {
    let (turn, events, _commands) = start(prompt, 16);
    let (outcome, events) = tokio::join!(turn, all(events));
    (events, outcome.end)
}

fn text_of(events: &[ProviderEvent]) -> String {
    let deltas = events.iter().filter_map(|reported| match &reported.event {
        TurnEvent::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    deltas.collect()
}

fn usage(input: u64, output: u64) -> TurnEvent {
    TurnEvent::Usage {
        usage: Usage { input_tokens: input, output_tokens: output, ..Usage::default() },
        model: Some("scripted".into()),
        cost: Some(Cost::ZERO),
    }
}

#[test]
fn reports_its_capabilities() {
    let can = Capabilities { steer: true, approvals: true, thinking: true, ..Capabilities::default() };
    assert_eq!((ScriptedProvider.name(), ScriptedProvider.capabilities()), ("scripted", can));
}

#[tokio::test(start_paused = true)]
async fn plain_answer_is_sent_word_by_word_and_deterministic() {
    let (events, end) = play("hello  there,\nfriend").await;
    assert_eq!(end, TurnEnd::Completed);
    assert_eq!(
        text_of(&events),
        "You said “hello there, friend”. I am the scripted agent: I need no model and no key. Try !count 20 100"
    );
    assert_eq!(events[0].event, TurnEvent::ModelCall);
    assert_eq!(events[1].event, TurnEvent::Text { delta: "You".into(), item: None });
    assert_eq!(events[2].event, TurnEvent::Text { delta: " said".into(), item: None });
    assert_eq!(events.last().unwrap().event, usage(3, 21));
    assert_eq!(play("hello  there,\nfriend").await.0, events);
}

#[tokio::test(start_paused = true)]
async fn plain_sentence_stands_for_a_directive() {
    let expected = play("!count 60 100").await;
    for sentence in ["Count to 60", " count to 60! ", "Zähle bis 60."] {
        assert_eq!(text_of(&play(sentence).await.0), text_of(&expected.0), "{sentence}");
    }
    for sentence in ["Look at the clock.", "Think about why the sky is blue.", "List the files in this folder."] {
        assert!(super::directive::parse(sentence).unwrap().len() > 1, "{sentence}");
    }
    assert!(matches!(
        super::directive::parse("Ask me which color I like.").unwrap()[0],
        super::directive::ScriptStep::Ask { is_question: true, .. }
    ));
    assert!(text_of(&play("Count to 61").await.0).starts_with("You said"));
}

#[tokio::test(start_paused = true)]
async fn counts() {
    let (events, end) = play("!count 3").await;
    assert_eq!((text_of(&events).as_str(), end), ("1 2 3", TurnEnd::Completed));
    assert_eq!(events.last().unwrap().event, usage(2, 3));
    assert_eq!(events.len(), 5);

    let (events, _) = play("!count 20000 0").await;
    let expected: Vec<_> = (1..=20_000).map(|n| n.to_string()).collect();
    assert_eq!(text_of(&events), expected.join(" "));
    assert!(events.iter().all(|reported| reported.raw.is_none()));
}

#[tokio::test(start_paused = true)]
async fn slow_reader_does_not_shift_the_timing() {
    let (turn, mut events, _commands) = start("!count 6 100", 1);
    let started = Instant::now();
    let read = async {
        let mut times = vec![];
        while let Some(reported) = events.recv().await {
            if matches!(reported.event, TurnEvent::Text { .. }) {
                times.push(started.elapsed().as_millis());
                tokio::time::sleep(Duration::from_millis(70)).await;
            }
        }
        times
    };
    let (_, times) = tokio::join!(turn, read);
    assert_eq!(times, [0, 100, 200, 300, 400, 500]);
}

#[tokio::test(start_paused = true)]
async fn thinks_then_answers() {
    let (events, end) = play("!think one  two\nthree").await;
    let thought: Vec<_> = events
        .iter()
        .filter_map(|reported| match &reported.event {
            TurnEvent::Thinking { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, ["one", "  two", "\nthree"]);
    assert_eq!((text_of(&events).as_str(), end), ("I thought about it, in 3 words.", TurnEnd::Completed));
}

#[tokio::test(start_paused = true)]
async fn uses_a_tool() {
    let (events, end) = play(r#"!tool look {"at":"this"}"#).await;
    let input = json!({"at": "this"});
    assert_eq!(events[1].event, TurnEvent::ToolUse { id: "call_1".into(), name: "look".into(), input: input.clone() });
    assert!(events[2..5].iter().all(|reported| matches!(reported.event, TurnEvent::ToolOutput { .. })));
    assert_eq!(events[5].event, TurnEvent::ToolResult { id: "call_1".into(), content: input.clone(), is_error: false });
    for (at, kind) in [(1, "tool_use"), (5, "tool_result")] {
        let raw: Value = serde_json::from_str(events[at].raw.as_deref().unwrap()).unwrap();
        assert_eq!(raw["type"], kind);
    }
    assert_eq!((text_of(&events).as_str(), end), ("I used look.", TurnEnd::Completed));
}

/// Answers the approval of `prompt`, after an answer to an unknown approval.
async fn decide(prompt: &str, decision: Decision, input: Option<Value>) -> (Vec<ProviderEvent>, TurnEnd) {
    let (turn, mut events, commands) = start(prompt, 16);
    let answer = async {
        let mut seen = vec![];
        while let Some(reported) = events.recv().await {
            if let TurnEvent::Approval { id, .. } = reported.event {
                let other = ApprovalId::generate();
                let stray = TurnCommand::ResolveApproval { approval: other, decision: Decision::Deny, input: None };
                commands.send(stray).await.unwrap();
                commands
                    .send(TurnCommand::ResolveApproval { approval: id, decision, input: input.clone() })
                    .await
                    .unwrap();
            }
            seen.push(reported);
        }
        seen
    };
    let (outcome, events) = tokio::join!(turn, answer);
    (events, outcome.end)
}

#[tokio::test(start_paused = true)]
async fn tool_result_follows_the_decision() {
    let changed = json!({"cmd": "ls"});
    let table = [
        (Decision::Allow, None, json!({"cmd": "rm"}), false, "allowed"),
        (Decision::Allow, Some(changed.clone()), changed, false, "allowed"),
        (Decision::Deny, None, json!("denied"), true, "denied"),
        (Decision::Expired, None, json!("expired"), true, "expired"),
    ];
    for (decision, input, content, is_error, text) in table {
        let (events, end) = decide(r#"!ask Bash {"cmd":"rm"}"#, decision, input).await;
        let TurnEvent::Approval { tool_use_id, name, input, .. } = &events[2].event else { panic!("{events:?}") };
        assert_eq!((tool_use_id.as_deref(), name.as_str(), input), (Some("call_1"), "Bash", &json!({"cmd": "rm"})));
        assert!(events[2].raw.is_some());
        assert_eq!(events[3].event, TurnEvent::ToolResult { id: "call_1".into(), content, is_error });
        assert_eq!((text_of(&events).as_str(), end), (text, TurnEnd::Completed));
    }
}

#[tokio::test(start_paused = true)]
async fn fails_after_some_text_and_without_usage() {
    let (events, end) = play("!fail over_loaded Come back later").await;
    assert_eq!(end, TurnEnd::Failed(RunError::new("over_loaded", "Come back later")));
    assert_eq!(text_of(&events), "I am about to fail.");
    assert!(!events.iter().any(|reported| matches!(reported.event, TurnEvent::Usage { .. })));
}

#[tokio::test(start_paused = true)]
async fn malformed_directive_fails_the_turn() {
    let (events, end) = play("!count many").await;
    let TurnEnd::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!(error.code, "bad_directive");
    assert!(error.message.contains("usage: !count N [MS]"), "{}", error.message);
    assert_eq!(events, [TurnEvent::ModelCall.into()]);
}

#[tokio::test(start_paused = true)]
async fn flood_has_the_exact_size() {
    let (events, end) = play("!flood 2500").await;
    let text = text_of(&events);
    assert_eq!((text.len(), end), (2500, TurnEnd::Completed));
    assert!(text.is_ascii() && text.starts_with("abc"));
    assert_eq!(events.len(), 5, "three deltas between the call and the usage");
    assert_eq!(text_of(&play("!flood 1").await.0), "a");
    assert_eq!(text[..1024], text[1024..2048]);
}

#[tokio::test(start_paused = true)]
async fn plays_a_script_on_time() {
    let started = Instant::now();
    let (events, end) = play(
        r#"!script [{"session":"s1"}, {"text":"a","item":"1"}, {"after_ms":250,"retract":"1"}, {"model_call":true},
                    {"after_ms":250,"text":"b"}, {"usage":{"output_tokens":7,"model":"gpt-5"}}]"#,
    )
    .await;
    assert_eq!(started.elapsed().as_millis(), 500);
    let reported = TurnEvent::Usage {
        usage: Usage { output_tokens: 7, ..Usage::default() },
        model: Some("gpt-5".into()),
        cost: None,
    };
    let expected = [
        TurnEvent::ModelCall,
        TurnEvent::Session { id: "s1".into() },
        TurnEvent::Text { delta: "a".into(), item: Some("1".into()) },
        TurnEvent::Retract { item: "1".into() },
        TurnEvent::ModelCall,
        TurnEvent::Text { delta: "b".into(), item: None },
        reported,
    ];
    assert_eq!(events.into_iter().map(|reported| reported.event).collect::<Vec<_>>(), expected);
    assert_eq!(end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn script_may_skip_and_may_ask() {
    let (events, end) = play(r#"!script [{"skip":true}]"#).await;
    assert_eq!((events.len(), end), (2, TurnEnd::Skipped));
    assert_eq!(events[1].event, usage(2, 0));

    let script = r#"!script [{"tool_use":{"id":"t","name":"x"}},{"approval":{"id":"t","name":"x"}},{"text":"on"}]"#;
    let (events, _) = decide(script, Decision::Deny, None).await;
    assert_eq!(events[3].event, TurnEvent::ToolResult { id: "t".into(), content: json!("denied"), is_error: true });
    assert_eq!(text_of(&events), "on");
}

/// Where a turn can wait: the prompt, the channel's capacity, and the number of events before the wait.
const WAITS: [(&str, usize, usize); 6] = [
    ("!count 10 60000", 16, 2),
    (r#"!script [{"text":"a"},{"after_ms":600000,"text":"b"}]"#, 16, 2),
    ("!flood 1000000", 1, 3),
    ("!ask", 16, 3),
    ("!hang", 16, 2),
    // Never waits: it must handle commands while it runs.
    ("!count 10000000", 16, 1000),
];

#[tokio::test(start_paused = true)]
async fn interrupt_stops_every_wait() {
    for (prompt, capacity, before) in WAITS {
        let (turn, mut events, commands) = start(prompt, capacity);
        let started = Instant::now();
        let interrupt = async {
            for _ in 0..before {
                events.recv().await.unwrap();
            }
            // Lets it run until it waits, or until the channel is full.
            tokio::task::yield_now().await;
            commands.send(TurnCommand::Interrupt).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(turn, interrupt);
        assert_eq!(outcome.end, TurnEnd::Stopped, "{prompt}");
        assert!(started.elapsed() < Duration::from_secs(1), "{prompt}: {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn closed_receiver_stops_every_wait() {
    for (prompt, capacity, before) in WAITS {
        let (turn, mut events, _commands) = start(prompt, capacity);
        let started = Instant::now();
        let leave = async move {
            for _ in 0..before {
                events.recv().await.unwrap();
            }
            tokio::task::yield_now().await;
            drop(events);
        };
        let (outcome, ()) = tokio::join!(turn, leave);
        assert_eq!(outcome.end, TurnEnd::Stopped, "{prompt}");
        assert!(started.elapsed() < Duration::from_secs(1), "{prompt}: {:?}", started.elapsed());
    }
}

/// In every kind of wait, and without one.
#[tokio::test(start_paused = true)]
async fn steered_message_is_echoed_during_the_answer() {
    let table = [
        ("!count 3 60000", 2, "1 [steered: left] 2 3"),
        ("!count 20000", 2, " [steered: left]"),
        ("!flood 100000", 2, " [steered: left]"),
        (r#"!script [{"text":"a"},{"after_ms":1000,"text":"b"}]"#, 2, "a [steered: left]b"),
        (r#"!script [{"text":"a"}]"#, 1, "a [steered: left]"),
        ("!ask", 3, " [steered: left]"),
        ("!hang", 2, "Hanging [steered: left]"),
    ];
    for (prompt, before, expected) in table {
        let (turn, mut events, commands) = start(prompt, 1);
        let message = MessageId::generate();
        let steer = async {
            let mut seen = Vec::new();
            for _ in 0..before {
                seen.push(events.recv().await.unwrap());
            }
            commands.send(TurnCommand::Steer { message, text: "left".into(), attachments: Vec::new() }).await.unwrap();
            while let Some(reported) = events.recv().await {
                seen.push(reported);
                if matches!(prompt, "!hang" | "!ask") && text_of(&seen).contains("steered") {
                    commands.send(TurnCommand::Interrupt).await.unwrap();
                }
            }
            seen
        };
        let (_, seen) = tokio::join!(turn, steer);
        assert!(text_of(&seen).contains(expected), "{prompt}: {}", text_of(&seen));
        let answers = seen.iter().filter(|reported| matches!(reported.event, TurnEvent::Steered { .. }));
        let answers: Vec<_> = answers.map(|reported| &reported.event).collect();
        assert_eq!(answers, [&TurnEvent::Steered { message, taken: true }], "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn may_stop_slowly_and_send_more_text() {
    let (turn, mut events, commands) = start("!hang 1500", 16);
    let started = Instant::now();
    let interrupt = async {
        events.recv().await.unwrap();
        events.recv().await.unwrap();
        commands.send(TurnCommand::Interrupt).await.unwrap();
        all(events).await
    };
    let (outcome, late) = tokio::join!(turn, interrupt);
    assert_eq!((outcome.end, started.elapsed()), (TurnEnd::Stopped, Duration::from_millis(1500)));
    assert_eq!(text_of(&late), " too late");
}

#[tokio::test(start_paused = true)]
async fn interrupt_before_the_start_sends_no_events() {
    let (turn, events, commands) = start("!count 5", 16);
    commands.send(TurnCommand::Interrupt).await.unwrap();
    let (outcome, events) = tokio::join!(turn, all(events));
    assert_eq!((outcome.end, events), (TurnEnd::Stopped, vec![]));
}

#[tokio::test(start_paused = true)]
async fn closed_command_channel_does_not_stop_a_turn_unless_it_waits_for_an_answer() {
    for (prompt, expected) in [("!count 5 10", TurnEnd::Completed), ("!ask", TurnEnd::Stopped)] {
        let (turn, events, commands) = start(prompt, 16);
        drop(commands);
        let (outcome, _) = tokio::join!(turn, all(events));
        assert_eq!(outcome.end, expected, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn host_tool_is_called_and_its_result_said() {
    let (events, end) = play("!call current_time").await;
    assert_eq!(end, TurnEnd::Completed);
    let result = |reported: &ProviderEvent| match &reported.event {
        TurnEvent::ToolResult { content, is_error, .. } => Some((content.clone(), *is_error)),
        _ => None,
    };
    assert_eq!(events.iter().find_map(result), Some((text_of(&events).into(), false)));
    let (events, _) = play("!call roll_dice {\"sides\":6}").await;
    assert!(text_of(&events).starts_with("there is no tool \"roll_dice\""), "{events:?}");
    assert!(events.iter().find_map(result).unwrap().1);
}

#[tokio::test(start_paused = true)]
async fn host_tool_asks_a_person_and_can_be_stopped() {
    let (turn, mut events, commands) = start("!call ask_user {\"question\":\"Which?\"}", 16);
    let answering = async {
        let id = loop {
            if let TurnEvent::Approval { id, is_question, .. } = events.recv().await.unwrap().event {
                assert!(is_question);
                break id;
            }
        };
        let input = Some(json!({"answer": "that"}));
        commands.send(TurnCommand::ResolveApproval { approval: id, decision: Decision::Allow, input }).await.unwrap();
        all(events).await
    };
    let (outcome, events) = tokio::join!(turn, answering);
    assert_eq!((outcome.end, text_of(&events).as_str()), (TurnEnd::Completed, "that"));

    let (turn, mut events, commands) = start("!call ask_user {\"question\":\"Which?\"}", 16);
    let stopping = async {
        while !matches!(events.recv().await.unwrap().event, TurnEvent::Approval { .. }) {}
        commands.send(TurnCommand::Interrupt).await.unwrap();
        all(events).await
    };
    let (outcome, events) = tokio::join!(turn, stopping);
    assert_eq!((outcome.end, events), (TurnEnd::Stopped, Vec::new()));
}
