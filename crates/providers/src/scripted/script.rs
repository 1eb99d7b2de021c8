//! Parses the list after `!script`: timed events, one JSON object each.

use super::directive::{ScriptStep, is_code, is_tool_name};
use crate::TurnEvent;
use domain::{
    run::RunError,
    usage::{Cost, Usage},
};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

const MAX_EVENTS: usize = 10_000;
const MAX_AFTER_MS: u64 = 600_000;

/// One entry of a script: a delay, and exactly one event.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScriptLine {
    /// The delay after the previous event.
    after_ms: u64,
    /// The item that `text` or `thinking` belongs to, for a later `retract`.
    item: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    retract: Option<String>,
    tool_use: Option<ScriptToolUse>,
    tool_output: Option<ScriptToolOutput>,
    tool_result: Option<ScriptToolResult>,
    approval: Option<ScriptApproval>,
    usage: Option<ScriptUsage>,
    status: Option<ScriptStatus>,
    session: Option<String>,
    fail: Option<ScriptFailure>,
    model_call: bool,
    skip: bool,
    hang: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptToolUse {
    id: String,
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptToolOutput {
    id: String,
    delta: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptToolResult {
    id: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptApproval {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    is_question: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cache_read_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
    #[serde(default)]
    model: Option<String>,
    /// US dollars; without it, the price of the model is used.
    #[serde(default)]
    cost: Option<Cost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptStatus {
    status: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFailure {
    code: String,
    message: String,
}

pub fn parse(json: &str) -> Result<Vec<ScriptStep>, String> {
    let lines: Vec<Value> =
        serde_json::from_str(json).map_err(|error| format!("the script is not a JSON list: {error}"))?;
    if lines.len() > MAX_EVENTS {
        return Err(format!("a script has at most {MAX_EVENTS} events, this one has {}", lines.len()));
    }
    let mut steps = Vec::with_capacity(lines.len());
    for (index, line) in lines.into_iter().enumerate() {
        let at = |problem: String| format!("event {} of the script: {problem}", index + 1);
        if let Some(ScriptStep::Fail(_) | ScriptStep::Skip | ScriptStep::Hang { .. }) = steps.last() {
            return Err(at("the event before ends the turn".to_owned()));
        }
        if !line.is_object() {
            return Err(at("it is not a JSON object".to_owned()));
        }
        let line: ScriptLine = serde_json::from_value(line).map_err(|error| at(error.to_string()))?;
        if line.after_ms > MAX_AFTER_MS {
            return Err(at(format!("after_ms is at most {MAX_AFTER_MS}")));
        }
        if line.after_ms > 0 {
            steps.push(ScriptStep::Wait(Duration::from_millis(line.after_ms)));
        }
        steps.push(step(line).map_err(at)?);
    }
    Ok(steps)
}

fn step(line: ScriptLine) -> Result<ScriptStep, String> {
    let has_item = line.item.is_some();
    let takes_item = line.text.is_some() || line.thinking.is_some();
    let item = line.item;
    let events = [
        line.text.map(|delta| ScriptStep::Send(TurnEvent::Text { delta, item: item.clone() })),
        line.thinking.map(|delta| ScriptStep::Send(TurnEvent::Thinking { delta, item: item.clone() })),
        line.retract.map(|item| ScriptStep::Send(TurnEvent::Retract { item })),
        line.tool_use.map(|it| ScriptStep::Send(TurnEvent::ToolUse { id: it.id, name: it.name, input: it.input })),
        line.tool_output.map(|it| ScriptStep::Send(TurnEvent::ToolOutput { id: it.id, delta: it.delta })),
        line.tool_result.map(|ScriptToolResult { id, content, is_error }| {
            ScriptStep::Send(TurnEvent::ToolResult { id, content, is_error })
        }),
        line.approval.map(|ScriptApproval { id, name, input, is_question }| ScriptStep::Ask {
            tool_use_id: id,
            name,
            input,
            is_question,
            says_decision: false,
        }),
        line.usage.map(|usage| ScriptStep::Send(usage.into())),
        line.status.map(|ScriptStatus { status, message }| ScriptStep::Send(TurnEvent::Status { status, message })),
        line.session.map(|id| ScriptStep::Send(TurnEvent::Session { id })),
        line.fail.map(|ScriptFailure { code, message }| ScriptStep::Fail(RunError { code, message })),
        line.model_call.then_some(ScriptStep::Send(TurnEvent::ModelCall)),
        line.skip.then_some(ScriptStep::Skip),
        line.hang.then_some(ScriptStep::Hang { linger: Duration::ZERO }),
    ];
    let mut events = events.into_iter().flatten();
    let (Some(step), None) = (events.next(), events.next()) else {
        return Err("it needs exactly one of text, thinking, retract, tool_use, tool_output, tool_result, approval, \
                    usage, status, session, model_call, fail, skip, hang"
            .to_owned());
    };
    match &step {
        _ if has_item && !takes_item => Err("item goes with text or thinking".to_owned()),
        ScriptStep::Send(TurnEvent::ToolUse { name, .. }) | ScriptStep::Ask { name, .. } if !is_tool_name(name) => {
            Err("name is not the name of a tool".to_owned())
        }
        ScriptStep::Fail(error) if !is_code(&error.code) => Err("code is a word in snake_case".to_owned()),
        _ => Ok(step),
    }
}

impl From<ScriptUsage> for TurnEvent {
    fn from(line: ScriptUsage) -> Self {
        let usage = Usage {
            input_tokens: line.input_tokens,
            output_tokens: line.output_tokens,
            cache_read_tokens: line.cache_read_tokens,
            cache_write_tokens: line.cache_write_tokens,
        };
        Self::Usage { usage, model: line.model.or_else(|| Some(domain::prices::SCRIPTED.to_owned())), cost: line.cost }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_EVENTS, parse};
    use crate::{TurnEvent, scripted::directive::ScriptStep};
    use domain::{run::RunError, usage::Cost, usage::Usage};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn one(line: Value) -> Vec<ScriptStep> {
        parse(&json!([line]).to_string()).unwrap()
    }

    #[test]
    fn parses_every_kind_of_event() {
        let text =
            |delta: &str, item: Option<&str>| TurnEvent::Text { delta: delta.into(), item: item.map(Into::into) };
        let table = [
            (json!({"text": "a"}), text("a", None)),
            (json!({"text": "", "item": "1"}), text("", Some("1"))),
            (json!({"thinking": "a"}), TurnEvent::Thinking { delta: "a".into(), item: None }),
            (json!({"retract": "1"}), TurnEvent::Retract { item: "1".into() }),
            (
                json!({"tool_use": {"id": "t", "name": "look", "input": {"a": 1}}}),
                TurnEvent::ToolUse { id: "t".into(), name: "look".into(), input: json!({"a": 1}) },
            ),
            (
                json!({"tool_output": {"id": "t", "delta": "x"}}),
                TurnEvent::ToolOutput { id: "t".into(), delta: "x".into() },
            ),
            (
                json!({"tool_result": {"id": "t", "content": [1], "is_error": true}}),
                TurnEvent::ToolResult { id: "t".into(), content: json!([1]), is_error: true },
            ),
            (
                json!({"usage": {"input_tokens": 3, "model": "gpt-5", "cost": 0.25}}),
                TurnEvent::Usage {
                    usage: Usage { input_tokens: 3, ..Usage::default() },
                    model: Some("gpt-5".into()),
                    cost: Some(Cost::from_nanos(250_000_000)),
                },
            ),
            (
                json!({"status": {"status": "warming", "message": "Warming up"}}),
                TurnEvent::Status { status: "warming".into(), message: "Warming up".into() },
            ),
            (json!({"session": "s"}), TurnEvent::Session { id: "s".into() }),
            (json!({"model_call": true}), TurnEvent::ModelCall),
        ];
        for (line, event) in table {
            assert_eq!(one(line.clone()), vec![ScriptStep::Send(event)], "{line}");
        }
        for is_question in [false, true] {
            let (name, input) = ("Bash".to_owned(), Value::Null);
            let ask = ScriptStep::Ask { tool_use_id: None, name, input, is_question, says_decision: false };
            assert_eq!(one(json!({"approval": {"name": "Bash", "is_question": is_question}})), vec![ask]);
        }
        assert_eq!(
            one(json!({"after_ms": 5, "skip": true})),
            vec![ScriptStep::Wait(Duration::from_millis(5)), ScriptStep::Skip]
        );
        assert_eq!(one(json!({"hang": true})), vec![ScriptStep::Hang { linger: Duration::ZERO }]);
        let fail = ScriptStep::Fail(RunError::new("gone", "It is gone."));
        assert_eq!(one(json!({"fail": {"code": "gone", "message": "It is gone."}})), vec![fail]);
    }

    #[test]
    fn invalid_scripts_return_a_reason_and_the_position() {
        let table = [
            (json!({"text": "a"}), "the script is not a JSON list"),
            (json!([{"text": "a"}, {"txt": "b"}]), "event 2 of the script: unknown field `txt`"),
            (json!([{"tool_use": {"id": "t", "name": "x", "args": 1}}]), "event 1 of the script: unknown field `args`"),
            (json!([{"tool_use": {"name": "x"}}]), "missing field `id`"),
            (json!([{"tool_use": {"id": "t", "name": "a b"}}]), "name is not the name of a tool"),
            (json!([{"usage": {"tokens": 1}}]), "unknown field `tokens`"),
            (json!([{"usage": {"input_tokens": -1}}]), "invalid value"),
            (json!([{"text": 5}]), "invalid type"),
            (json!([{"after_ms": 5}]), "exactly one of text"),
            (json!([{"text": "a", "thinking": "b"}]), "exactly one of text"),
            (json!([{"skip": false}]), "exactly one of text"),
            (json!([{"after_ms": 600_001, "text": "a"}]), "after_ms is at most 600000"),
            (json!([{"after_ms": -1, "text": "a"}]), "invalid value"),
            (json!([{"status": {"status": "a", "message": "b"}, "item": "1"}]), "item goes with text or thinking"),
            (json!([{"fail": {"code": "No Code", "message": ""}}]), "code is a word in snake_case"),
            (json!([{"hang": true}, {"text": "a"}]), "event 2 of the script: the event before ends the turn"),
            (json!(["text"]), "event 1 of the script: it is not a JSON object"),
            (json!([[0, null, "text"]]), "event 1 of the script: it is not a JSON object"),
            (json!(vec![json!({"text": "a"}); MAX_EVENTS + 1]), "at most 10000 events, this one has 10001"),
        ];
        for (script, expected) in table {
            let problem = parse(&script.to_string()).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(parse(&"[".repeat(100_000)).unwrap_err().contains("not a JSON list"));
    }
}
