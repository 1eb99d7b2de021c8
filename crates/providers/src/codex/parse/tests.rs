//! Recorded conversations with the real program, replayed; and the traps they show, one by one.

use super::{End, Parsed, Parser};
use crate::{
    TurnEvent,
    codex::ask::{Ask, ask},
};
use domain::{time::Timestamp, usage::Usage};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _};

/// One turn of a transcript, as a room would get it.
#[derive(Default)]
struct Turn {
    prompt: String,
    events: Vec<Shown>,
    end: Option<End>,
    /// By item: what Codex said its text was in the end.
    finals: BTreeMap<String, String>,
}

enum Shown {
    Event(TurnEvent),
    /// What was asked in the middle of it.
    Ask(Ask),
}

/// Plays what the program wrote, with one parser for each turn, as the provider does.
fn replay(name: &str) -> Vec<Turn> {
    let path = format!("{}/tests/transcripts/codex/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let mut turns: Vec<(Turn, Parser)> = Vec::new();
    let (mut model, mut total, mut asked) = (None, Some(Usage::default()), Vec::new());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (message, is_ours) = (&line["line"], line["dir"] == "in");
        let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        let runs = turns.last().is_some_and(|(turn, _)| turn.end.is_none());
        match method {
            "turn/start" if is_ours && !runs => {
                asked.push(message["id"].clone());
                let prompt = params["input"][0]["text"].as_str().unwrap_or_default().to_owned();
                turns.push((Turn { prompt, ..Turn::default() }, Parser::new(model.clone(), total)));
            }
            // What a thread had used before it was resumed is not known at first.
            "thread/resume" if is_ours => total = None,
            "" if message["result"]["model"].is_string() => {
                model = message["result"]["model"].as_str().map(str::to_owned);
            }
            "" if asked.contains(&message["id"]) => {
                if let (Some((_, parser)), Some(id)) = (turns.last_mut(), message["result"]["turn"]["id"].as_str()) {
                    parser.turn_is(id);
                }
            }
            "" => {}
            _ if is_ours => {}
            _ => {
                let Some((turn, parser)) = turns.last_mut() else { continue };
                if message.get("id").is_some() {
                    turn.events.push(Shown::Ask(ask(method, params, parser, Timestamp::from_millis(0))));
                    continue;
                }
                let Parsed { events, end, .. } = parser.apply(method, params);
                turn.events.extend(events.into_iter().map(Shown::Event));
                turn.end = turn.end.take().or(end);
                if method == "item/completed" && params["item"]["type"] == "agentMessage" {
                    let text = params["item"]["text"].as_str().unwrap().to_owned();
                    turn.finals.insert(params["item"]["id"].as_str().unwrap().to_owned(), text);
                }
                total = parser.total();
                assert_eq!(parser.skipped(), 0, "{name}: {method}");
            }
        }
    }
    turns.into_iter().map(|(turn, _)| turn).collect()
}

/// What stays on the screen, by item.
fn shown(turn: &Turn) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::<String, String>::new();
    for event in &turn.events {
        match event {
            Shown::Event(TurnEvent::Text { delta, item }) => {
                shown.entry(item.clone().unwrap()).or_default().push_str(delta);
            }
            Shown::Event(TurnEvent::Retract { item }) => drop(shown.remove(item)),
            _ => {}
        }
    }
    shown
}

/// One line an event; deltas of one item stand together, parted by `|`.
fn written(turns: &[Turn]) -> String {
    let mut lines = String::new();
    for turn in turns {
        writeln!(lines, "## {}", turn.prompt).unwrap();
        let mut last = String::new();
        for event in &turn.events {
            let event = match event {
                Shown::Event(event) => event,
                Shown::Ask(ask) => {
                    write!(lines, "\n{ask:?}").unwrap();
                    last = String::new();
                    continue;
                }
            };
            let (head, tail) = match event {
                TurnEvent::Text { delta, item } => (format!("text {}", item.as_deref().unwrap()), delta.clone()),
                TurnEvent::Thinking { delta, item } => {
                    (format!("thinking {}", item.as_deref().unwrap()), delta.clone())
                }
                TurnEvent::ToolOutput { id, delta } => (format!("output {id}"), delta.clone()),
                other => (String::new(), format!("{other:?}")),
            };
            let tail = tail.replace('\n', "\\n");
            match &head {
                head if head.is_empty() => write!(lines, "\n{tail}").unwrap(),
                head if *head == last => write!(lines, "|{tail}").unwrap(),
                head => write!(lines, "\n{head}: {tail}").unwrap(),
            }
            last = head;
        }
        writeln!(lines, "\n=> {:?}\n", turn.end).unwrap();
    }
    lines
}

macro_rules! transcripts {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            let turns = replay($name);
            for turn in &turns {
                let shown = shown(turn);
                for (item, text) in &turn.finals {
                    assert_eq!(shown.get(item), Some(text), "{}: what is shown is what was said", $name);
                }
            }
            insta::assert_snapshot!($name, written(&turns));
        }
    )*};
}

transcripts! {
    hello: "hello",
    thinking: "think",
    tools: "tool",
    two_turns: "twoturns",
    approvals_untrusted: "approval-untrusted-read-only",
    approvals_on_request: "approval-on-request-workspace-write",
    sandbox: "sandbox-workspace-write",
    interrupt: "interrupt",
    background_terminals: "background-terminals",
    steer: "steer",
    http_errors: "error-http",
    bad_key: "bad-auth",
    no_key: "no-auth",
    bad_model: "bad-model",
    api_down: "api-down",
    dynamic_tools: "dynamic-tools",
    user_input: "request-user-input",
    mcp_approval: "mcp-approval-prompt",
    mcp_tool: "mcp-stdio",
    mcp_broken: "mcp-broken",
    tool_search: "tool-search",
    resumed: "resume-b",
    resumed_after_a_kill: "kill9-resume",
    compaction: "compact",
    input_closed: "stdin-eof",
    skills: "skills",
}

fn parser() -> Parser {
    let mut parser = Parser::new(Some("m".into()), Some(Usage::default()));
    parser.turn_is("t");
    parser
}

fn item(parser: &mut Parser, method: &str, item: Value) -> Vec<TurnEvent> {
    parser.apply(method, &json!({"turnId": "t", "item": item})).events
}

fn delta(parser: &mut Parser, item: &str, delta: &str) -> Vec<TurnEvent> {
    parser.apply("item/agentMessage/delta", &json!({"turnId": "t", "itemId": item, "delta": delta})).events
}

fn text(delta: &str, item: &str) -> TurnEvent {
    TurnEvent::Text { delta: delta.into(), item: Some(item.into()) }
}

fn usage(total: [u64; 4], last: [u64; 4]) -> Value {
    let counts = |[input, cached, written, output]: [u64; 4]| json!({"inputTokens": input, "cachedInputTokens": cached, "cacheWriteInputTokens": written, "outputTokens": output});
    json!({"turnId": "t", "tokenUsage": {"total": counts(total), "last": counts(last)}})
}

#[test]
fn an_answer_without_deltas_is_shown_whole() {
    let mut parser = parser();
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "a"})), []);
    let whole = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "all"}));
    assert_eq!(whole, [text("all", "a")]);
    let again = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "all"}));
    assert_eq!(again, [], "once is enough");
    let turn = json!({"id": "t", "status": "completed", "items": [
        {"type": "agentMessage", "id": "a", "text": "all"}, {"type": "agentMessage", "id": "b", "text": "more"}]});
    let parsed = parser.apply("turn/completed", &json!({"turn": turn}));
    assert_eq!((parsed.events, parsed.end), (vec![text("more", "b")], Some(End::Completed)));
}

#[test]
fn lost_deltas_are_made_good_at_the_end() {
    let mut parser = parser();
    delta(&mut parser, "a", "one ");
    let rest = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "one two"}));
    assert_eq!(rest, [text("two", "a")]);
    delta(&mut parser, "b", "wo");
    let other = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "b", "text": "two"}));
    assert_eq!(other, [TurnEvent::Retract { item: "b".into() }, text("two", "b")]);
}

#[test]
fn a_retry_takes_back_what_was_not_finished_and_nothing_else() {
    let mut parser = parser();
    delta(&mut parser, "done", "kept");
    item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "done", "text": "kept"}));
    item(&mut parser, "item/started", json!({"type": "commandExecution", "id": "tool", "command": "ls"}));
    parser.apply("item/reasoning/textDelta", &json!({"turnId": "t", "itemId": "thought", "delta": "hm"}));
    delta(&mut parser, "half", "lo");
    let error = json!({"turnId": "t", "willRetry": true, "error": {
        "message": "Reconnecting... 1/1", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 500}}}});
    let parsed = parser.apply("error", &error);
    assert_eq!(
        parsed.events,
        [
            TurnEvent::Retract { item: "thought".into() },
            TurnEvent::Retract { item: "half".into() },
            TurnEvent::Status { status: "retrying".into(), message: "Reconnecting... 1/1".into() },
        ]
    );
    assert_eq!((parsed.end, parsed.hopeless), (None, None));
    assert!(parser.tool("tool").is_some());
}

#[test]
fn what_somebody_spoke_into_is_not_taken_back_by_a_later_retry() {
    let mut parser = parser();
    delta(&mut parser, "cut", "I was about to");
    item(&mut parser, "item/started", json!({"type": "userMessage", "id": "u"}));
    let error = json!({"turnId": "t", "willRetry": true, "error": {"message": "again"}});
    assert_eq!(parser.apply("error", &error).events.len(), 1);
}

#[test]
fn a_key_that_is_refused_is_final_at_once() {
    let error = json!({"turnId": "t", "willRetry": true, "error": {
        "message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 401}}}});
    let hopeless = parser().apply("error", &error).hopeless.unwrap();
    assert_eq!(hopeless.code, "authentication_failed");
    assert!(hopeless.message.contains("codex login") && hopeless.message.contains("OPENAI_API_KEY"));
}

#[test]
fn each_failure_has_its_code() {
    for (info, code) in [
        (json!("unauthorized"), "authentication_failed"),
        (json!({"httpConnectionFailed": {"httpStatusCode": 401}}), "authentication_failed"),
        (json!("modelNotFound"), "model_not_found"),
        (json!("usageLimitExceeded"), "rate_limited"),
        (json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}), "rate_limited"),
        (json!("contextWindowExceeded"), "context_window_exceeded"),
        (json!({"httpConnectionFailed": {"httpStatusCode": null}}), "api_error"),
        (json!("somethingNew"), "api_error"),
        (json!(17), "api_error"),
        (Value::Null, "api_error"),
    ] {
        let error = json!({"message": "m", "codexErrorInfo": info});
        let turn = json!({"turn": {"id": "t", "status": "failed", "error": error}});
        let Some(End::Failed(failed)) = parser().apply("turn/completed", &turn).end else { panic!("{info}") };
        assert_eq!(failed.code, code, "{info}");
    }
}

#[test]
fn a_failed_turn_without_its_error_has_the_last_one_that_was_told() {
    let mut parser = parser();
    let error =
        json!({"turnId": "t", "willRetry": false, "error": {"message": "no", "codexErrorInfo": "modelNotFound"}});
    assert_eq!(parser.apply("error", &error), Parsed::default());
    let turn = json!({"turn": {"id": "t", "status": "failed", "error": null}});
    assert!(
        matches!(parser.apply("turn/completed", &turn).end, Some(End::Failed(error)) if error.code == "model_not_found")
    );
}

#[test]
fn tokens_are_counted_once_and_cached_ones_apart() {
    let mut parser = parser();
    let mut used = |params: &Value| match &parser.apply("thread/tokenUsage/updated", params).events[..] {
        [] => None,
        [TurnEvent::Usage { usage, model, cost: None }] if model.as_deref() == Some("m") => Some(*usage),
        other => panic!("{other:?}"),
    };
    let first = usage([1000, 600, 100, 50], [1000, 600, 100, 50]);
    let expected = Usage { input_tokens: 300, output_tokens: 50, cache_read_tokens: 600, cache_write_tokens: 100 };
    assert_eq!(used(&first), Some(expected));
    assert_eq!(used(&first), None, "a repeated count");
    assert_eq!(used(&usage([1000, 600, 100, 50], [0, 0, 0, 0])), None, "after a compaction");
    let more = usage([1010, 600, 100, 57], [10, 0, 0, 7]);
    assert_eq!(used(&more), Some(Usage { input_tokens: 10, output_tokens: 7, ..Usage::default() }));
}

#[test]
fn what_a_resumed_thread_used_before_is_not_counted_again() {
    let mut parser = Parser::new(None, None);
    let mut earlier = usage([1000, 0, 0, 100], [1000, 0, 0, 100]);
    earlier["turnId"] = json!("an earlier turn");
    assert_eq!(parser.apply("thread/tokenUsage/updated", &earlier).events, []);
    parser.turn_is("t");
    let events = parser.apply("thread/tokenUsage/updated", &usage([1500, 0, 0, 110], [500, 0, 0, 10])).events;
    let expected = Usage { input_tokens: 500, output_tokens: 10, ..Usage::default() };
    assert_eq!(events, [TurnEvent::Usage { usage: expected, model: None, cost: None }]);

    let mut unknown = Parser::new(None, None);
    unknown.turn_is("t");
    let events = unknown.apply("thread/tokenUsage/updated", &usage([1500, 0, 0, 110], [500, 0, 0, 10])).events;
    assert_eq!(
        events,
        [TurnEvent::Usage { usage: expected, model: None, cost: None }],
        "the last call, not all of them"
    );
}

#[test]
fn each_model_call_is_told_once() {
    let mut parser = Parser::new(None, Some(Usage::default()));
    let started = json!({"threadId": "x", "turn": {"id": "t"}});
    assert_eq!(parser.apply("turn/started", &started).events, [TurnEvent::ModelCall]);
    assert_eq!(parser.apply("turn/started", &started).events, []);
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "a"})), []);
    parser.apply("thread/tokenUsage/updated", &usage([5, 0, 0, 1], [5, 0, 0, 1]));
    assert_eq!(item(&mut parser, "item/started", json!({"type": "reasoning", "id": "b"})), [TurnEvent::ModelCall]);
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "c"})), []);
}

#[test]
fn the_first_call_is_told_whichever_names_the_turn_first() {
    let mut parser = parser();
    assert_eq!(parser.apply("turn/started", &json!({"turn": {"id": "t"}})).events, [TurnEvent::ModelCall]);
}

#[test]
fn summing_up_is_told_and_is_no_answer() {
    let mut parser = parser();
    for (method, word) in [("item/started", "compacting"), ("item/completed", "compacted")] {
        let events = item(&mut parser, method, json!({"type": "contextCompaction", "id": "c"}));
        assert!(matches!(&events[..], [TurnEvent::Status { status, .. }] if status == word), "{events:?}");
    }
}

#[test]
fn other_turns_of_the_thread_are_none_of_ours() {
    let mut parser = parser();
    let other = json!({"turnId": "other", "itemId": "a", "delta": "x"});
    assert_eq!(parser.apply("item/agentMessage/delta", &other), Parsed::default());
    let turn = json!({"turn": {"id": "other", "status": "completed"}});
    assert_eq!(parser.apply("turn/completed", &turn), Parsed::default());
    assert_eq!(parser.apply("turn/started", &json!({"turn": {"id": "other"}})), Parsed::default());
}

#[test]
fn a_command_that_is_declined_or_fails_is_an_error() {
    for (status, exit, is_error) in [
        ("completed", json!(0), false),
        ("failed", json!(3), true),
        ("declined", Value::Null, true),
        ("completed", json!(1), true),
    ] {
        let mut parser = parser();
        item(&mut parser, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x", "cwd": "y"}));
        assert!(parser.commands_run());
        let done = json!({"type": "commandExecution", "id": "c", "status": status, "exitCode": exit});
        let events = item(&mut parser, "item/completed", done);
        assert!(
            matches!(&events[..], [TurnEvent::ToolResult { is_error: wrong, .. }] if *wrong == is_error),
            "{events:?}"
        );
        assert!(!parser.commands_run());
    }
}

#[test]
fn a_result_without_its_beginning_brings_both() {
    let search = json!({"type": "webSearch", "id": "w", "query": "ships", "action": {"type": "search"}});
    let mut parser = parser();
    assert_eq!(item(&mut parser, "item/started", json!({"type": "webSearch", "id": "w", "query": ""})), []);
    let events = item(&mut parser, "item/completed", search);
    assert!(
        matches!(&events[..], [TurnEvent::ToolUse { name, .. }, TurnEvent::ToolResult { .. }] if name == "web_search")
    );
}

#[test]
fn hostile_and_unknown_shapes_are_skipped_and_counted() {
    let mut parser = parser();
    for (method, params) in [
        ("item/started", json!({"turnId": "t", "item": {"type": "hologram", "id": "h"}})),
        ("brand/new", json!({"turnId": "t"})),
        ("item/started", json!({"turnId": "t", "item": 3})),
        ("item/completed", json!({"turnId": "t"})),
        ("item/agentMessage/delta", json!({"turnId": "t", "itemId": 3, "delta": []})),
        ("thread/tokenUsage/updated", json!({"turnId": "t", "tokenUsage": "many"})),
        ("error", Value::Null),
        ("turn/plan/updated", json!({"turnId": "t", "plan": [{}, 1]})),
    ] {
        assert_eq!(parser.apply(method, &params), Parsed::default(), "{method} {params}");
    }
    assert_eq!(parser.skipped(), 2);
}
