//! Inputs and expected effects of the tool loop.

use super::{
    ApprovalMode, LoopEffect, LoopInput, LoopTool, ModelCallPurpose, ToolCallOutcome, ToolLoop, ToolLoopSettings,
};
use crate::{
    TurnEnd, TurnEvent,
    direct::{
        conversation::{AssistantBlock, ModelMessage, ModelToolResult, ToolResultContent},
        wire::{
            AnswerPiece, ModelStopReason,
            failure::{ModelFailure, ModelFailureKind},
        },
    },
};
use domain::{event::Decision, ids::MessageId, usage::Usage};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

fn settings() -> ToolLoopSettings {
    let tool = |manner| LoopTool {
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        approval: manner,
    };
    let tools = [("free", ApprovalMode::NotNeeded), ("asks", ApprovalMode::Required)];
    ToolLoopSettings {
        tools: BTreeMap::from(tools.map(|(name, manner)| (name.to_owned(), tool(manner)))),
        is_xml: false,
        runs_while_streaming: false,
        is_parallel: true,
        context_window: 100_000,
        answer_tokens: 1000,
        fixed_bytes: 0,
        retries: 2,
        key_advice: "Set KEY.".into(),
    }
}

struct LoopTest {
    machine: ToolLoop,
    effects: Vec<LoopEffect>,
}

impl LoopTest {
    fn of(settings: ToolLoopSettings) -> Self {
        Self::with(settings, vec![ModelMessage::User(vec!["do it".into()])])
    }

    fn with(settings: ToolLoopSettings, messages: Vec<ModelMessage>) -> Self {
        let mut test = Self { machine: ToolLoop::new(settings, messages), effects: Vec::new() };
        test.on(LoopInput::Begin);
        test
    }

    fn on(&mut self, input: LoopInput) -> &mut Self {
        self.machine.on(input, &mut self.effects);
        self
    }

    fn say(&mut self, text: &str) -> &mut Self {
        self.on(LoopInput::Piece(AnswerPiece::Text { block: 0, delta: text.into() }))
    }

    fn call(&mut self, block: u32, name: &str, input: &str) -> &mut Self {
        self.on(LoopInput::Piece(AnswerPiece::CallStart { block, id: format!("c{block}"), name: name.into() }));
        self.on(LoopInput::Piece(AnswerPiece::CallInput { block, delta: input.into() }));
        self.on(LoopInput::Piece(AnswerPiece::BlockEnd { block }))
    }

    fn ends(&mut self) -> &mut Self {
        self.on(LoopInput::Piece(AnswerPiece::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() })));
        self.on(LoopInput::Piece(AnswerPiece::Done)).on(LoopInput::AnswerEnded(Ok(())))
    }

    fn fails(&mut self, kind: ModelFailureKind) -> &mut Self {
        self.on(LoopInput::AnswerEnded(Err(ModelFailure::new(kind, "it failed"))))
    }

    fn returns(&mut self, call: &str, text: &str) -> &mut Self {
        self.on(LoopInput::ToolEnded { call: call.into(), outcome: ToolCallOutcome::text(text, false) })
    }

    /// The effects since the last call, abbreviated.
    fn seen(&mut self) -> Vec<String> {
        self.effects.drain(..).map(|effect| short(&effect)).collect()
    }
}

fn short(effect: &LoopEffect) -> String {
    match effect {
        LoopEffect::Emit(TurnEvent::Text { delta, item }) => format!("text {} {delta}", item.as_deref().unwrap_or("-")),
        LoopEffect::Emit(TurnEvent::Retract { item }) => format!("retract {item}"),
        LoopEffect::Emit(TurnEvent::ToolUse { id, name, input }) => format!("use {id} {name} {input}"),
        LoopEffect::Emit(TurnEvent::ToolResult { id, content, is_error }) => {
            format!("result {id} {content} {is_error}")
        }
        LoopEffect::Emit(TurnEvent::Usage { usage, .. }) => format!("usage {}", usage.total()),
        LoopEffect::Emit(TurnEvent::EstimatedUsage { usage, .. }) => {
            format!("estimated {}+{}", usage.input_tokens > 0, usage.output_tokens)
        }
        LoopEffect::Emit(TurnEvent::Status { status, .. }) => format!("status {status}"),
        LoopEffect::Emit(TurnEvent::ModelCall) => "model call".into(),
        LoopEffect::Emit(other) => format!("{other:?}"),
        LoopEffect::CallModel(ModelCallPurpose::Answer) => "ask".into(),
        LoopEffect::CallModel(ModelCallPurpose::Summary) => "ask for a summary".into(),
        LoopEffect::CloseConnection => "hang up".into(),
        LoopEffect::WaitToRetry { attempt, .. } => format!("rest {attempt}"),
        LoopEffect::RequestApproval { call, name, .. } => format!("decide {call} {name}"),
        LoopEffect::RunTool { call, name, input } => format!("run {call} {name} {}", Value::Object(input.clone())),
        LoopEffect::End(TurnEnd::Failed(error)) => format!("failed {}", error.code),
        LoopEffect::End(end) => format!("end {end:?}"),
    }
}

#[test]
fn answer_without_calls_ends_the_turn() {
    let mut test = LoopTest::of(settings());
    assert_eq!(test.seen(), ["model call", "ask"]);
    test.say("Hel").say("lo").ends();
    assert_eq!(test.seen(), ["text 1.0 Hel", "text 1.0 lo", "usage 15", "hang up", "end Completed"]);
    test.say("more");
    assert!(test.seen().is_empty(), "nothing follows the end");
}

#[test]
fn call_is_approved_run_and_its_result_sent_to_the_model() {
    let mut test = LoopTest::of(settings());
    test.seen();
    test.say("So. ").call(1, "asks", r#"{"path":"a"}"#).ends();
    let expected = ["text 1.0 So. ", "use c1 asks {\"path\":\"a\"}", "usage 15", "decide c1 asks"];
    assert_eq!(test.seen(), expected);
    test.on(LoopInput::Decided { call: "c1".into(), decision: Decision::Allow, input: None });
    assert_eq!(test.seen(), ["run c1 asks {\"path\":\"a\"}"]);
    test.returns("c1", "content of a");
    assert_eq!(test.seen(), ["result c1 \"content of a\" false", "model call", "ask"]);
    let [_, ModelMessage::Assistant(said), ModelMessage::ToolResults(results)] = test.machine.messages() else {
        panic!()
    };
    assert!(matches!(&said[..], [AssistantBlock::Text(_), AssistantBlock::ToolCall(call)] if call.id == "c1"));
    assert_eq!(results[0].content, [ToolResultContent::Text("content of a".into())]);
    test.say("Done.").ends();
    assert_eq!(test.seen(), ["text 2.0 Done.", "usage 15", "hang up", "end Completed"]);
}

#[test]
fn person_may_change_the_input_deny_or_not_answer() {
    for (decision, input, seen) in [
        (Decision::Allow, Some(json!({"path": "b"})), "run c1 asks {\"path\":\"b\"}"),
        (
            Decision::Deny,
            None,
            "result c1 \"This call was not allowed. Do not try it again; do without it, or ask the people in the room.\" true",
        ),
        (Decision::Expired, None, "result c1 \"Nobody allowed this call in time; it was not run.\" true"),
    ] {
        let mut test = LoopTest::of(settings());
        test.call(1, "asks", r#"{"path":"a"}"#).ends().seen();
        test.on(LoopInput::Decided { call: "c1".into(), decision, input });
        assert_eq!(test.seen()[0], seen);
    }
}

#[test]
fn calls_run_in_parallel_or_in_sequence() {
    let mut test = LoopTest::of(settings());
    test.call(0, "free", "{}").call(1, "free", "").ends();
    assert_eq!(&test.seen()[5..], ["run c0 free {}", "run c1 free {}"]);
    test.returns("c1", "b");
    assert_eq!(test.seen(), ["result c1 \"b\" false"], "waits for the other call");
    test.returns("c0", "a");
    let Some(ModelMessage::ToolResults(results)) = test.machine.messages().last() else { panic!() };
    assert_eq!((results[0].call_id.as_str(), results[1].call_id.as_str()), ("c0", "c1"), "in the order of the calls");

    let mut test = LoopTest::of(ToolLoopSettings { is_parallel: false, ..settings() });
    test.call(0, "free", "{}").call(1, "asks", "").ends();
    assert_eq!(&test.seen()[5..], ["run c0 free {}"]);
    test.returns("c0", "a");
    assert_eq!(test.seen(), ["result c0 \"a\" false", "decide c1 asks"]);
}

#[test]
fn call_may_run_while_the_answer_streams() {
    let mut test = LoopTest::of(ToolLoopSettings { runs_while_streaming: true, ..settings() });
    test.seen();
    test.call(0, "free", "{}");
    assert_eq!(test.seen(), ["use c0 free {}", "run c0 free {}"]);
    test.returns("c0", "early");
    assert_eq!(test.seen(), ["result c0 \"early\" false"], "the answer has not ended");
    test.say("and more").ends();
    assert_eq!(test.seen(), ["text 1.0 and more", "usage 15", "model call", "ask"]);
}

#[test]
fn malformed_and_unknown_calls_return_errors() {
    let mut test = LoopTest::of(settings());
    test.seen();
    test.call(0, "free", "{not json").call(1, "nothing", "{}").ends();
    let seen = test.seen();
    assert!(seen[0].starts_with("use c0 free {\"malformed\":\"{not json\"}"), "{seen:?}");
    assert!(
        seen[3].starts_with("result c0 \"The call was not understood: its arguments are not a JSON object"),
        "{seen:?}"
    );
    assert!(seen[4].starts_with("result c1 \"There is no tool \\\"nothing\\\"; there are: asks, free."), "{seen:?}");
    assert_eq!(&seen[5..], ["model call", "ask"]);
}

#[test]
fn transient_failure_is_retried_and_the_partial_answer_retracted() {
    let mut test = LoopTest::of(settings());
    test.seen();
    test.say("half an ans").fails(ModelFailureKind::Overloaded);
    assert_eq!(test.seen(), ["text 1.0 half an ans", "estimated true+4", "retract 1.0", "rest 1"]);
    test.on(LoopInput::RetryDue);
    assert_eq!(test.seen(), ["ask"], "retries count as one model call");
    test.fails(ModelFailureKind::RateLimited).on(LoopInput::RetryDue).say("half").fails(ModelFailureKind::Disconnected);
    let seen = test.seen();
    assert_eq!(
        seen,
        ["rest 2", "ask", "text 3.0 half", "estimated true+2", "hang up", "failed model_cut_off"],
        "the last partial answer stays"
    );
}

#[test]
fn success_resets_the_retry_count() {
    let mut test = LoopTest::of(settings());
    test.fails(ModelFailureKind::ServerError)
        .on(LoopInput::RetryDue)
        .call(0, "free", "")
        .ends()
        .returns("c0", "x")
        .seen();
    test.fails(ModelFailureKind::ServerError);
    assert_eq!(test.seen(), ["rest 1"]);
}

#[test]
fn permanent_failure_is_not_retried() {
    for (kind, code) in
        [(ModelFailureKind::Authentication, "authentication_failed"), (ModelFailureKind::Refused, "model_refused")]
    {
        let mut test = LoopTest::of(settings());
        test.seen();
        test.fails(kind);
        assert_eq!(test.seen(), ["hang up".to_owned(), format!("failed {code}")]);
    }
    let mut test = LoopTest::of(settings());
    let wait = Some(Duration::from_secs(3600));
    test.on(LoopInput::AnswerEnded(Err(ModelFailure {
        retry_after: wait,
        ..ModelFailure::new(ModelFailureKind::RateLimited, "come back in an hour")
    })));
    assert_eq!(test.seen().last().unwrap(), "failed model_rate_limited", "a long Retry-After fails the turn");
}

#[test]
fn invariant_12_no_blind_repeat_a_call_that_ran_is_not_repeated_after_a_disconnect() {
    let mut test = LoopTest::of(ToolLoopSettings { runs_while_streaming: true, ..settings() });
    test.say("So. ").call(1, "free", "{}").seen();
    test.on(LoopInput::Piece(AnswerPiece::CallStart { block: 2, id: "c2".into(), name: "free".into() }));
    test.fails(ModelFailureKind::Disconnected);
    assert_eq!(test.seen(), ["estimated true+5", "status resumed"], "the incomplete call does not count");
    test.returns("c1", "done once");
    assert_eq!(test.seen(), ["result c1 \"done once\" false", "model call", "ask"]);

    let mut test = LoopTest::of(settings());
    test.call(1, "free", "{}").seen();
    test.fails(ModelFailureKind::Disconnected);
    let seen = test.seen();
    assert_eq!((seen[0].as_str(), seen[2].as_str()), ("estimated true+2", "rest 1"), "{seen:?}");
    assert!(seen[1].starts_with("result c1 \"not run"), "{seen:?}");
}

#[test]
fn repeated_calls_are_warned_about_and_then_end_the_turn() {
    let mut test = LoopTest::of(settings());
    let mut warned = 0;
    for round in 0..8 {
        test.on(LoopInput::Piece(AnswerPiece::CallStart { block: 0, id: "same".into(), name: "free".into() }));
        test.on(LoopInput::Piece(AnswerPiece::BlockEnd { block: 0 })).ends();
        let run = test.seen().into_iter().find(|seen| seen.starts_with("run ")).unwrap();
        let id = run.split(' ').nth(1).unwrap().to_owned();
        assert!(round == 0 || id != "same", "ids are unique: {id}");
        test.returns(&id, "nothing new");
        if let Some(ModelMessage::ToolResults(results)) = test.machine.messages().last() {
            warned += usize::from(results[0].text().contains("Do something else"));
        }
    }
    assert_eq!(test.seen().last().unwrap(), "failed no_progress");
    assert!(warned >= 3);
}

#[test]
fn xml_calls_are_typed_by_the_schema_and_hidden() {
    let mut test = LoopTest::of(ToolLoopSettings { is_xml: true, ..settings() });
    test.seen();
    for piece in [
        "Look: <func",
        "tion_calls>\n<invoke name=\"free\">\n<parameter name=\"path\">12",
        "</parameter><parameter name=\"n\">12</parameter>\n</invoke>\n",
    ] {
        test.say(piece);
    }
    test.ends();
    let expected = [
        "text 1.0 Look: ",
        "use call_1_0 free {\"n\":12,\"path\":\"12\"}",
        "usage 15",
        "run call_1_0 free {\"n\":12,\"path\":\"12\"}",
    ];
    assert_eq!(test.seen(), expected);
}

#[test]
fn steered_message_is_added_to_the_turn() {
    let mut test = LoopTest::of(settings());
    test.seen();
    let message = MessageId::generate();
    test.say("a").on(LoopInput::Steer { message, parts: vec!["also b".into()] }).ends();
    let seen = test.seen();
    assert!(seen[1].starts_with("Steered"), "{seen:?}");
    assert_eq!(&seen[2..], ["usage 15", "model call", "ask"]);
    assert_eq!(test.machine.messages().last(), Some(&ModelMessage::User(vec!["also b".into()])));
}

#[test]
fn stop_reports_usage() {
    let mut test = LoopTest::of(settings());
    test.on(LoopInput::Piece(AnswerPiece::Usage(Usage { input_tokens: 7, ..Usage::default() }))).seen();
    test.on(LoopInput::Stop);
    assert_eq!(test.seen(), ["usage 7", "hang up", "end Stopped"]);
}

#[test]
fn what_an_api_does_not_report_about_a_cut_answer_is_estimated() {
    // Nothing was reported: the prompt and the text are estimated.
    let mut test = LoopTest::of(settings());
    test.say("123456").seen();
    test.on(LoopInput::Stop);
    assert_eq!(test.seen(), ["estimated true+2", "hang up", "end Stopped"]);
    // Stopped before the first byte: the vendor may bill the prompt.
    let mut test = LoopTest::of(settings());
    test.seen();
    test.on(LoopInput::Stop);
    assert_eq!(test.seen(), ["estimated true+0", "hang up", "end Stopped"]);
    // The prompt was reported with a first count of the output; the text is longer.
    let mut test = LoopTest::of(settings());
    let first = Usage { input_tokens: 7, output_tokens: 1, ..Usage::default() };
    test.on(LoopInput::Piece(AnswerPiece::Usage(first))).say("123456").seen();
    test.on(LoopInput::Stop);
    assert_eq!(test.seen()[0], "estimated true+3");
    // An error instead of an answer costs nothing; a connection that is lost in the middle does.
    let mut test = LoopTest::of(settings());
    test.seen();
    assert!(!test.fails(ModelFailureKind::Refused).seen().iter().any(|seen| seen.starts_with("estimated")));
    let mut test = LoopTest::of(settings());
    test.say("123456").seen();
    assert_eq!(test.fails(ModelFailureKind::Disconnected).seen()[0], "estimated true+2");
}

#[test]
fn truncated_and_empty_answers_are_reported() {
    let mut test = LoopTest::of(settings());
    test.seen();
    test.say("a").on(LoopInput::Piece(AnswerPiece::Stop(ModelStopReason::Length))).ends();
    assert_eq!(test.seen()[2], "status max_output_tokens");
    let mut test = LoopTest::of(settings());
    test.ends();
    assert!(test.seen().contains(&"status empty_answer".to_owned()));
}

fn long_history(exchanges: usize) -> Vec<ModelMessage> {
    let mut messages = Vec::new();
    for number in 0..exchanges {
        messages.push(ModelMessage::User(vec![format!("question {number} {}", "x".repeat(3000)).into()]));
        messages.push(ModelMessage::Assistant(vec![AssistantBlock::Text(format!("answer {number}"))]));
    }
    messages.push(ModelMessage::User(vec!["the question now".into()]));
    messages
}

#[test]
fn long_conversation_is_replaced_by_a_summary() {
    let small = ToolLoopSettings { context_window: 10_000, ..settings() };
    let mut test = LoopTest::with(small, long_history(10));
    assert_eq!(test.seen(), ["model call", "ask for a summary"]);
    let [ModelMessage::User(asked)] = test.machine.messages() else {
        panic!("the summary request contains one message")
    };
    let asked = asked[0].as_text();
    assert!(asked.contains("question 0") && !asked.contains("the question now"));
    test.say("They talked.").ends();
    let seen = test.seen();
    assert_eq!(&seen[..3], ["usage 15", "status compacted", "model call"]);
    let messages = test.machine.messages();
    assert!(matches!(&messages[0], ModelMessage::User(texts) if texts[0].as_text().contains("They talked.")));
    assert_eq!(messages.last(), Some(&ModelMessage::User(vec!["the question now".into()])));
    test.say("So.").ends();
    assert_eq!(test.seen().last().unwrap(), "end Completed");
}

#[test]
fn failed_summary_is_replaced_by_a_note() {
    let mut test =
        LoopTest::with(ToolLoopSettings { context_window: 10_000, retries: 0, ..settings() }, long_history(10));
    test.seen();
    test.fails(ModelFailureKind::ServerError);
    assert_eq!(test.seen(), ["status compacted", "model call", "ask"]);
    let ModelMessage::User(texts) = &test.machine.messages()[0] else { panic!() };
    assert!(texts[0].as_text().contains("earlier messages are left out"));
}

#[test]
fn old_results_are_dropped_first_and_the_task_is_kept() {
    let result = |text: &str| {
        ModelMessage::ToolResults(vec![ModelToolResult {
            call_id: "c".into(),
            name: "free".into(),
            content: vec![ToolResultContent::Text(text.into())],
            is_error: false,
        }])
    };
    let mut messages = vec![ModelMessage::User(vec!["the task".into()])];
    for number in 0..6 {
        messages.push(ModelMessage::Assistant(vec![AssistantBlock::Text(format!("step {number}"))]));
        messages.push(result(&format!("{number} {}", "y".repeat(6000))));
    }
    let mut test = LoopTest::with(ToolLoopSettings { context_window: 8_000, ..settings() }, messages);
    assert_eq!(test.seen(), ["status compacted", "model call", "ask"]);
    let texts: Vec<String> = test
        .machine
        .messages()
        .iter()
        .filter_map(|message| match message {
            ModelMessage::ToolResults(results) => Some(results[0].text()),
            _ => None,
        })
        .collect();
    assert!(texts[0].contains("dropped to save space") && texts[5].contains("yyy"), "{texts:?}");
    assert_eq!(test.machine.messages()[0], ModelMessage::User(vec!["the task".into()]));
}

#[test]
fn context_is_shrunk_when_the_api_rejects_it_as_too_long() {
    let mut test = LoopTest::with(settings(), long_history(5));
    assert_eq!(test.seen(), ["model call", "ask"]);
    test.fails(ModelFailureKind::ContextTooLong);
    assert_eq!(test.seen(), ["model call", "ask for a summary"]);
    let mut test = LoopTest::of(settings());
    for _ in 0..5 {
        test.fails(ModelFailureKind::ContextTooLong);
    }
    assert_eq!(test.seen().last().unwrap(), "failed model_context_full", "nothing can be compacted");
}
