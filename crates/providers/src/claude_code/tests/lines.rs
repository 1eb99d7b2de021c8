//! Lines that no recording has, and the traps one by one.

use crate::{
    Reported, TurnEvent,
    claude_code::{
        failure::End,
        parse::{Parsed, Parser},
    },
};
use serde_json::{Value, json};

fn told(parser: &mut Parser, lines: &[Value]) -> Vec<TurnEvent> {
    let parsed = lines.iter().flat_map(|line| parser.line(&line.to_string()));
    parsed
        .filter_map(|parsed| match parsed {
            Parsed::Event(Reported { event, .. }) => Some(event),
            _ => None,
        })
        .collect()
}

fn text(delta: &str, item: &str) -> TurnEvent {
    TurnEvent::Text { delta: delta.into(), item: Some(item.into()) }
}

fn retract(item: &str) -> TurnEvent {
    TurnEvent::Retract { item: item.into() }
}

fn start(id: &str) -> Value {
    json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": id, "model": "m"}}})
}

fn delta(index: u64, text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": index, "delta": delta}})
}

fn whole(id: &str, blocks: Value) -> Value {
    json!({"type": "assistant", "message": {"id": id, "model": "m", "content": blocks}})
}

fn said(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn what_was_streamed_is_not_said_again() {
    let events =
        told(&mut Parser::default(), &[start("a"), delta(0, "Hel"), delta(0, "lo"), whole("a", said("Hello"))]);
    assert_eq!(events, [TurnEvent::ModelCall, text("Hel", "a#0"), text("lo", "a#0")]);
}

#[test]
fn a_whole_answer_without_deltas_is_said_once() {
    let blocks = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello"}]);
    let events = told(&mut Parser::default(), &[whole("a", blocks), whole("a", said(" and more"))]);
    let thought = TurnEvent::Thinking { delta: "hm".into(), item: Some("a#0".into()) };
    assert_eq!(events, [TurnEvent::ModelCall, thought, text("Hello", "a#1"), text(" and more", "a#2")]);
}

#[test]
fn what_the_stream_left_out_is_added_and_what_it_got_wrong_is_said_anew() {
    let events = told(&mut Parser::default(), &[start("a"), delta(0, "Hel"), whole("a", said("Hello"))]);
    assert_eq!(events[1..], [text("Hel", "a#0"), text("lo", "a#0")]);
    let events = told(&mut Parser::default(), &[start("a"), delta(0, "Hal"), whole("a", said("Hello"))]);
    assert_eq!(events[1..], [text("Hal", "a#0"), retract("a#0"), text("Hello", "a#0")]);
}

#[test]
fn abandoned_blocks_are_taken_back_from_their_index_on() {
    let stop = json!({
        "type": "stream_event", "event": {"type": "message_stop"},
        "abandoned_blocks": {"api_message_id": "a", "from_block_index": 1},
    });
    let lines = [start("a"), delta(0, "keep"), whole("a", said("keep")), delta(1, "lose"), delta(2, "lose"), stop];
    let events = told(&mut Parser::default(), &lines);
    assert_eq!(events[4..], [retract("a#1"), retract("a#2")]);
}

#[test]
fn an_old_version_does_not_say_what_it_abandons() {
    // Another message comes whole while one is being streamed.
    let mut parser = Parser::default();
    let lines = [start("a"), delta(0, "Some "), whole("b", said("Some text")), whole("b", said("!"))];
    let expected = [
        TurnEvent::ModelCall,
        text("Some ", "a#0"),
        retract("a#0"),
        TurnEvent::ModelCall,
        text("Some text", "b#0"),
        text("!", "b#1"),
    ];
    assert_eq!(told(&mut parser, &lines), expected);
    // Or it is streamed anew.
    let lines = [start("c"), delta(0, "Some "), start("d"), delta(0, "Some text")];
    let events = told(&mut Parser::default(), &lines);
    assert_eq!(events[1..], [text("Some ", "c#0"), retract("c#0"), TurnEvent::ModelCall, text("Some text", "d#0")]);
}

#[test]
fn finished_blocks_stay_when_the_next_message_begins() {
    let lines =
        [start("a"), delta(0, "one"), whole("a", said("one")), start("b"), delta(0, "two"), whole("b", said("two"))];
    let events = told(&mut Parser::default(), &lines);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Retract { .. })), "{events:?}");
}

#[test]
fn a_tool_is_used_once_with_its_whole_input() {
    let block = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]);
    let begun = json!({"type": "stream_event", "event": {
        "type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
    }});
    let events = told(&mut Parser::default(), &[start("a"), begun, whole("a", block.clone()), whole("a", block)]);
    let used = TurnEvent::ToolUse { id: "t".into(), name: "Bash".into(), input: json!({"command": "ls"}) };
    assert_eq!(events, [TurnEvent::ModelCall, used]);
}

#[test]
fn subagents_work_but_do_not_speak() {
    let under = |mut line: Value| {
        line["parent_tool_use_id"] = json!("t");
        line
    };
    let block = json!([{"type": "tool_use", "id": "u", "name": "Read", "input": {}}]);
    let lines = [
        start("a"),
        delta(0, "mine"),
        under(start("x")),
        under(delta(0, "theirs")),
        under(whole("s", said("theirs"))),
        under(whole("s", block)),
        delta(0, " too"),
    ];
    let events = told(&mut Parser::default(), &lines);
    let used = TurnEvent::ToolUse { id: "u".into(), name: "Read".into(), input: json!({}) };
    let expected = [TurnEvent::ModelCall, text("mine", "a#0"), TurnEvent::ModelCall, used, text(" too", "a#0")];
    assert_eq!(events, expected);
}

#[test]
fn is_error_decides_and_never_the_subtype() {
    let result = |subtype: &str, is_error: bool| {
        let line = json!({"type": "result", "subtype": subtype, "is_error": is_error, "result": "x"}).to_string();
        match Parser::default().line(&line).pop() {
            Some(Parsed::Finished(finished)) => finished.end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(result("success", false), End::Completed);
    assert!(matches!(result("success", true), End::Failed(_)));
    assert_eq!(result("error_of_a_new_kind", false), End::Completed);
}

#[test]
fn words_that_only_the_result_has_are_said() {
    let result = json!({"type": "result", "is_error": false, "result": "Total cost: $0"});
    assert_eq!(told(&mut Parser::default(), std::slice::from_ref(&result)), [text("Total cost: $0", "result")]);
    // But not those of a failure, nor a second time.
    let failure = json!({"type": "result", "is_error": true, "result": "Overloaded"});
    assert!(told(&mut Parser::default(), &[failure]).is_empty());
    let events = told(&mut Parser::default(), &[start("a"), delta(0, "Total"), result]);
    assert_eq!(events, [TurnEvent::ModelCall, text("Total", "a#0")]);
}

#[test]
fn the_words_of_a_failure_are_not_the_agents() {
    let mut line = whole("a", said("API Error: 529"));
    line["error"] = json!("server_error");
    assert!(told(&mut Parser::default(), &[line]).is_empty());
}

#[test]
fn the_session_is_told_in_every_turn_and_when_it_changes() {
    let mut parser = Parser::default();
    let init = |id: &str| json!({"type": "system", "subtype": "init", "session_id": id});
    let session = |id: &str| TurnEvent::Session { id: id.into() };
    assert_eq!(told(&mut parser, &[init("one"), init("one")]), [session("one")]);
    parser.begin();
    assert_eq!(told(&mut parser, &[init("one")]), [session("one")]);
    // The id in here is of something else.
    let reset = json!({"type": "conversation_reset", "new_conversation_id": "odd", "trigger": "clear"});
    let events = told(&mut parser, &[reset, init("two")]);
    assert!(matches!(&events[0], TurnEvent::Status { status, .. } if status == "conversation_cleared"));
    assert_eq!(events[1..], [session("two")]);
    assert_eq!(parser.session(), Some("two"));
}

#[test]
fn a_server_that_fails_is_told_of_once() {
    let mut parser = Parser::default();
    let init = json!({"type": "system", "subtype": "init", "mcp_servers": [{"name": "shop", "status": "failed"}]});
    let events = told(&mut parser, std::slice::from_ref(&init));
    assert!(matches!(&events[..], [TurnEvent::Status { status, .. }] if status == "mcp_server_failed"));
    parser.begin();
    assert!(told(&mut parser, &[init]).is_empty());
}

#[test]
fn retries_are_told_and_hopeless_ones_end_it() {
    let retry = |status: Value, error: &str| {
        let line = json!({
            "type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 4, "retry_delay_ms": 1500,
            "error_status": status, "error": error});
        Parser::default().line(&line.to_string()).pop().unwrap()
    };
    let Parsed::Event(Reported { event: TurnEvent::Status { status, message }, .. }) = retry(json!(529), "overloaded")
    else {
        panic!()
    };
    assert_eq!(status, "retrying");
    assert_eq!(message, "the model's API answered 529 (overloaded); attempt 2 of 4 in 1.5 s");
    for (status, error) in [(json!(401), "unknown"), (Value::Null, "authentication_failed")] {
        assert!(matches!(retry(status, error), Parsed::Hopeless(error) if error.code == "authentication_failed"));
    }
}

#[test]
fn what_is_not_known_is_counted_and_what_is_missing_does_no_harm() {
    let mut parser = Parser::default();
    for line in ["{\"type\":\"new_thing\"}", "{\"type\":\"system\",\"subtype\":\"new_thing\"}"] {
        assert!(parser.line(line).is_empty());
    }
    assert_eq!(parser.skipped, 2);
    for kind in [
        "stream_event",
        "assistant",
        "user",
        "conversation_reset",
        "control_request",
        "control_response",
        "control_cancel_request",
        "command_lifecycle",
    ] {
        let parsed = parser.line(&json!({"type": kind}).to_string());
        assert!(
            !parsed.iter().any(|parsed| matches!(parsed, Parsed::Garbage | Parsed::Asked { .. })),
            "{kind} {parsed:?}"
        );
        let odd = json!({"type": kind, "event": [], "message": "x", "request": 1, "response": null, "request_id": {}});
        parser.line(&odd.to_string());
    }
    for garbage in ["", "x", "[]", "1", "{}", "{\"type\":1}", "null"] {
        assert_eq!(parser.line(garbage), [Parsed::Garbage], "{garbage:?}");
    }
}
