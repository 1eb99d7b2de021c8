//! Parser tests for lines that are not in the recordings.

use crate::{
    ProviderEvent, TurnEvent,
    claude_code::{
        failure::ClaudeTurnEnd,
        parse::{ClaudeOutput, ClaudeParser},
    },
};
use serde_json::{Value, json};

fn events_of(parser: &mut ClaudeParser, lines: &[Value]) -> Vec<TurnEvent> {
    let parsed = lines.iter().flat_map(|line| parser.parse_line(&line.to_string()));
    parsed
        .filter_map(|parsed| match parsed {
            ClaudeOutput::Event(ProviderEvent { event, .. }) => Some(event),
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

fn text_block(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn streamed_text_is_not_repeated() {
    let events = events_of(
        &mut ClaudeParser::default(),
        &[start("a"), delta(0, "Hel"), delta(0, "lo"), whole("a", text_block("Hello"))],
    );
    assert_eq!(events, [TurnEvent::ModelCall, text("Hel", "a#0"), text("lo", "a#0")]);
}

#[test]
fn answer_without_deltas_is_reported_once() {
    let blocks = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello"}]);
    let events = events_of(&mut ClaudeParser::default(), &[whole("a", blocks), whole("a", text_block(" and more"))]);
    let thought = TurnEvent::Thinking { delta: "hm".into(), item: Some("a#0".into()) };
    assert_eq!(events, [TurnEvent::ModelCall, thought, text("Hello", "a#1"), text(" and more", "a#2")]);
}

#[test]
fn final_text_completes_or_replaces_the_streamed_text() {
    let events =
        events_of(&mut ClaudeParser::default(), &[start("a"), delta(0, "Hel"), whole("a", text_block("Hello"))]);
    assert_eq!(events[1..], [text("Hel", "a#0"), text("lo", "a#0")]);
    let events =
        events_of(&mut ClaudeParser::default(), &[start("a"), delta(0, "Hal"), whole("a", text_block("Hello"))]);
    assert_eq!(events[1..], [text("Hal", "a#0"), retract("a#0"), text("Hello", "a#0")]);
}

#[test]
fn abandoned_blocks_are_retracted_from_their_index_on() {
    let stop = json!({
        "type": "stream_event", "event": {"type": "message_stop"},
        "abandoned_blocks": {"api_message_id": "a", "from_block_index": 1},
    });
    let lines =
        [start("a"), delta(0, "keep"), whole("a", text_block("keep")), delta(1, "lose"), delta(2, "lose"), stop];
    let events = events_of(&mut ClaudeParser::default(), &lines);
    assert_eq!(events[4..], [retract("a#1"), retract("a#2")]);
}

#[test]
fn old_versions_abandon_blocks_without_reporting_it() {
    // A complete message arrives while another one is being streamed.
    let mut parser = ClaudeParser::default();
    let lines = [start("a"), delta(0, "Some "), whole("b", text_block("Some text")), whole("b", text_block("!"))];
    let expected = [
        TurnEvent::ModelCall,
        text("Some ", "a#0"),
        retract("a#0"),
        TurnEvent::ModelCall,
        text("Some text", "b#0"),
        text("!", "b#1"),
    ];
    assert_eq!(events_of(&mut parser, &lines), expected);
    // Or it is streamed again.
    let lines = [start("c"), delta(0, "Some "), start("d"), delta(0, "Some text")];
    let events = events_of(&mut ClaudeParser::default(), &lines);
    assert_eq!(events[1..], [text("Some ", "c#0"), retract("c#0"), TurnEvent::ModelCall, text("Some text", "d#0")]);
}

#[test]
fn finished_blocks_are_kept_when_the_next_message_starts() {
    let lines = [
        start("a"),
        delta(0, "one"),
        whole("a", text_block("one")),
        start("b"),
        delta(0, "two"),
        whole("b", text_block("two")),
    ];
    let events = events_of(&mut ClaudeParser::default(), &lines);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Retract { .. })), "{events:?}");
}

#[test]
fn tool_use_is_reported_once_with_its_full_input() {
    let block = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]);
    let begun = json!({"type": "stream_event", "event": {
        "type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
    }});
    let events =
        events_of(&mut ClaudeParser::default(), &[start("a"), begun, whole("a", block.clone()), whole("a", block)]);
    let used = TurnEvent::ToolUse { id: "t".into(), name: "Bash".into(), input: json!({"command": "ls"}) };
    assert_eq!(events, [TurnEvent::ModelCall, used]);
}

#[test]
fn subagents_report_tools_but_no_text() {
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
        under(whole("s", text_block("theirs"))),
        under(whole("s", block)),
        delta(0, " too"),
    ];
    let events = events_of(&mut ClaudeParser::default(), &lines);
    let used = TurnEvent::ToolUse { id: "u".into(), name: "Read".into(), input: json!({}) };
    let expected = [TurnEvent::ModelCall, text("mine", "a#0"), TurnEvent::ModelCall, used, text(" too", "a#0")];
    assert_eq!(events, expected);
}

#[test]
fn is_error_decides_the_outcome_not_the_subtype() {
    let result = |subtype: &str, is_error: bool| {
        let line = json!({"type": "result", "subtype": subtype, "is_error": is_error, "result": "x"}).to_string();
        match ClaudeParser::default().parse_line(&line).pop() {
            Some(ClaudeOutput::Finished(finished)) => finished.end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(result("success", false), ClaudeTurnEnd::Completed);
    assert!(matches!(result("success", true), ClaudeTurnEnd::Failed(_)));
    assert_eq!(result("error_of_a_new_kind", false), ClaudeTurnEnd::Completed);
}

#[test]
fn text_that_is_only_in_the_result_is_reported() {
    let result = json!({"type": "result", "is_error": false, "result": "Total cost: $0"});
    assert_eq!(
        events_of(&mut ClaudeParser::default(), std::slice::from_ref(&result)),
        [text("Total cost: $0", "result")]
    );
    // But not the text of a failure, and not twice.
    let failure = json!({"type": "result", "is_error": true, "result": "Overloaded"});
    assert!(events_of(&mut ClaudeParser::default(), &[failure]).is_empty());
    let events = events_of(&mut ClaudeParser::default(), &[start("a"), delta(0, "Total"), result]);
    assert_eq!(events, [TurnEvent::ModelCall, text("Total", "a#0")]);
}

#[test]
fn api_error_messages_are_not_reported_as_text() {
    let mut line = whole("a", text_block("API Error: 529"));
    line["error"] = json!("server_error");
    assert!(events_of(&mut ClaudeParser::default(), &[line]).is_empty());
}

#[test]
fn session_is_reported_in_every_turn_and_when_it_changes() {
    let mut parser = ClaudeParser::default();
    let init = |id: &str| json!({"type": "system", "subtype": "init", "session_id": id});
    let session = |id: &str| TurnEvent::Session { id: id.into() };
    assert_eq!(events_of(&mut parser, &[init("one"), init("one")]), [session("one")]);
    parser.begin_turn(false);
    assert_eq!(events_of(&mut parser, &[init("one")]), [session("one")]);
    // This id is not the session id.
    let reset = json!({"type": "conversation_reset", "new_conversation_id": "odd", "trigger": "clear"});
    let events = events_of(&mut parser, &[reset, init("two")]);
    assert!(matches!(&events[0], TurnEvent::Status { status, .. } if status == "conversation_cleared"));
    assert_eq!(events[1..], [session("two")]);
    assert_eq!(parser.session(), Some("two"));
}

#[test]
fn failed_mcp_server_is_reported_once() {
    let mut parser = ClaudeParser::default();
    let init = json!({"type": "system", "subtype": "init", "mcp_servers": [{"name": "shop", "status": "failed"}]});
    let events = events_of(&mut parser, std::slice::from_ref(&init));
    assert!(matches!(&events[..], [TurnEvent::Status { status, .. }] if status == "mcp_server_failed"));
    parser.begin_turn(false);
    assert!(events_of(&mut parser, &[init]).is_empty());
}

#[test]
fn retries_are_reported_and_authentication_failures_are_fatal() {
    let retry = |status: Value, error: &str| {
        let line = json!({
            "type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 4, "retry_delay_ms": 1500,
            "error_status": status, "error": error});
        ClaudeParser::default().parse_line(&line.to_string()).pop().unwrap()
    };
    let ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Status { status, message }, .. }) =
        retry(json!(529), "overloaded")
    else {
        panic!()
    };
    assert_eq!(status, "retrying");
    assert_eq!(message, "the model's API answered 529 (overloaded); attempt 2 of 4 in 1.5 s");
    for (status, error) in [(json!(401), "unknown"), (Value::Null, "authentication_failed")] {
        assert!(matches!(retry(status, error), ClaudeOutput::Hopeless(error) if error.code == "authentication_failed"));
    }
}

#[test]
fn unknown_lines_are_counted_and_missing_fields_are_tolerated() {
    let mut parser = ClaudeParser::default();
    for line in ["{\"type\":\"new_thing\"}", "{\"type\":\"system\",\"subtype\":\"new_thing\"}"] {
        assert!(parser.parse_line(line).is_empty());
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
        let parsed = parser.parse_line(&json!({"type": kind}).to_string());
        assert!(
            !parsed.iter().any(|parsed| matches!(parsed, ClaudeOutput::Garbage | ClaudeOutput::Request { .. })),
            "{kind} {parsed:?}"
        );
        let odd = json!({"type": kind, "event": [], "message": "x", "request": 1, "response": null, "request_id": {}});
        parser.parse_line(&odd.to_string());
    }
    for garbage in ["", "x", "[]", "1", "{}", "{\"type\":1}", "null"] {
        assert_eq!(parser.parse_line(garbage), [ClaudeOutput::Garbage], "{garbage:?}");
    }
}
