//! Parses items: the model's messages, reasoning and tool calls, from start to completion.

use super::{CodexParser, OpenItem, text};
use crate::TurnEvent;
use domain::mcp::tool_name;
use serde_json::{Map, Value, json};

/// A tool call as shown in the room.
#[derive(Clone, Debug, PartialEq)]
pub struct CodexToolCall {
    pub name: String,
    pub input: Value,
    /// Whether it runs a command that may outlive the turn.
    pub is_command: bool,
    /// The MCP server that provides the tool.
    pub server: Option<String>,
}

impl CodexParser {
    pub(super) fn started(&mut self, item: &Value) -> Vec<TurnEvent> {
        let (Some(kind), Some(id)) = (text(item, "type"), text(item, "id")) else { return Vec::new() };
        let mut events = Vec::new();
        if kind == "userMessage" {
            // The turn was steered: open messages are kept as they are and never complete.
            self.open.retain(|(_, open)| matches!(open, OpenItem::Tool(_)));
            return events;
        }
        if std::mem::take(&mut self.metered) {
            events.push(TurnEvent::ModelCall);
        }
        match kind {
            "agentMessage" | "plan" => self.open.push((id.to_owned(), OpenItem::Message(String::new()))),
            "reasoning" => self.open.push((id.to_owned(), OpenItem::Reasoning(String::new()))),
            "contextCompaction" => events.push(TurnEvent::Status {
                status: "compacting".into(),
                message: "Codex is compacting the conversation.".into(),
            }),
            // The query is only known at the end.
            "webSearch" if text(item, "query").unwrap_or_default().is_empty() => {}
            _ => match tool(kind, item) {
                Some(tool) => events.push(self.begin(id, tool)),
                None => self.unknown(kind),
            },
        }
        events
    }

    pub(super) fn completed(&mut self, item: &Value) -> Vec<TurnEvent> {
        let (Some(kind), Some(id)) = (text(item, "type"), text(item, "id")) else { return Vec::new() };
        if !self.done.insert(id.to_owned()) {
            return Vec::new();
        }
        match kind {
            "agentMessage" | "plan" => {
                let so_far = match self.close(id) {
                    Some(OpenItem::Message(so_far)) => so_far,
                    _ => String::new(),
                };
                missing_text(&so_far, text(item, "text").unwrap_or_default(), id, |delta, item| TurnEvent::Text {
                    delta,
                    item,
                })
            }
            "reasoning" => {
                let so_far = match self.close(id) {
                    Some(OpenItem::Reasoning(so_far)) => so_far,
                    _ => String::new(),
                };
                // The deltas may mix summary and full text, so the final text is used only if there were none.
                if !so_far.is_empty() {
                    return Vec::new();
                }
                let whole =
                    [joined(item, "summary"), joined(item, "content")].into_iter().find(|text| !text.is_empty());
                let thinking = |delta, item| TurnEvent::Thinking { delta, item };
                missing_text("", &whole.unwrap_or_default(), id, thinking)
            }
            "contextCompaction" => vec![TurnEvent::Status {
                status: "compacted".into(),
                message: "Codex compacted the conversation.".into(),
            }],
            _ => {
                let mut events = Vec::new();
                let was_open = self.close(id).is_some();
                let Some(tool) = tool(kind, item) else { return events };
                if !was_open {
                    events.push(TurnEvent::ToolUse { id: id.to_owned(), name: tool.name, input: tool.input });
                }
                let (content, is_error) = outcome(kind, item);
                events.push(TurnEvent::ToolResult { id: id.to_owned(), content, is_error });
                events
            }
        }
    }

    /// The changes of a patch may grow until its approval is requested.
    pub(super) fn patch(&mut self, params: &Value) {
        let (Some(id), Some(changes)) = (text(params, "itemId"), params.get("changes")) else { return };
        if let Some(OpenItem::Tool(tool)) = self.open_item(id) {
            tool.input = json!({"changes": changes});
        }
    }

    fn begin(&mut self, id: &str, tool: CodexToolCall) -> TurnEvent {
        self.has_started_commands |= tool.is_command;
        let event = TurnEvent::ToolUse { id: id.to_owned(), name: tool.name.clone(), input: tool.input.clone() };
        self.open.push((id.to_owned(), OpenItem::Tool(tool)));
        event
    }

    fn unknown(&mut self, kind: &str) {
        self.skipped += 1;
        tracing::debug!(kind, "unknown item type");
    }
}

/// Returns the events that complete `so_far` to `whole`. If the text differs, it is retracted and sent again.
fn missing_text(so_far: &str, whole: &str, id: &str, event: fn(String, Option<String>) -> TurnEvent) -> Vec<TurnEvent> {
    let item = Some(id.to_owned());
    match whole.strip_prefix(so_far) {
        Some("") => Vec::new(),
        Some(missing) => vec![event(missing.to_owned(), item)],
        // An empty final text means a missing field, not a retraction.
        None if whole.is_empty() => Vec::new(),
        None => vec![TurnEvent::Retract { item: id.to_owned() }, event(whole.to_owned(), item)],
    }
}

fn joined(item: &Value, field: &str) -> String {
    let parts = item.get(field).and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n")
}

fn tool(kind: &str, item: &Value) -> Option<CodexToolCall> {
    let field = |name: &str| item.get(name).cloned().unwrap_or(Value::Null);
    let named = |name: &str| text(item, name).unwrap_or("unknown").to_owned();
    let plain =
        |name: &str, input: Value| CodexToolCall { name: name.to_owned(), input, is_command: false, server: None };
    Some(match kind {
        "commandExecution" => CodexToolCall {
            is_command: true,
            ..plain("shell", json!({"command": field("command"), "cwd": field("cwd")}))
        },
        "fileChange" => plain("apply_patch", json!({"changes": field("changes")})),
        "mcpToolCall" => CodexToolCall {
            server: Some(named("server")),
            ..plain(&tool_name(&named("server"), &named("tool")), field("arguments"))
        },
        "dynamicToolCall" => match text(item, "namespace") {
            Some(namespace) => plain(&format!("{namespace}__{}", named("tool")), field("arguments")),
            None => plain(&named("tool"), field("arguments")),
        },
        "webSearch" => plain("web_search", without_nulls(&[("query", field("query")), ("action", field("action"))])),
        "imageView" => plain("view_image", json!({"path": field("path")})),
        "imageGeneration" => plain("generate_image", without_nulls(&[("prompt", field("revisedPrompt"))])),
        "collabAgentToolCall" => plain(
            &format!("agents__{}", named("tool")),
            without_nulls(&[("prompt", field("prompt")), ("model", field("model"))]),
        ),
        _ => return None,
    })
}

/// Returns the result of a tool call, and whether it is an error.
fn outcome(kind: &str, item: &Value) -> (Value, bool) {
    let field = |name: &str| item.get(name).cloned().unwrap_or(Value::Null);
    let status = text(item, "status").unwrap_or("completed");
    let failed = matches!(status, "failed" | "declined");
    match kind {
        "commandExecution" => {
            let exit = item.get("exitCode").and_then(Value::as_i64);
            let content = without_nulls(&[
                ("output", text(item, "aggregatedOutput").unwrap_or_default().into()),
                ("exit_code", exit.into()),
                ("status", status.into()),
            ]);
            (content, failed || exit.is_some_and(|code| code != 0))
        }
        "fileChange" => (json!({"status": status}), failed),
        "mcpToolCall" => match item.get("error").filter(|error| !error.is_null()) {
            Some(error) => (text(error, "message").map_or_else(|| error.clone(), Into::into), true),
            None => {
                let result = field("result");
                let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
                (result.get("content").cloned().unwrap_or(result), failed || is_error)
            }
        },
        "dynamicToolCall" => {
            let succeeded = item.get("success").and_then(Value::as_bool).unwrap_or(!failed);
            let items = item.get("contentItems").and_then(Value::as_array).into_iter().flatten();
            let texts: Vec<&str> = items.filter_map(|item| text(item, "text")).collect();
            (texts.join("\n").into(), !succeeded)
        }
        "webSearch" => (without_nulls(&[("results", field("results"))]), failed),
        "imageGeneration" => {
            (without_nulls(&[("saved_path", field("savedPath")), ("failure", field("failure"))]), failed)
        }
        _ => (json!({"status": status}), failed),
    }
}

/// Returns an object without the null fields.
fn without_nulls(fields: &[(&str, Value)]) -> Value {
    let there = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(there.map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>())
}
