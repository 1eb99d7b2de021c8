//! Tables of inputs and effects.

use super::{Effect, Input, Machine, Manner, Outcome, Purpose, Setting, Tool};
use crate::{
    TurnEnd, TurnEvent,
    direct::{
        conversation::{Answered, Block, Content, Message},
        wire::{
            Piece, Stop,
            failure::{Failure, Kind},
        },
    },
};
use domain::{event::Decision, ids::MessageId, usage::Usage};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

fn setting() -> Setting {
    let tool = |manner| Tool { schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}), manner };
    let tools = [("free", Manner::Free), ("asks", Manner::Asks), ("ask_user", Manner::Question)];
    Setting {
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

struct Play {
    machine: Machine,
    effects: Vec<Effect>,
}

impl Play {
    fn of(setting: Setting) -> Self {
        Self::with(setting, vec![Message::Person(vec!["do it".into()])])
    }

    fn with(setting: Setting, messages: Vec<Message>) -> Self {
        let mut play = Self { machine: Machine::new(setting, messages), effects: Vec::new() };
        play.on(Input::Begin);
        play
    }

    fn on(&mut self, input: Input) -> &mut Self {
        self.machine.on(input, &mut self.effects);
        self
    }

    fn say(&mut self, text: &str) -> &mut Self {
        self.on(Input::Piece(Piece::Text { block: 0, delta: text.into() }))
    }

    fn call(&mut self, block: u32, name: &str, input: &str) -> &mut Self {
        self.on(Input::Piece(Piece::CallBegins { block, id: format!("c{block}"), name: name.into() }));
        self.on(Input::Piece(Piece::CallInput { block, delta: input.into() }));
        self.on(Input::Piece(Piece::BlockEnds { block }))
    }

    fn ends(&mut self) -> &mut Self {
        self.on(Input::Piece(Piece::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() })));
        self.on(Input::Piece(Piece::Done)).on(Input::Ended(Ok(())))
    }

    fn fails(&mut self, kind: Kind) -> &mut Self {
        self.on(Input::Ended(Err(Failure::new(kind, "it failed"))))
    }

    fn returns(&mut self, call: &str, text: &str) -> &mut Self {
        self.on(Input::ToolEnded { call: call.into(), outcome: Outcome::text(text, false) })
    }

    /// What has come since this was asked last, in short.
    fn seen(&mut self) -> Vec<String> {
        self.effects.drain(..).map(|effect| short(&effect)).collect()
    }
}

fn short(effect: &Effect) -> String {
    match effect {
        Effect::Tell(TurnEvent::Text { delta, item }) => format!("text {} {delta}", item.as_deref().unwrap_or("-")),
        Effect::Tell(TurnEvent::Retract { item }) => format!("retract {item}"),
        Effect::Tell(TurnEvent::ToolUse { id, name, input }) => format!("use {id} {name} {input}"),
        Effect::Tell(TurnEvent::ToolResult { id, content, is_error }) => format!("result {id} {content} {is_error}"),
        Effect::Tell(TurnEvent::Usage { usage, .. }) => format!("usage {}", usage.total()),
        Effect::Tell(TurnEvent::Status { status, .. }) => format!("status {status}"),
        Effect::Tell(TurnEvent::ModelCall) => "model call".into(),
        Effect::Tell(other) => format!("{other:?}"),
        Effect::Ask(Purpose::Answer) => "ask".into(),
        Effect::Ask(Purpose::Summary) => "ask for a summary".into(),
        Effect::HangUp => "hang up".into(),
        Effect::Rest { attempt, .. } => format!("rest {attempt}"),
        Effect::Decide { call, name, is_question, .. } => format!("decide {call} {name} {is_question}"),
        Effect::Run { call, name, input } => format!("run {call} {name} {}", Value::Object(input.clone())),
        Effect::End(TurnEnd::Failed(error)) => format!("failed {}", error.code),
        Effect::End(end) => format!("end {end:?}"),
    }
}

#[test]
fn an_answer_without_calls_ends_the_turn() {
    let mut play = Play::of(setting());
    assert_eq!(play.seen(), ["model call", "ask"]);
    play.say("Hel").say("lo").ends();
    assert_eq!(play.seen(), ["text 1.0 Hel", "text 1.0 lo", "usage 15", "hang up", "end Completed"]);
    play.say("more");
    assert!(play.seen().is_empty(), "nothing follows the end");
}

#[test]
fn a_call_is_decided_run_and_told_to_the_model() {
    let mut play = Play::of(setting());
    play.seen();
    play.say("So. ").call(1, "asks", r#"{"path":"a"}"#).ends();
    let expected = ["text 1.0 So. ", "use c1 asks {\"path\":\"a\"}", "usage 15", "decide c1 asks false"];
    assert_eq!(play.seen(), expected);
    play.on(Input::Decided { call: "c1".into(), decision: Decision::Allow, input: None });
    assert_eq!(play.seen(), ["run c1 asks {\"path\":\"a\"}"]);
    play.returns("c1", "content of a");
    assert_eq!(play.seen(), ["result c1 \"content of a\" false", "model call", "ask"]);
    let [_, Message::Model(said), Message::Results(results)] = play.machine.messages() else { panic!() };
    assert!(matches!(&said[..], [Block::Text(_), Block::Call(call)] if call.id == "c1"));
    assert_eq!(results[0].content, [Content::Text("content of a".into())]);
    play.say("Done.").ends();
    assert_eq!(play.seen(), ["text 2.0 Done.", "usage 15", "hang up", "end Completed"]);
}

#[test]
fn a_person_may_change_the_input_or_say_no_or_nothing() {
    for (decision, input, seen) in [
        (Decision::Allow, Some(json!({"path": "b"})), "run c1 asks {\"path\":\"b\"}"),
        (
            Decision::Deny,
            None,
            "result c1 \"This call was not allowed. Do not try it again; do without it, or ask the people in the room.\" true",
        ),
        (Decision::Expired, None, "result c1 \"Nobody allowed this call in time; it was not run.\" true"),
    ] {
        let mut play = Play::of(setting());
        play.call(1, "asks", r#"{"path":"a"}"#).ends().seen();
        play.on(Input::Decided { call: "c1".into(), decision, input });
        assert_eq!(play.seen()[0], seen);
    }
}

#[test]
fn a_question_is_answered_by_a_person() {
    let mut play = Play::of(setting());
    play.call(1, "ask_user", r#"{"question":"Which?"}"#).ends();
    assert_eq!(play.seen().last().unwrap(), "decide c1 ask_user true");
    play.on(Input::Decided { call: "c1".into(), decision: Decision::Allow, input: Some(json!({"answer": "this"})) });
    assert_eq!(play.seen(), ["result c1 \"this\" false", "model call", "ask"]);
}

#[test]
fn calls_run_side_by_side_or_one_after_another() {
    let mut play = Play::of(setting());
    play.call(0, "free", "{}").call(1, "free", "").ends();
    assert_eq!(&play.seen()[5..], ["run c0 free {}", "run c1 free {}"]);
    play.returns("c1", "b");
    assert_eq!(play.seen(), ["result c1 \"b\" false"], "the other one is waited for");
    play.returns("c0", "a");
    let Some(Message::Results(results)) = play.machine.messages().last() else { panic!() };
    assert_eq!((results[0].call.as_str(), results[1].call.as_str()), ("c0", "c1"), "in the order they were made");

    let mut play = Play::of(Setting { is_parallel: false, ..setting() });
    play.call(0, "free", "{}").call(1, "asks", "").ends();
    assert_eq!(&play.seen()[5..], ["run c0 free {}"]);
    play.returns("c0", "a");
    assert_eq!(play.seen(), ["result c0 \"a\" false", "decide c1 asks false"]);
}

#[test]
fn a_call_may_run_while_the_answer_streams() {
    let mut play = Play::of(Setting { runs_while_streaming: true, ..setting() });
    play.seen();
    play.call(0, "free", "{}");
    assert_eq!(play.seen(), ["use c0 free {}", "run c0 free {}"]);
    play.returns("c0", "early");
    assert_eq!(play.seen(), ["result c0 \"early\" false"], "the answer is not at its end");
    play.say("and more").ends();
    assert_eq!(play.seen(), ["text 1.0 and more", "usage 15", "model call", "ask"]);
}

#[test]
fn malformed_and_unknown_calls_go_back_as_errors() {
    let mut play = Play::of(setting());
    play.seen();
    play.call(0, "free", "{not json").call(1, "nothing", "{}").ends();
    let seen = play.seen();
    assert!(seen[0].starts_with("use c0 free {\"malformed\":\"{not json\"}"), "{seen:?}");
    assert!(
        seen[3].starts_with("result c0 \"The call was not understood: its arguments are not a JSON object"),
        "{seen:?}"
    );
    assert!(
        seen[4].starts_with("result c1 \"There is no tool \\\"nothing\\\"; there are: ask_user, asks, free."),
        "{seen:?}"
    );
    assert_eq!(&seen[5..], ["model call", "ask"]);
}

#[test]
fn what_may_pass_is_tried_again_and_what_was_said_is_taken_back() {
    let mut play = Play::of(setting());
    play.seen();
    play.say("half an ans").fails(Kind::Overloaded);
    assert_eq!(play.seen(), ["text 1.0 half an ans", "retract 1.0", "rest 1"]);
    play.on(Input::Rested);
    assert_eq!(play.seen(), ["ask"], "one model call of the turn, however often it is tried");
    play.fails(Kind::RateLimited).on(Input::Rested).say("half").fails(Kind::Cut);
    let seen = play.seen();
    assert_eq!(seen, ["rest 2", "ask", "text 3.0 half", "hang up", "failed model_cut_off"], "the last half stays");
}

#[test]
fn a_success_forgets_the_failures() {
    let mut play = Play::of(setting());
    play.fails(Kind::Server).on(Input::Rested).call(0, "free", "").ends().returns("c0", "x").seen();
    play.fails(Kind::Server);
    assert_eq!(play.seen(), ["rest 1"]);
}

#[test]
fn what_cannot_pass_is_final_at_once() {
    for (kind, code) in [(Kind::Authentication, "authentication_failed"), (Kind::Refused, "model_refused")] {
        let mut play = Play::of(setting());
        play.seen();
        play.fails(kind);
        assert_eq!(play.seen(), ["hang up".to_owned(), format!("failed {code}")]);
    }
    let mut play = Play::of(setting());
    let wait = Some(Duration::from_secs(3600));
    play.on(Input::Ended(Err(Failure {
        retry_after: wait,
        ..Failure::new(Kind::RateLimited, "come back in an hour")
    })));
    assert_eq!(play.seen().last().unwrap(), "failed model_rate_limited", "nobody waits an hour");
}

#[test]
fn invariant_12_no_blind_repeat_a_call_that_ran_is_not_run_again_when_the_answer_breaks_off() {
    let mut play = Play::of(Setting { runs_while_streaming: true, ..setting() });
    play.say("So. ").call(1, "free", "{}").seen();
    play.on(Input::Piece(Piece::CallBegins { block: 2, id: "c2".into(), name: "free".into() }));
    play.fails(Kind::Cut);
    assert_eq!(play.seen(), ["status resumed"], "the call that was cut in two was never made");
    play.returns("c1", "done once");
    assert_eq!(play.seen(), ["result c1 \"done once\" false", "model call", "ask"]);

    let mut play = Play::of(setting());
    play.call(1, "free", "{}").seen();
    play.fails(Kind::Cut);
    let seen = play.seen();
    assert!(seen[0].starts_with("result c1 \"not run") && seen[1] == "rest 1", "{seen:?}");
}

#[test]
fn going_in_circles_is_warned_of_and_ended() {
    let mut play = Play::of(setting());
    let mut warned = 0;
    for round in 0..8 {
        play.on(Input::Piece(Piece::CallBegins { block: 0, id: "same".into(), name: "free".into() }));
        play.on(Input::Piece(Piece::BlockEnds { block: 0 })).ends();
        let run = play.seen().into_iter().find(|seen| seen.starts_with("run ")).unwrap();
        let id = run.split(' ').nth(1).unwrap().to_owned();
        assert!(round == 0 || id != "same", "ids are told apart: {id}");
        play.returns(&id, "nothing new");
        if let Some(Message::Results(results)) = play.machine.messages().last() {
            warned += usize::from(results[0].text().contains("Do something else"));
        }
    }
    assert_eq!(play.seen().last().unwrap(), "failed no_progress");
    assert!(warned >= 3);
}

#[test]
fn xml_calls_are_typed_by_the_schema_and_never_shown() {
    let mut play = Play::of(Setting { is_xml: true, ..setting() });
    play.seen();
    for piece in [
        "Look: <func",
        "tion_calls>\n<invoke name=\"free\">\n<parameter name=\"path\">12",
        "</parameter><parameter name=\"n\">12</parameter>\n</invoke>\n",
    ] {
        play.say(piece);
    }
    play.ends();
    let expected = [
        "text 1.0 Look: ",
        "use call_1_0 free {\"n\":12,\"path\":\"12\"}",
        "usage 15",
        "run call_1_0 free {\"n\":12,\"path\":\"12\"}",
    ];
    assert_eq!(play.seen(), expected);
}

#[test]
fn a_new_message_is_taken_into_the_turn() {
    let mut play = Play::of(setting());
    play.seen();
    let message = MessageId::generate();
    play.say("a").on(Input::Steer { message, text: "also b".into() }).ends();
    let seen = play.seen();
    assert!(seen[1].starts_with("Steered"), "{seen:?}");
    assert_eq!(&seen[2..], ["usage 15", "model call", "ask"]);
    assert_eq!(play.machine.messages().last(), Some(&Message::Person(vec!["also b".into()])));
}

#[test]
fn a_stop_tells_what_was_used() {
    let mut play = Play::of(setting());
    play.on(Input::Piece(Piece::Usage(Usage { input_tokens: 7, ..Usage::default() }))).seen();
    play.on(Input::Stop);
    assert_eq!(play.seen(), ["usage 7", "hang up", "end Stopped"]);
}

#[test]
fn an_answer_that_is_cut_by_its_own_limit_is_told() {
    let mut play = Play::of(setting());
    play.seen();
    play.say("a").on(Input::Piece(Piece::Stops(Stop::Length))).ends();
    assert_eq!(play.seen()[2], "status max_output_tokens");
    let mut play = Play::of(setting());
    play.ends();
    assert!(play.seen().contains(&"status empty_answer".to_owned()));
}

fn long_history(exchanges: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for number in 0..exchanges {
        messages.push(Message::Person(vec![format!("question {number} {}", "x".repeat(3000))]));
        messages.push(Message::Model(vec![Block::Text(format!("answer {number}"))]));
    }
    messages.push(Message::Person(vec!["the question now".into()]));
    messages
}

#[test]
fn what_outgrows_the_context_is_folded_into_a_summary() {
    let small = Setting { context_window: 10_000, ..setting() };
    let mut play = Play::with(small, long_history(10));
    assert_eq!(play.seen(), ["model call", "ask for a summary"]);
    let [Message::Person(asked)] = play.machine.messages() else { panic!("a summary is asked for by itself") };
    assert!(asked[0].contains("question 0") && !asked[0].contains("the question now"));
    play.say("They talked.").ends();
    let seen = play.seen();
    assert_eq!(&seen[..3], ["usage 15", "status compacted", "model call"]);
    let messages = play.machine.messages();
    assert!(matches!(&messages[0], Message::Person(texts) if texts[0].contains("They talked.")));
    assert_eq!(messages.last(), Some(&Message::Person(vec!["the question now".into()])));
    play.say("So.").ends();
    assert_eq!(play.seen().last().unwrap(), "end Completed");
}

#[test]
fn without_a_summary_there_is_a_note() {
    let mut play = Play::with(Setting { context_window: 10_000, retries: 0, ..setting() }, long_history(10));
    play.seen();
    play.fails(Kind::Server);
    assert_eq!(play.seen(), ["status compacted", "model call", "ask"]);
    let Message::Person(texts) = &play.machine.messages()[0] else { panic!() };
    assert!(texts[0].contains("earlier messages are left out"));
}

#[test]
fn old_results_are_folded_first_and_the_task_is_kept() {
    let result = |text: &str| {
        Message::Results(vec![Answered {
            call: "c".into(),
            name: "free".into(),
            content: vec![Content::Text(text.into())],
            is_error: false,
        }])
    };
    let mut messages = vec![Message::Person(vec!["the task".into()])];
    for number in 0..6 {
        messages.push(Message::Model(vec![Block::Text(format!("step {number}"))]));
        messages.push(result(&format!("{number} {}", "y".repeat(6000))));
    }
    let mut play = Play::with(Setting { context_window: 8_000, ..setting() }, messages);
    assert_eq!(play.seen(), ["status compacted", "model call", "ask"]);
    let texts: Vec<String> = play
        .machine
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Results(results) => Some(results[0].text()),
            _ => None,
        })
        .collect();
    assert!(texts[0].contains("folded away") && texts[5].contains("yyy"), "{texts:?}");
    assert_eq!(play.machine.messages()[0], Message::Person(vec!["the task".into()]));
}

#[test]
fn an_api_that_says_too_much_is_believed() {
    let mut play = Play::with(setting(), long_history(5));
    assert_eq!(play.seen(), ["model call", "ask"]);
    play.fails(Kind::TooLong);
    assert_eq!(play.seen(), ["model call", "ask for a summary"]);
    let mut play = Play::of(setting());
    for _ in 0..5 {
        play.fails(Kind::TooLong);
    }
    assert_eq!(play.seen().last().unwrap(), "failed model_context_full", "there is nothing to fold");
}
