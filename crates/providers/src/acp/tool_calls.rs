//! Assembles the tool calls of a prompt from the updates in which agents report them.

use crate::{ProviderEvent, TurnEvent};
use domain::mcp::tool_name;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Maximum number of tracked calls; further calls are ignored.
const MAX_CALLS: usize = 10_000;
/// How much of a call's output is kept, for results that come without output.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

const NO_OUTPUT: &str = "(the agent did not pass on the output)";
const NO_REASON: &str = "(the agent did not say what went wrong)";

/// Where an agent puts the name of a tool. Tool policies match names, so the name must be the same in every call. The
/// title is not usable: it has the command line or the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolNaming {
    /// In a field, `name` or `_meta.….toolName`; otherwise the kind is used.
    Field,
    /// Before the last `__` of the call's id; otherwise the kind is used.
    CallId,
    /// Not in every message of a call, so the kind is used (`execute`, `edit`, `read`, …). An MCP tool is named by its
    /// server and tool.
    Kind,
}

#[derive(Debug)]
pub struct AcpToolCalls {
    naming: ToolNaming,
    calls: HashMap<String, AcpToolCall>,
    /// Calls that are announced but not reported yet, because their input may be incomplete; in order.
    announced: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct AcpToolCall {
    pub id: String,
    pub name: String,
    pub input: Value,
    kind: String,
    title: String,
    content: Value,
    locations: Value,
    output: String,
    reported: bool,
    ended: bool,
    raw: String,
}

impl AcpToolCalls {
    pub fn new(naming: ToolNaming) -> Self {
        Self { naming, calls: HashMap::new(), announced: Vec::new() }
    }

    /// Handles a `tool_call` or `tool_call_update`; agents use them interchangeably.
    pub fn update(&mut self, update: &Value, raw: &str) -> Vec<ProviderEvent> {
        let mut events = Vec::new();
        let Some(id) = self.record(update, raw) else { return events };
        let status = update["status"].as_str().unwrap_or_default();
        match status {
            "in_progress" => {
                self.report(&id, &mut events);
                self.output(&id, update, &mut events);
            }
            "completed" | "failed" => {
                self.report(&id, &mut events);
                self.output(&id, update, &mut events);
                self.end(&id, update, status == "failed", raw, &mut events);
            }
            // The call is announced or updated; its input may still grow.
            _ => {
                self.announce(&id);
                self.output(&id, update, &mut events);
            }
        }
        events
    }

    /// Handles a call that needs permission, whether it is known or not.
    pub fn permission_requested(&mut self, call: &Value, raw: &str) -> (Vec<ProviderEvent>, AcpToolCall) {
        let mut events = Vec::new();
        let Some(id) = self.record(call, raw) else {
            return (
                events,
                AcpToolCall {
                    name: kind_of(call).to_owned(),
                    input: input_of(&AcpToolCall::default()),
                    ..AcpToolCall::default()
                },
            );
        };
        self.report(&id, &mut events);
        (events, self.calls.get(&id).cloned().unwrap_or_default())
    }

    /// Ends a call that the user or the policy denied. Not every agent reports the end.
    pub fn denied(&mut self, id: &str, why: &str) -> Option<TurnEvent> {
        let call = self.calls.get_mut(id).filter(|call| call.reported && !call.ended)?;
        call.ended = true;
        Some(TurnEvent::ToolResult { id: id.to_owned(), content: json!(why), is_error: true })
    }

    /// Ends a call whose permission request was withdrawn: it never ran.
    pub fn withdrawn(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.ended = true;
        }
    }

    /// Whether a call is still running.
    pub fn is_running(&self) -> bool {
        self.calls.values().any(|call| call.reported && !call.ended)
    }

    /// Reports the announced calls with their current input, because they must have started.
    pub fn report_announced(&mut self) -> Vec<ProviderEvent> {
        let mut events = Vec::new();
        for id in std::mem::take(&mut self.announced) {
            self.report(&id, &mut events);
        }
        events
    }

    pub fn has_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the running call whose name ends with `name`.
    pub fn running_call(&self, name: &str) -> Option<&str> {
        let mut open = self.calls.values().filter(|call| call.reported && !call.ended && call.name.ends_with(name));
        open.next().map(|call| call.id.as_str())
    }

    fn record(&mut self, update: &Value, raw: &str) -> Option<String> {
        let id = update["toolCallId"].as_str().filter(|id| !id.is_empty())?.to_owned();
        if !self.calls.contains_key(&id) && self.calls.len() >= MAX_CALLS {
            return None;
        }
        let call =
            self.calls.entry(id.clone()).or_insert_with(|| AcpToolCall { id: id.clone(), ..AcpToolCall::default() });
        let text = |field: &str| update[field].as_str().filter(|text| !text.is_empty());
        if let Some(kind) = text("kind") {
            call.kind = kind.to_owned();
        }
        if let Some(title) = text("title") {
            call.title = title.to_owned();
        }
        if !call.reported {
            // At the end, the content is the tool's output and not its input.
            let is_over = matches!(update["status"].as_str(), Some("completed" | "failed"));
            for (field, kept) in [("content", &mut call.content), ("locations", &mut call.locations)] {
                if !is_over && update[field].as_array().is_some_and(|list| !list.is_empty()) {
                    *kept = update[field].clone();
                }
            }
            let input = &update["rawInput"];
            if is_filled(input) || (call.input.is_null() && input.is_object()) {
                call.input = input.clone();
            }
            call.raw = raw.to_owned();
            if let Some(name) = name_of(self.naming, &id, update) {
                call.name = name;
            }
        }
        Some(id)
    }

    fn announce(&mut self, id: &str) {
        if self.calls.get(id).is_some_and(|call| !call.reported) && !self.announced.iter().any(|held| held == id) {
            self.announced.push(id.to_owned());
        }
    }

    fn report(&mut self, id: &str, events: &mut Vec<ProviderEvent>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.reported) else { return };
        self.announced.retain(|held| held != id);
        call.reported = true;
        if call.name.is_empty() {
            call.name = if call.kind.is_empty() { "tool".to_owned() } else { call.kind.clone() };
        }
        call.input = input_of(call);
        let event = TurnEvent::ToolUse { id: id.to_owned(), name: call.name.clone(), input: call.input.clone() };
        events.push(ProviderEvent { event, raw: Some(std::mem::take(&mut call.raw)) });
    }

    /// Reports output while the tool runs. Each update has the full content, so only the added part is new.
    fn output(&mut self, id: &str, update: &Value, events: &mut Vec<ProviderEvent>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| call.reported && !call.ended) else { return };
        let terminal = ["terminal_output_delta", "terminal_output"];
        let mut delta: String = terminal.iter().filter_map(|field| update["_meta"][*field]["data"].as_str()).collect();
        if delta.is_empty() && update["sessionUpdate"] == "tool_call_update" && update["status"] == "in_progress" {
            let content = text_of(&update["content"]);
            delta = content.strip_prefix(call.output.as_str()).unwrap_or_default().to_owned();
        }
        if delta.is_empty() {
            return;
        }
        if call.output.len() + delta.len() <= MAX_OUTPUT_BYTES {
            call.output.push_str(&delta);
        }
        events.push(TurnEvent::ToolOutput { id: id.to_owned(), delta }.into());
    }

    fn end(&mut self, id: &str, update: &Value, is_error: bool, raw: &str, events: &mut Vec<ProviderEvent>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.ended) else { return };
        call.ended = true;
        let content = if is_filled(&update["rawOutput"]) {
            plain(&update["rawOutput"])
        } else if update["content"].as_array().is_some_and(|list| !list.is_empty()) {
            plain(&update["content"])
        } else if !call.output.is_empty() {
            json!(call.output)
        } else {
            json!(if is_error { NO_REASON } else { NO_OUTPUT })
        };
        let event = TurnEvent::ToolResult { id: id.to_owned(), content, is_error };
        events.push(ProviderEvent { event, raw: Some(raw.to_owned()) });
    }
}

fn name_of(naming: ToolNaming, id: &str, update: &Value) -> Option<String> {
    match naming {
        ToolNaming::Kind => {
            let (server, tool) = (update["rawInput"]["server"].as_str()?, update["rawInput"]["tool"].as_str()?);
            Some(tool_name(server, tool))
        }
        ToolNaming::CallId => id.rsplit_once("__").map(|(name, _)| name.to_owned()).filter(|name| !name.is_empty()),
        ToolNaming::Field => {
            let inside = update["_meta"].as_object().into_iter().flat_map(Map::values);
            let names = std::iter::once(&update["name"]).chain(inside.map(|vendor| &vendor["toolName"]));
            names.filter_map(Value::as_str).find(|name| !name.is_empty()).map(str::to_owned)
        }
    }
}

fn kind_of(call: &Value) -> &str {
    call["kind"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("tool")
}

/// The input shown to users. Agents that do not send the input send what they would display instead.
fn input_of(call: &AcpToolCall) -> Value {
    if is_filled(&call.input) || (call.input.is_object() && !is_filled(&call.content)) {
        return call.input.clone();
    }
    let content = plain(&call.content);
    // The arguments of an MCP tool are sent as text.
    if let Some(arguments) = content.as_str().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok()) {
        return Value::Object(arguments);
    }
    let shown = [("title", json!(call.title)), ("content", content), ("locations", call.locations.clone())];
    Value::Object(
        shown.into_iter().filter(|(_, value)| is_filled(value)).map(|(name, value)| (name.into(), value)).collect(),
    )
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Returns content as a string if it is only text; otherwise unchanged.
fn plain(content: &Value) -> Value {
    let is_text = |part: &Value| part["type"] == "text" || part["content"]["type"] == "text";
    match content.as_array() {
        Some(list) if list.iter().all(is_text) => json!(text_of(content)),
        _ => content.clone(),
    }
}

/// Returns all text in a content block or in a list of content blocks.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text_of).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => match (fields.get("text"), fields.get("content")) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(inner)) => text_of(inner),
            _ => String::new(),
        },
        _ => String::new(),
    }
}
