//! The tool calls of a prompt, put together from the pieces in which agents tell of them.

use crate::{Reported, TurnEvent};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// More calls than any prompt makes; beyond that they are no longer told apart.
const MAX_CALLS: usize = 10_000;
/// How much of a call's output is kept for its result, where the result itself comes without any.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

const NO_OUTPUT: &str = "(the agent did not pass on the output)";
const NO_REASON: &str = "(the agent did not say what went wrong)";

/// Where an agent puts the name of a tool. Tool policies match names, so a name must not change from call to call: the
/// title never is one, it holds the command line or the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Naming {
    /// In a field, `name` or `_meta.….toolName`; else the kind.
    Field,
    /// Before the last `__` of the call's id; else the kind.
    CallId,
    /// Nowhere in all messages of a call: only the kind is the same in each (`execute`, `edit`, `read`, …). An MCP tool
    /// is named by its server and itself.
    Kind,
}

#[derive(Debug)]
pub struct Calls {
    naming: Naming,
    calls: HashMap<String, Call>,
    /// Announced, but perhaps not with their whole input yet; in order.
    held: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub input: Value,
    kind: String,
    title: String,
    content: Value,
    locations: Value,
    output: String,
    told: bool,
    ended: bool,
    raw: String,
}

impl Calls {
    pub fn new(naming: Naming) -> Self {
        Self { naming, calls: HashMap::new(), held: Vec::new() }
    }

    /// A `tool_call` or a `tool_call_update`; agents use the one for the other.
    pub fn update(&mut self, update: &Value, raw: &str) -> Vec<Reported> {
        let mut events = Vec::new();
        let Some(id) = self.learn(update, raw) else { return events };
        let status = update["status"].as_str().unwrap_or_default();
        match status {
            "in_progress" => {
                self.tell(&id, &mut events);
                self.output(&id, update, &mut events);
            }
            "completed" | "failed" => {
                self.tell(&id, &mut events);
                self.output(&id, update, &mut events);
                self.end(&id, update, status == "failed", raw, &mut events);
            }
            // Announced, or told more of what was announced: its input may still grow.
            _ => {
                self.hold(&id);
                self.output(&id, update, &mut events);
            }
        }
        events
    }

    /// A call that needs permission, known before or not.
    pub fn asked(&mut self, call: &Value, raw: &str) -> (Vec<Reported>, Call) {
        let mut events = Vec::new();
        let Some(id) = self.learn(call, raw) else {
            return (
                events,
                Call { name: kind_of(call).to_owned(), input: input_of(&Call::default()), ..Call::default() },
            );
        };
        self.tell(&id, &mut events);
        (events, self.calls.get(&id).cloned().unwrap_or_default())
    }

    /// The person or the policy said no. Not every agent tells that the call ended with it.
    pub fn denied(&mut self, id: &str, why: &str) -> Option<TurnEvent> {
        let call = self.calls.get_mut(id).filter(|call| call.told && !call.ended)?;
        call.ended = true;
        Some(TurnEvent::ToolResult { id: id.to_owned(), content: json!(why), is_error: true })
    }

    /// It was asked for, and the question is withdrawn: it never ran.
    pub fn withdrawn(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.ended = true;
        }
    }

    /// Whether there is a call of which nobody has seen the end.
    pub fn is_running(&self) -> bool {
        self.calls.values().any(|call| call.told && !call.ended)
    }

    /// The calls that were announced are told with what is known of them: they have begun by now.
    pub fn release(&mut self) -> Vec<Reported> {
        let mut events = Vec::new();
        for id in std::mem::take(&mut self.held) {
            self.tell(&id, &mut events);
        }
        events
    }

    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call under way whose name ends with this one.
    pub fn open(&self, name: &str) -> Option<&str> {
        let mut open = self.calls.values().filter(|call| call.told && !call.ended && call.name.ends_with(name));
        open.next().map(|call| call.id.as_str())
    }

    fn learn(&mut self, update: &Value, raw: &str) -> Option<String> {
        let id = update["toolCallId"].as_str().filter(|id| !id.is_empty())?.to_owned();
        if !self.calls.contains_key(&id) && self.calls.len() >= MAX_CALLS {
            return None;
        }
        let call = self.calls.entry(id.clone()).or_insert_with(|| Call { id: id.clone(), ..Call::default() });
        let text = |field: &str| update[field].as_str().filter(|text| !text.is_empty());
        if let Some(kind) = text("kind") {
            call.kind = kind.to_owned();
        }
        if let Some(title) = text("title") {
            call.title = title.to_owned();
        }
        if !call.told {
            // With the end comes what the tool said, no longer what it is to do.
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

    fn hold(&mut self, id: &str) {
        if self.calls.get(id).is_some_and(|call| !call.told) && !self.held.iter().any(|held| held == id) {
            self.held.push(id.to_owned());
        }
    }

    fn tell(&mut self, id: &str, events: &mut Vec<Reported>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.told) else { return };
        self.held.retain(|held| held != id);
        call.told = true;
        if call.name.is_empty() {
            call.name = if call.kind.is_empty() { "tool".to_owned() } else { call.kind.clone() };
        }
        call.input = input_of(call);
        let event = TurnEvent::ToolUse { id: id.to_owned(), name: call.name.clone(), input: call.input.clone() };
        events.push(Reported { event, raw: Some(std::mem::take(&mut call.raw)) });
    }

    /// Output while the tool runs. Content replaces what was sent before, so only what was added to it is new.
    fn output(&mut self, id: &str, update: &Value, events: &mut Vec<Reported>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| call.told && !call.ended) else { return };
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

    fn end(&mut self, id: &str, update: &Value, is_error: bool, raw: &str, events: &mut Vec<Reported>) {
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
        events.push(Reported { event, raw: Some(raw.to_owned()) });
    }
}

fn name_of(naming: Naming, id: &str, update: &Value) -> Option<String> {
    match naming {
        Naming::Kind => {
            let (server, tool) = (update["rawInput"]["server"].as_str()?, update["rawInput"]["tool"].as_str()?);
            Some(format!("mcp__{server}__{tool}"))
        }
        Naming::CallId => id.rsplit_once("__").map(|(name, _)| name.to_owned()).filter(|name| !name.is_empty()),
        Naming::Field => {
            let inside = update["_meta"].as_object().into_iter().flat_map(Map::values);
            let names = std::iter::once(&update["name"]).chain(inside.map(|vendor| &vendor["toolName"]));
            names.filter_map(Value::as_str).find(|name| !name.is_empty()).map(str::to_owned)
        }
    }
}

fn kind_of(call: &Value) -> &str {
    call["kind"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("tool")
}

/// What a person is to judge a call by. Agents that do not send the input itself send what they would show of it.
fn input_of(call: &Call) -> Value {
    if is_filled(&call.input) || (call.input.is_object() && !is_filled(&call.content)) {
        return call.input.clone();
    }
    let content = plain(&call.content);
    // An MCP tool's arguments come as text.
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

/// Content as text where it is nothing but text, else as it came.
fn plain(content: &Value) -> Value {
    let is_text = |part: &Value| part["type"] == "text" || part["content"]["type"] == "text";
    match content.as_array() {
        Some(list) if list.iter().all(is_text) => json!(text_of(content)),
        _ => content.clone(),
    }
}

/// All text in a content block, or in a list of such.
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
