//! What real agents said, recorded, through the parser: each prompt of each recording as the events it becomes.

use super::{calls::Naming, ending, parse::Fold, preset::Preset};
use crate::{Reported, TurnEvent, jsonrpc::CallError};
use domain::usage::Cost;
use serde_json::{Value, json};
use std::{collections::HashMap, fmt::Write as _, path::Path};

/// A recording is two streams of lines; a prompt begins with our request and ends with its answer.
struct Recording {
    preset: Preset,
    fold: Option<(u64, Fold)>,
    /// Requests for permission that are open: the call, and the option that says no.
    asked: HashMap<String, (String, Option<String>)>,
    spent: Option<Cost>,
    /// The text chunks of the prompt under way, put together without the parser.
    chunks: String,
    text: String,
    shown: String,
}

impl Recording {
    fn read(preset: &str, name: &str) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/acp").join(format!("{name}.jsonl"));
        let mut recording = Self {
            preset: Preset::named(preset).unwrap(),
            fold: None,
            asked: HashMap::new(),
            // A session that was loaded had cost something before.
            spent: (!name.ends_with("-load")).then_some(Cost::ZERO),
            chunks: String::new(),
            text: String::new(),
            shown: String::new(),
        };
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            match entry["dir"].as_str().unwrap() {
                "in" => recording.heard(&entry["line"]),
                "out" => recording.said(&entry["line"]),
                _ => {}
            }
        }
        assert!(recording.fold.is_none(), "a prompt without an answer");
        recording.shown
    }

    fn heard(&mut self, line: &Value) {
        match line["method"].as_str() {
            Some("session/prompt") => {
                let prompt = line["params"]["prompt"][0]["text"].as_str().unwrap();
                writeln!(self.shown, "> {prompt}").unwrap();
                self.fold = Some((line["id"].as_u64().unwrap(), Fold::new(self.preset.naming)));
            }
            Some("session/cancel") => writeln!(self.shown, "> (cancel)").unwrap(),
            None => {
                let chosen = line["result"]["outcome"]["optionId"].as_str().map(str::to_owned);
                // One recording answers a request that was never made.
                let Some((call, reject)) = self.asked.remove(&line["id"].to_string()) else { return };
                if chosen == reject {
                    let (_, fold) = self.fold.as_mut().unwrap();
                    let denied = fold.calls.denied(&call, "denied");
                    self.show(denied.map(Reported::from));
                }
            }
            Some(_) => {}
        }
    }

    fn said(&mut self, line: &Value) {
        let Some((prompt, fold)) = &mut self.fold else { return };
        match line["method"].as_str() {
            Some("session/update") => {
                let update = &line["params"]["update"];
                if update["sessionUpdate"] == "agent_message_chunk" && fold.broken().is_none() {
                    self.chunks.push_str(update["content"]["text"].as_str().unwrap());
                }
                let events = fold.update(&line["params"], &line.to_string());
                self.show(events);
            }
            Some("session/request_permission") => {
                let (events, permission) = fold.permission(&line["params"], &line.to_string());
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
        let (_, mut fold) = self.fold.take().unwrap();
        let mut events = fold.calls.release();
        if let Some(error) = line.get("error") {
            let error = CallError::Refused {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap().to_owned(),
                data: error.get("data").cloned(),
            };
            events.extend(fold.said_as_text(&error.to_string()).map(Reported::from));
            self.show(events);
            writeln!(self.shown, "failed {:?}", ending::of_error(&self.preset, &error)).unwrap();
        } else {
            let used = ending::usage(&line["result"], fold.model.as_deref(), fold.cost, self.spent);
            self.spent = fold.cost.or(self.spent);
            events.extend(used.into_iter().map(Reported::from));
            self.show(events);
            let ending = ending::of_result(&self.preset, &line["result"], fold.broken());
            writeln!(self.shown, "{:?} {:?}", ending.end, ending.kept).unwrap();
        }
        writeln!(self.shown, "skipped {:?}\n", fold.skipped).unwrap();
        assert_eq!(std::mem::take(&mut self.text), std::mem::take(&mut self.chunks), "the text is the chunks");
    }

    fn show(&mut self, events: impl IntoIterator<Item = Reported>) {
        for Reported { event, raw } in events {
            let deltas =
                matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. });
            assert!(!deltas || raw.is_none(), "deltas come without what they came in");
            if let TurnEvent::Text { delta, .. } = &event {
                self.text.push_str(delta);
            }
            let shown = format!("{event:?}");
            // Deltas of one message stand in one line.
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

fn events(fold: &mut Fold, said: Value) -> Vec<TurnEvent> {
    fold.update(&update(said), "raw").into_iter().map(|reported| reported.event).collect()
}

#[test]
fn one_call_is_told_once_however_often_it_is_announced() {
    let mut fold = Fold::new(Naming::Field);
    let call = |rest: Value| {
        let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute"});
        call.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        call
    };
    assert_eq!(events(&mut fold, call(json!({"status": "pending", "rawInput": {}}))), []);
    assert_eq!(events(&mut fold, call(json!({"rawInput": {"command": "ls"}}))), []);
    assert!(fold.calls.holds());
    let told = TurnEvent::ToolUse { id: "c".into(), name: "execute".into(), input: json!({"command": "ls"}) };
    // What is said next shows that it has begun.
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}});
    let text = TurnEvent::Text { delta: "x".into(), item: None };
    assert_eq!(events(&mut fold, chunk), [told, text]);
    assert_eq!(events(&mut fold, call(json!({"status": "in_progress", "rawInput": {"command": "rm"}}))), []);
    let ended = events(&mut fold, call(json!({"status": "failed"})));
    assert!(matches!(&ended[..], [TurnEvent::ToolResult { is_error: true, .. }]), "{ended:?}");
    assert_eq!(events(&mut fold, call(json!({"status": "completed", "rawOutput": "late"}))), []);
    assert_eq!(fold.calls.denied("c", "no"), None);
}

#[test]
fn a_call_that_only_ever_ends_is_told_too() {
    let mut fold = Fold::new(Naming::CallId);
    let told = events(
        &mut fold,
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "read_file__1", "status": "failed",
               "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}]}),
    );
    let [TurnEvent::ToolUse { name, input, .. }, TurnEvent::ToolResult { content, is_error: true, .. }] = &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((name.as_str(), input, content), ("read_file", &json!({}), &json!("no such file")));
}

#[test]
fn a_tool_without_input_has_none_and_blocks_of_text_are_text() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "current_time", "title": "current_time",
                      "rawInput": {}, "status": "completed", "rawOutput": [{"type": "text", "text": "now"}]});
    let told = events(&mut Fold::new(Naming::Field), call);
    let input = TurnEvent::ToolUse { id: "c".into(), name: "current_time".into(), input: json!({}) };
    let output = TurnEvent::ToolResult { id: "c".into(), content: json!("now"), is_error: false };
    assert_eq!(told, [input, output]);
}

#[test]
fn output_grows_and_only_what_is_new_is_told() {
    let mut fold = Fold::new(Naming::Field);
    let mut said = |status: &str, text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status, "content": content});
        events(&mut fold, update)
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
fn names_do_not_depend_on_what_a_call_does() {
    for (naming, id, call, name) in [
        (
            Naming::CallId,
            "run_shell_command__call_1",
            json!({"title": "rm -r x", "kind": "execute"}),
            "run_shell_command",
        ),
        (Naming::CallId, "mcp_server_a__b__call_1", json!({"kind": "other"}), "mcp_server_a__b"),
        (Naming::CallId, "resolve-prompt-x", json!({"kind": "read", "name": "never"}), "read"),
        (Naming::CallId, "__x", json!({}), "tool"),
        (Naming::Field, "c", json!({"name": "Bash", "kind": "execute"}), "Bash"),
        (Naming::Field, "c", json!({"_meta": {"claudeCode": {"toolName": "Write"}}, "kind": "edit"}), "Write"),
        (Naming::Field, "c", json!({"title": "Edit x", "kind": "edit"}), "edit"),
        (Naming::Kind, "c", json!({"kind": "execute", "rawInput": {"server": "git", "tool": "log"}}), "mcp__git__log"),
        (Naming::Kind, "c", json!({"name": "exec_command", "kind": "execute"}), "execute"),
    ] {
        let mut call = call;
        call["toolCallId"] = json!(id);
        let (_, asked) = Fold::new(naming).permission(&json!({"toolCall": call}), "raw");
        assert_eq!(asked.name, name, "{call}");
    }
}

#[test]
fn options_that_hold_for_longer_are_never_taken() {
    let options = json!([{"optionId": "a", "kind": "allow_always"}, {"optionId": "r", "kind": "reject_always"}]);
    let params = json!({"toolCall": {"toolCallId": "c"}, "options": options});
    let (_, asked) = Fold::new(Naming::Field).permission(&params, "raw");
    assert_eq!((asked.allow_once, asked.reject_once), (None, None));
}

#[test]
fn garbage_is_counted_and_skipped() {
    let mut fold = Fold::new(Naming::Field);
    for said in [
        json!(null),
        json!({"sessionUpdate": 7}),
        json!({"sessionUpdate": "news", "x": [1]}),
        json!({"sessionUpdate": "tool_call"}),
        json!({"sessionUpdate": "agent_message_chunk", "content": 5}),
        json!({"sessionUpdate": "usage_update", "cost": {"amount": "much"}}),
    ] {
        assert_eq!(events(&mut fold, said), []);
    }
    assert_eq!(fold.update(&json!("no"), "raw"), []);
    assert_eq!(fold.skipped.get("news"), Some(&1));
    for kind in 0..100 {
        events(&mut fold, json!({"sessionUpdate": format!("kind {kind}")}));
    }
    assert!(fold.skipped.len() <= 32);
    let (told, asked) = fold.permission(&json!({"toolCall": 3, "options": "none"}), "raw");
    assert_eq!((told, asked.name.as_str(), asked.allow_once), (vec![], "tool", None));
}

#[test]
fn what_an_agent_tells_the_people_is_a_status() {
    let mut fold = Fold::new(Naming::Field);
    let told = events(&mut fold, json!({"sessionUpdate": "notice", "message": "switched to a smaller model"}));
    assert_eq!(told, [TurnEvent::Status { status: "notice".into(), message: "switched to a smaller model".into() }]);
}
