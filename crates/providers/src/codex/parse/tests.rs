//! Replays recorded conversations with the real program, and tests their pitfalls one by one.

use super::{CodexParser, CodexTurnEnd, ParsedNotification};
use crate::{
    TurnEvent,
    codex::requests::{CodexRequest, classify},
};
use domain::usage::Usage;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _};

/// One turn of a transcript, as a room would receive it.
#[derive(Default)]
struct RecordedTurn {
    prompt: String,
    events: Vec<RecordedEvent>,
    end: Option<CodexTurnEnd>,
    /// The final text of each item, as reported by Codex.
    finals: BTreeMap<String, String>,
}

enum RecordedEvent {
    Event(TurnEvent),
    /// A request during the turn.
    Ask(CodexRequest),
}

/// Replays the program's output with one parser per turn, like the provider.
fn replay(name: &str) -> Vec<RecordedTurn> {
    let path = format!("{}/tests/transcripts/codex/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let mut turns: Vec<(RecordedTurn, CodexParser)> = Vec::new();
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
                turns
                    .push((RecordedTurn { prompt, ..RecordedTurn::default() }, CodexParser::new(model.clone(), total)));
            }
            // The previous usage of a resumed thread is unknown at first.
            "thread/resume" if is_ours => total = None,
            "" if message["result"]["model"].is_string() => {
                model = message["result"]["model"].as_str().map(str::to_owned);
            }
            "" if asked.contains(&message["id"]) => {
                if let (Some((_, parser)), Some(id)) = (turns.last_mut(), message["result"]["turn"]["id"].as_str()) {
                    parser.set_turn(id);
                }
            }
            "" => {}
            _ if is_ours => {}
            _ => {
                let Some((turn, parser)) = turns.last_mut() else { continue };
                if message.get("id").is_some() {
                    turn.events.push(RecordedEvent::Ask(classify(method, params, parser)));
                    continue;
                }
                let ParsedNotification { events, end, .. } = parser.apply(method, params);
                turn.events.extend(events.into_iter().map(RecordedEvent::Event));
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

/// The text that remains visible, by item.
fn shown(turn: &RecordedTurn) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::<String, String>::new();
    for event in &turn.events {
        match event {
            RecordedEvent::Event(TurnEvent::Text { delta, item }) => {
                shown.entry(item.clone().unwrap()).or_default().push_str(delta);
            }
            RecordedEvent::Event(TurnEvent::Retract { item }) => drop(shown.remove(item)),
            _ => {}
        }
    }
    shown
}

/// One line per event; deltas of one item are joined by `|`.
fn written(turns: &[RecordedTurn]) -> String {
    let mut lines = String::new();
    for turn in turns {
        writeln!(lines, "## {}", turn.prompt).unwrap();
        let mut last = String::new();
        for event in &turn.events {
            let event = match event {
                RecordedEvent::Event(event) => event,
                RecordedEvent::Ask(ask) => {
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
                    assert_eq!(shown.get(item), Some(text), "{}: the visible text is the final text", $name);
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

fn parser() -> CodexParser {
    let mut parser = CodexParser::new(Some("m".into()), Some(Usage::default()));
    parser.set_turn("t");
    parser
}

fn item(parser: &mut CodexParser, method: &str, item: Value) -> Vec<TurnEvent> {
    parser.apply(method, &json!({"turnId": "t", "item": item})).events
}

fn delta(parser: &mut CodexParser, item: &str, delta: &str) -> Vec<TurnEvent> {
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
fn answer_without_deltas_is_reported_completely() {
    let mut parser = parser();
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "a"})), []);
    let whole = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "all"}));
    assert_eq!(whole, [text("all", "a")]);
    let again = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "all"}));
    assert_eq!(again, [], "it is reported once");
    let turn = json!({"id": "t", "status": "completed", "items": [
        {"type": "agentMessage", "id": "a", "text": "all"}, {"type": "agentMessage", "id": "b", "text": "more"}]});
    let parsed = parser.apply("turn/completed", &json!({"turn": turn}));
    assert_eq!((parsed.events, parsed.end), (vec![text("more", "b")], Some(CodexTurnEnd::Completed)));
}

#[test]
fn missing_deltas_are_added_at_the_end() {
    let mut parser = parser();
    delta(&mut parser, "a", "one ");
    let rest = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "one two"}));
    assert_eq!(rest, [text("two", "a")]);
    delta(&mut parser, "b", "wo");
    let other = item(&mut parser, "item/completed", json!({"type": "agentMessage", "id": "b", "text": "two"}));
    assert_eq!(other, [TurnEvent::Retract { item: "b".into() }, text("two", "b")]);
}

#[test]
fn retry_retracts_only_unfinished_text() {
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
fn steered_text_is_not_retracted_by_a_later_retry() {
    let mut parser = parser();
    delta(&mut parser, "cut", "I was about to");
    item(&mut parser, "item/started", json!({"type": "userMessage", "id": "u"}));
    let error = json!({"turnId": "t", "willRetry": true, "error": {"message": "again"}});
    assert_eq!(parser.apply("error", &error).events.len(), 1);
}

#[test]
fn refused_key_is_fatal_at_once() {
    let error = json!({"turnId": "t", "willRetry": true, "error": {
        "message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 401}}}});
    let hopeless = parser().apply("error", &error).hopeless.unwrap();
    assert_eq!(hopeless.code, "authentication_failed");
    assert!(hopeless.message.contains("codex login") && hopeless.message.contains("OPENAI_API_KEY"));
}

#[test]
fn each_failure_has_a_code() {
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
        let Some(CodexTurnEnd::Failed(failed)) = parser().apply("turn/completed", &turn).end else { panic!("{info}") };
        assert_eq!(failed.code, code, "{info}");
    }
}

#[test]
fn failed_turn_without_an_error_uses_the_last_reported_one() {
    let mut parser = parser();
    let error =
        json!({"turnId": "t", "willRetry": false, "error": {"message": "no", "codexErrorInfo": "modelNotFound"}});
    assert_eq!(parser.apply("error", &error), ParsedNotification::default());
    let turn = json!({"turn": {"id": "t", "status": "failed", "error": null}});
    assert!(
        matches!(parser.apply("turn/completed", &turn).end, Some(CodexTurnEnd::Failed(error)) if error.code == "model_not_found")
    );
}

#[test]
fn tokens_are_counted_once_and_cached_tokens_separately() {
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
fn previous_usage_of_a_resumed_thread_is_not_counted_again() {
    let mut parser = CodexParser::new(None, None);
    let mut earlier = usage([1000, 0, 0, 100], [1000, 0, 0, 100]);
    earlier["turnId"] = json!("an earlier turn");
    assert_eq!(parser.apply("thread/tokenUsage/updated", &earlier).events, []);
    parser.set_turn("t");
    let events = parser.apply("thread/tokenUsage/updated", &usage([1500, 0, 0, 110], [500, 0, 0, 10])).events;
    let expected = Usage { input_tokens: 500, output_tokens: 10, ..Usage::default() };
    assert_eq!(events, [TurnEvent::Usage { usage: expected, model: None, cost: None }]);

    let mut unknown = CodexParser::new(None, None);
    unknown.set_turn("t");
    let events = unknown.apply("thread/tokenUsage/updated", &usage([1500, 0, 0, 110], [500, 0, 0, 10])).events;
    assert_eq!(events, [TurnEvent::Usage { usage: expected, model: None, cost: None }], "only the last call");
}

#[test]
fn each_model_call_is_reported_once() {
    let mut parser = CodexParser::new(None, Some(Usage::default()));
    let started = json!({"threadId": "x", "turn": {"id": "t"}});
    assert_eq!(parser.apply("turn/started", &started).events, [TurnEvent::ModelCall]);
    assert_eq!(parser.apply("turn/started", &started).events, []);
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "a"})), []);
    parser.apply("thread/tokenUsage/updated", &usage([5, 0, 0, 1], [5, 0, 0, 1]));
    assert_eq!(item(&mut parser, "item/started", json!({"type": "reasoning", "id": "b"})), [TurnEvent::ModelCall]);
    assert_eq!(item(&mut parser, "item/started", json!({"type": "agentMessage", "id": "c"})), []);
}

#[test]
fn first_model_call_is_reported_if_the_turn_id_is_already_known() {
    let mut parser = parser();
    assert_eq!(parser.apply("turn/started", &json!({"turn": {"id": "t"}})).events, [TurnEvent::ModelCall]);
}

#[test]
fn compaction_is_reported_as_status() {
    let mut parser = parser();
    for (method, word) in [("item/started", "compacting"), ("item/completed", "compacted")] {
        let events = item(&mut parser, method, json!({"type": "contextCompaction", "id": "c"}));
        assert!(matches!(&events[..], [TurnEvent::Status { status, .. }] if status == word), "{events:?}");
    }
}

#[test]
fn other_turns_of_the_thread_are_ignored() {
    let mut parser = parser();
    let other = json!({"turnId": "other", "itemId": "a", "delta": "x"});
    assert_eq!(parser.apply("item/agentMessage/delta", &other), ParsedNotification::default());
    let turn = json!({"turn": {"id": "other", "status": "completed"}});
    assert_eq!(parser.apply("turn/completed", &turn), ParsedNotification::default());
    assert_eq!(parser.apply("turn/started", &json!({"turn": {"id": "other"}})), ParsedNotification::default());
}

#[test]
fn declined_or_failed_command_is_an_error() {
    for (status, exit, is_error) in [
        ("completed", json!(0), false),
        ("failed", json!(3), true),
        ("declined", Value::Null, true),
        ("completed", json!(1), true),
    ] {
        let mut parser = parser();
        item(&mut parser, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x", "cwd": "y"}));
        assert!(parser.has_running_commands());
        let done = json!({"type": "commandExecution", "id": "c", "status": status, "exitCode": exit});
        let events = item(&mut parser, "item/completed", done);
        assert!(
            matches!(&events[..], [TurnEvent::ToolResult { is_error: wrong, .. }] if *wrong == is_error),
            "{events:?}"
        );
        assert!(!parser.has_running_commands());
    }
}

#[test]
fn result_without_a_start_reports_both() {
    let search = json!({"type": "webSearch", "id": "w", "query": "ships", "action": {"type": "search"}});
    let mut parser = parser();
    assert_eq!(item(&mut parser, "item/started", json!({"type": "webSearch", "id": "w", "query": ""})), []);
    let events = item(&mut parser, "item/completed", search);
    assert!(
        matches!(&events[..], [TurnEvent::ToolUse { name, .. }, TurnEvent::ToolResult { .. }] if name == "web_search")
    );
}

#[test]
fn invalid_and_unknown_messages_are_skipped_and_counted() {
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
        assert_eq!(parser.apply(method, &params), ParsedNotification::default(), "{method} {params}");
    }
    assert_eq!(parser.skipped(), 2);
}
