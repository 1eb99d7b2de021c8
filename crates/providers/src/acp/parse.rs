//! Converts an agent's updates during a prompt to events. Pure and tolerant: unknown updates are counted and skipped,
//! and every field except the kind of an update may be missing.
//!
//! Agents report a tool call in pieces: some announce it with an empty input and fill it in later, some only request
//! permission, some never report its end. [`AcpParser`] reports one `ToolUse` and at most one `ToolResult` per call.

use super::tool_calls::{AcpToolCalls, ToolNaming, text_of};
use crate::{ProviderEvent, TurnEvent};
use domain::usage::Cost;
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum number of unknown kinds that are counted by name.
const MAX_UNKNOWN_KINDS: usize = 32;
const MAX_ERROR_BYTES: usize = 4096;

/// The state of one prompt.
#[derive(Debug)]
pub struct AcpParser {
    pub calls: AcpToolCalls,
    /// The vendor's latest total cost of the session.
    pub cost: Option<Cost>,
    pub model: Option<String>,
    /// Whether the agent has sent text or used a tool.
    pub has_output: bool,
    /// The last message that had an id.
    last_message: Option<LastAgentMessage>,
    /// Set when the agent reports that its engine failed; the text that follows is the error message.
    engine_error: Option<String>,
    pub skipped: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct LastAgentMessage {
    item: String,
    /// Limited to the maximum length of an error.
    text: String,
    is_complete: bool,
}

/// A permission request of an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AcpPermissionRequest {
    pub call: String,
    pub name: String,
    pub input: Value,
    /// The option for this call only. Permanent options are never selected, because the tool policy is checked each
    /// time.
    pub allow_once: Option<String>,
    pub reject_once: Option<String>,
}

impl AcpParser {
    pub fn new(naming: ToolNaming) -> Self {
        Self {
            calls: AcpToolCalls::new(naming),
            cost: None,
            model: None,
            has_output: false,
            last_message: None,
            engine_error: None,
            skipped: BTreeMap::new(),
        }
    }

    /// Handles a `session/update`. `raw` is its line.
    pub fn update(&mut self, params: &Value, raw: &str) -> Vec<ProviderEvent> {
        let update = &params["update"];
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.text(update),
            "agent_thought_chunk" => self.thought(update),
            "tool_call" | "tool_call_update" => {
                self.has_output = true;
                self.calls.update(update, raw)
            }
            "usage_update" => {
                self.usage(update);
                Vec::new()
            }
            "session_info_update" => {
                self.thread_status(&update["_meta"]["codex"]["threadStatus"]["type"]);
                Vec::new()
            }
            "notice" => status("notice", update, raw),
            "compaction_update" => status("compacting", update, raw),
            // Known updates that are not used. A plan is progress that the agent's text and tools show as well.
            known @ ("plan"
            | "user_message_chunk"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "compaction_summary_chunk") => {
                self.skip(known);
                Vec::new()
            }
            unknown => {
                self.skip(unknown);
                Vec::new()
            }
        }
    }

    /// Handles a `session/request_permission`.
    pub fn permission(&mut self, params: &Value, raw: &str) -> (Vec<ProviderEvent>, AcpPermissionRequest) {
        self.has_output = true;
        let option = |kind: &str| {
            let options = params["options"].as_array().into_iter().flatten();
            let found = options.filter(|option| option["kind"] == kind).find_map(|option| option["optionId"].as_str());
            found.map(str::to_owned)
        };
        let (events, call) = self.calls.permission_requested(&params["toolCall"], raw);
        let permission = AcpPermissionRequest {
            name: call.name.clone(),
            input: call.input.clone(),
            call: call.id.clone(),
            allow_once: option("allow_once"),
            reject_once: option("reject_once"),
        };
        (events, permission)
    }

    fn text(&mut self, update: &Value) -> Vec<ProviderEvent> {
        let (item, delta) = chunk(update);
        if let Some(why) = &mut self.engine_error {
            if why.len() + delta.len() <= MAX_ERROR_BYTES {
                why.push_str(&delta);
            }
            return Vec::new();
        }
        if delta.is_empty() {
            return Vec::new();
        }
        self.has_output = true;
        if let Some(item) = &item {
            self.remember(item, &delta);
        }
        let mut events = self.calls.report_announced();
        events.push(TurnEvent::Text { delta, item }.into());
        events
    }

    fn remember(&mut self, item: &str, delta: &str) {
        if self.last_message.as_ref().is_none_or(|last| last.item != item) {
            self.last_message =
                Some(LastAgentMessage { item: item.to_owned(), text: String::new(), is_complete: true });
        }
        if let Some(last) = &mut self.last_message {
            last.is_complete &= last.text.len() + delta.len() <= MAX_ERROR_BYTES;
            if last.is_complete {
                last.text.push_str(delta);
            }
        }
    }

    /// Some agents send an error first as text. Retracts the message that `error` repeats.
    pub fn retract_error_text(&self, error: &str) -> Option<TurnEvent> {
        let last = self.last_message.as_ref().filter(|last| last.is_complete && error.contains(last.text.trim()))?;
        Some(TurnEvent::Retract { item: last.item.clone() })
    }

    /// Returns the error of the agent's engine: such an agent ends its turn as if it had succeeded.
    pub fn engine_error(&self) -> Option<&str> {
        self.engine_error.as_deref()
    }

    fn thought(&mut self, update: &Value) -> Vec<ProviderEvent> {
        let (item, delta) = chunk(update);
        if delta.is_empty() {
            return Vec::new();
        }
        self.has_output = true;
        let mut events = self.calls.report_announced();
        events.push(TurnEvent::Thinking { delta, item }.into());
        events
    }

    fn usage(&mut self, update: &Value) {
        let cost = &update["cost"];
        if cost["currency"].as_str().is_none_or(|currency| currency == "USD")
            && let Ok(amount) = serde_json::from_value(cost["amount"].clone())
        {
            self.cost = Some(amount);
        }
        if let Some(model) = update["_meta"]["_claude/model"].as_str() {
            self.model = Some(model.to_owned());
        }
    }

    fn thread_status(&mut self, status: &Value) {
        match status.as_str() {
            Some("systemError") => self.engine_error = Some(String::new()),
            Some("active") => self.engine_error = None,
            _ => {}
        }
    }

    fn skip(&mut self, kind: &str) {
        let kind: String = kind.chars().take(64).collect();
        if self.skipped.len() < MAX_UNKNOWN_KINDS || self.skipped.contains_key(&kind) {
            *self.skipped.entry(kind).or_default() += 1;
        }
    }
}

/// Returns the message id of a chunk, if present, and its text. Version 1 has no such id, but some agents send one.
fn chunk(update: &Value) -> (Option<String>, String) {
    let content = &update["content"];
    let text = match content["type"].as_str() {
        Some("text") | None => text_of(content),
        Some("resource_link") => content["uri"].as_str().unwrap_or_default().to_owned(),
        Some(other) => format!("({other})"),
    };
    (update["messageId"].as_str().map(str::to_owned), text)
}

fn status(status: &str, update: &Value, raw: &str) -> Vec<ProviderEvent> {
    let text = ["message", "text", "title", "status"].iter().find_map(|field| update[*field].as_str());
    let message = text.map_or_else(|| text_of(&update["content"]), str::to_owned);
    if message.is_empty() {
        return Vec::new();
    }
    vec![ProviderEvent { event: TurnEvent::Status { status: status.into(), message }, raw: Some(raw.to_owned()) }]
}
