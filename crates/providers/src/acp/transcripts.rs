//! Parses recordings of real agents: the events of each prompt.

use super::{ending, parse::AcpParser, preset::Preset, tool_calls::ToolNaming};
use crate::{ProviderEvent, TurnEvent, jsonrpc::CallError};
use domain::usage::Cost;
use serde_json::{Value, json};
use std::{collections::HashMap, fmt::Write as _, path::Path};

/// A recording has the lines of both sides; a prompt starts with our request and ends with its response.
struct Recording {
    preset: Preset,
    parser: Option<(u64, AcpParser)>,
    /// Open permission requests: the call, and the option that denies it.
    asked: HashMap<String, (String, Option<String>)>,
    spent: Option<Cost>,
    /// The text of the current prompt, assembled without the parser.
    chunks: String,
    text: String,
    shown: String,
}

impl Recording {
    fn read(preset: &str, name: &str) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/acp").join(format!("{name}.jsonl"));
        let mut recording = Self {
            preset: Preset::named(preset).unwrap(),
            parser: None,
            asked: HashMap::new(),
            // A loaded session has an unknown previous cost.
            spent: (!name.ends_with("-load")).then_some(Cost::ZERO),
            chunks: String::new(),
            text: String::new(),
            shown: String::new(),
        };
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            match entry["dir"].as_str().unwrap() {
                "in" => recording.handle_input(&entry["line"]),
                "out" => recording.handle_output(&entry["line"]),
                _ => {}
            }
        }
        assert!(recording.parser.is_none(), "a prompt without an answer");
        recording.shown
    }

    fn handle_input(&mut self, line: &Value) {
        match line["method"].as_str() {
            Some("session/prompt") => {
                let prompt = line["params"]["prompt"][0]["text"].as_str().unwrap();
                writeln!(self.shown, "> {prompt}").unwrap();
                self.parser = Some((line["id"].as_u64().unwrap(), AcpParser::new(self.preset.naming)));
            }
            Some("session/cancel") => writeln!(self.shown, "> (cancel)").unwrap(),
            None => {
                let chosen = line["result"]["outcome"]["optionId"].as_str().map(str::to_owned);
                // One recording answers a request that was never sent.
                let Some((call, reject)) = self.asked.remove(&line["id"].to_string()) else { return };
                if chosen == reject {
                    let (_, parser) = self.parser.as_mut().unwrap();
                    let denied = parser.calls.denied(&call, "denied");
                    self.show(denied.map(ProviderEvent::from));
                }
            }
            Some(_) => {}
        }
    }

    fn handle_output(&mut self, line: &Value) {
        let Some((prompt, parser)) = &mut self.parser else { return };
        match line["method"].as_str() {
            Some("session/update") => {
                let update = &line["params"]["update"];
                if update["sessionUpdate"] == "agent_message_chunk" && parser.engine_error().is_none() {
                    self.chunks.push_str(update["content"]["text"].as_str().unwrap());
                }
                let events = parser.update(&line["params"], &line.to_string());
                self.show(events);
            }
            Some("session/request_permission") => {
                let (events, permission) = parser.permission(&line["params"], &line.to_string());
                self.show(events);
                writeln!(self.shown, "ask {} {} {:?}", permission.name, permission.input, permission.allow_once)
                    .unwrap();
                self.asked.insert(line["id"].to_string(), (permission.call, permission.reject_once));
            }
            None if line["id"].as_u64() == Some(*prompt) => self.ended(line),
            _ => {}
        }
    }

    fn ended(&mut self, line: &Value) {
        let (_, mut parser) = self.parser.take().unwrap();
        let mut events = parser.calls.report_announced();
        if let Some(error) = line.get("error") {
            let error = CallError::Refused {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap().to_owned(),
                data: error.get("data").cloned(),
            };
            events.extend(parser.retract_error_text(&error.to_string()).map(ProviderEvent::from));
            self.show(events);
            writeln!(self.shown, "failed {:?}", ending::run_error(&self.preset, &error)).unwrap();
        } else {
            let used = ending::usage(&line["result"], parser.model.as_deref(), parser.cost, self.spent);
            self.spent = parser.cost.or(self.spent);
            events.extend(used.into_iter().map(ProviderEvent::from));
            self.show(events);
            let ending = ending::from_result(&self.preset, &line["result"], parser.engine_error());
            writeln!(self.shown, "{:?} {:?}", ending.end, ending.kept).unwrap();
        }
        writeln!(self.shown, "skipped {:?}\n", parser.skipped).unwrap();
        assert_eq!(std::mem::take(&mut self.text), std::mem::take(&mut self.chunks), "the text equals the chunks");
    }

    fn show(&mut self, events: impl IntoIterator<Item = ProviderEvent>) {
        for ProviderEvent { event, raw } in events {
            let deltas =
                matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. });
            assert!(!deltas || raw.is_none(), "deltas have no raw line");
            if let TurnEvent::Text { delta, .. } = &event {
                self.text.push_str(delta);
            }
            let shown = format!("{event:?}");
            // Deltas of one message are on one line.
            let start = match &event {
                TurnEvent::Text { item, .. } => format!("Text {item:?}"),
                TurnEvent::Thinking { item, .. } => format!("Thinking {item:?}"),
                _ => String::new(),
            };
            let (TurnEvent::Text { delta, .. } | TurnEvent::Thinking { delta, .. }) = &event else {
                writeln!(self.shown, "{shown}").unwrap();
                continue;
            };
            let last = self.shown.lines().last().unwrap_or_default();
            if last.starts_with(&format!("{start} ")) {
                self.shown.pop();
                writeln!(self.shown, "|{}", delta.escape_debug()).unwrap();
            } else {
                writeln!(self.shown, "{start} {}", delta.escape_debug()).unwrap();
            }
        }
    }
}

#[test]
fn gemini() {
    insta::assert_snapshot!("gemini-basic", Recording::read("gemini", "gemini-basic"));
    insta::assert_snapshot!("gemini-permission", Recording::read("gemini", "gemini-permission"));
    insta::assert_snapshot!("gemini-mcp", Recording::read("gemini", "gemini-mcp"));
    insta::assert_snapshot!("gemini-load-a", Recording::read("gemini", "gemini-load-a"));
    insta::assert_snapshot!("gemini-load-b", Recording::read("gemini", "gemini-load-b"));
}

#[test]
fn claude_agent_acp() {
    insta::assert_snapshot!("claude-agent-acp", Recording::read("claude-agent-acp", "claude-agent-acp"));
    insta::assert_snapshot!("claude-agent-acp-load", Recording::read("claude-agent-acp", "claude-agent-acp-load"));
    insta::assert_snapshot!("claude-code-acp", Recording::read("claude-agent-acp", "claude-code-acp"));
    insta::assert_snapshot!("claude-code-acp-load", Recording::read("claude-agent-acp", "claude-code-acp-load"));
}

#[test]
fn codex_acp() {
    insta::assert_snapshot!("codex-acp", Recording::read("codex-acp", "codex-acp"));
    insta::assert_snapshot!("codex-acp-permission", Recording::read("codex-acp", "codex-acp-permission"));
    insta::assert_snapshot!("codex-acp-load", Recording::read("codex-acp", "codex-acp-load"));
}

fn update(update: Value) -> Value {
    json!({"sessionId": "s", "update": update})
}

fn events(parser: &mut AcpParser, said: Value) -> Vec<TurnEvent> {
    parser.update(&update(said), "raw").into_iter().map(|reported| reported.event).collect()
}

#[test]
fn call_is_reported_once_even_if_announced_repeatedly() {
    let mut parser = AcpParser::new(ToolNaming::Field);
    let call = |rest: Value| {
        let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute"});
        call.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        call
    };
    assert_eq!(events(&mut parser, call(json!({"status": "pending", "rawInput": {}}))), []);
    assert_eq!(events(&mut parser, call(json!({"rawInput": {"command": "ls"}}))), []);
    assert!(parser.calls.has_announced());
    let reported = TurnEvent::ToolUse { id: "c".into(), name: "execute".into(), input: json!({"command": "ls"}) };
    // The next text shows that the call has started.
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}});
    let text = TurnEvent::Text { delta: "x".into(), item: None };
    assert_eq!(events(&mut parser, chunk), [reported, text]);
    assert_eq!(events(&mut parser, call(json!({"status": "in_progress", "rawInput": {"command": "rm"}}))), []);
    let ended = events(&mut parser, call(json!({"status": "failed"})));
    assert!(matches!(&ended[..], [TurnEvent::ToolResult { is_error: true, .. }]), "{ended:?}");
    assert_eq!(events(&mut parser, call(json!({"status": "completed", "rawOutput": "late"}))), []);
    assert_eq!(parser.calls.denied("c", "no"), None);
}

#[test]
fn call_that_is_only_reported_at_its_end_has_a_start() {
    let mut parser = AcpParser::new(ToolNaming::CallId);
    let reported = events(
        &mut parser,
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "read_file__1", "status": "failed",
               "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}]}),
    );
    let [TurnEvent::ToolUse { name, input, .. }, TurnEvent::ToolResult { content, is_error: true, .. }] = &reported[..]
    else {
        panic!("{reported:?}")
    };
    assert_eq!((name.as_str(), input, content), ("read_file", &json!({}), &json!("no such file")));
}

#[test]
fn empty_input_stays_empty_and_text_blocks_become_text() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "current_time", "title": "current_time",
                      "rawInput": {}, "status": "completed", "rawOutput": [{"type": "text", "text": "now"}]});
    let reported = events(&mut AcpParser::new(ToolNaming::Field), call);
    let input = TurnEvent::ToolUse { id: "c".into(), name: "current_time".into(), input: json!({}) };
    let output = TurnEvent::ToolResult { id: "c".into(), content: json!("now"), is_error: false };
    assert_eq!(reported, [input, output]);
}

#[test]
fn only_new_output_is_reported() {
    let mut parser = AcpParser::new(ToolNaming::Field);
    let mut said = |status: &str, text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status, "content": content});
        events(&mut parser, update)
            .into_iter()
            .filter(|event| !matches!(event, TurnEvent::ToolUse { .. }))
            .collect::<Vec<_>>()
    };
    let delta = |text: &str| [TurnEvent::ToolOutput { id: "c".into(), delta: text.into() }];
    assert_eq!(said("in_progress", "one\n"), delta("one\n"));
    assert_eq!(said("in_progress", "one\n"), []);
    assert_eq!(said("in_progress", "one\ntwo\n"), delta("two\n"));
    assert_eq!(said("in_progress", "something else"), []);
    let whole = TurnEvent::ToolResult { id: "c".into(), content: json!("one\ntwo\nthree"), is_error: false };
    assert_eq!(said("completed", "one\ntwo\nthree"), [whole]);
}

#[test]
fn tool_names_do_not_depend_on_the_input() {
    for (naming, id, call, name) in [
        (
            ToolNaming::CallId,
            "run_shell_command__call_1",
            json!({"title": "rm -r x", "kind": "execute"}),
            "run_shell_command",
        ),
        (ToolNaming::CallId, "mcp_server_a__b__call_1", json!({"kind": "other"}), "mcp_server_a__b"),
        (ToolNaming::CallId, "resolve-prompt-x", json!({"kind": "read", "name": "never"}), "read"),
        (ToolNaming::CallId, "__x", json!({}), "tool"),
        (ToolNaming::Field, "c", json!({"name": "Bash", "kind": "execute"}), "Bash"),
        (ToolNaming::Field, "c", json!({"_meta": {"claudeCode": {"toolName": "Write"}}, "kind": "edit"}), "Write"),
        (ToolNaming::Field, "c", json!({"title": "Edit x", "kind": "edit"}), "edit"),
        (
            ToolNaming::Kind,
            "c",
            json!({"kind": "execute", "rawInput": {"server": "git", "tool": "log"}}),
            "mcp__git__log",
        ),
        (ToolNaming::Kind, "c", json!({"name": "exec_command", "kind": "execute"}), "execute"),
    ] {
        let mut call = call;
        call["toolCallId"] = json!(id);
        let (_, asked) = AcpParser::new(naming).permission(&json!({"toolCall": call}), "raw");
        assert_eq!(asked.name, name, "{call}");
    }
}

#[test]
fn permanent_options_are_never_selected() {
    let options = json!([{"optionId": "a", "kind": "allow_always"}, {"optionId": "r", "kind": "reject_always"}]);
    let params = json!({"toolCall": {"toolCallId": "c"}, "options": options});
    let (_, asked) = AcpParser::new(ToolNaming::Field).permission(&params, "raw");
    assert_eq!((asked.allow_once, asked.reject_once), (None, None));
}

#[test]
fn invalid_updates_are_counted_and_skipped() {
    let mut parser = AcpParser::new(ToolNaming::Field);
    for said in [
        json!(null),
        json!({"sessionUpdate": 7}),
        json!({"sessionUpdate": "news", "x": [1]}),
        json!({"sessionUpdate": "tool_call"}),
        json!({"sessionUpdate": "agent_message_chunk", "content": 5}),
        json!({"sessionUpdate": "usage_update", "cost": {"amount": "much"}}),
    ] {
        assert_eq!(events(&mut parser, said), []);
    }
    assert_eq!(parser.update(&json!("no"), "raw"), []);
    assert_eq!(parser.skipped.get("news"), Some(&1));
    for kind in 0..100 {
        events(&mut parser, json!({"sessionUpdate": format!("kind {kind}")}));
    }
    assert!(parser.skipped.len() <= 32);
    let (reported, asked) = parser.permission(&json!({"toolCall": 3, "options": "none"}), "raw");
    assert_eq!((reported, asked.name.as_str(), asked.allow_once), (vec![], "tool", None));
}

#[test]
fn notices_become_statuses() {
    let mut parser = AcpParser::new(ToolNaming::Field);
    let reported = events(&mut parser, json!({"sessionUpdate": "notice", "message": "switched to a smaller model"}));
    assert_eq!(
        reported,
        [TurnEvent::Status { status: "notice".into(), message: "switched to a smaller model".into() }]
    );
}
