//! Parses the notifications of `codex app-server` for one turn. Pure: method and parameters in, events out.
//!
//! Text is keyed by item, because a broken stream starts again under a new item and the old one is retracted. Unknown
//! methods and items are counted and skipped.

mod failure;
mod item;
mod meter;
#[cfg(test)]
mod tests;

pub use failure::{failure, not_logged_in};
pub use item::CodexToolCall;

use crate::TurnEvent;
use domain::{run::RunError, usage::Usage};
use meter::CodexUsageMeter;
use serde_json::Value;
use std::collections::HashSet;

/// The result of one notification.
#[derive(Debug, Default, PartialEq)]
pub struct ParsedNotification {
    pub events: Vec<TurnEvent>,
    pub end: Option<CodexTurnEnd>,
    /// Codex is retrying a request that cannot succeed.
    pub hopeless: Option<RunError>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CodexTurnEnd {
    Completed,
    Interrupted,
    Failed(RunError),
}

/// Keeps the state of a turn between notifications.
#[derive(Debug)]
pub struct CodexParser {
    turn: Option<String>,
    begun: bool,
    model: Option<String>,
    meter: CodexUsageMeter,
    /// Items that started and have not completed, oldest first.
    open: Vec<(String, OpenItem)>,
    done: HashSet<String>,
    /// A model call was metered, so the next item belongs to another call.
    metered: bool,
    last_error: Option<RunError>,
    has_started_commands: bool,
    skipped: u64,
}

#[derive(Debug)]
enum OpenItem {
    Message(String),
    Reasoning(String),
    Tool(CodexToolCall),
}

impl CodexParser {
    /// `total` is the thread's previous usage, if known.
    pub fn new(model: Option<String>, total: Option<Usage>) -> Self {
        Self {
            turn: None,
            begun: false,
            model,
            meter: CodexUsageMeter::new(total),
            open: Vec::new(),
            done: HashSet::new(),
            metered: false,
            last_error: None,
            has_started_commands: false,
            skipped: 0,
        }
    }

    pub fn turn(&self) -> Option<&str> {
        self.turn.as_deref()
    }

    /// Sets the turn id from the response to `turn/start`; the notification may come before or after it.
    pub fn set_turn(&mut self, id: &str) {
        self.turn = Some(id.to_owned());
    }

    /// The thread's total usage.
    pub fn total(&self) -> Option<Usage> {
        self.meter.total()
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns a tool call that is running or waits for approval.
    pub fn tool(&self, id: &str) -> Option<&CodexToolCall> {
        self.tools().find(|(open, _)| *open == id).map(|(_, tool)| tool)
    }

    pub fn tools(&self) -> impl Iterator<Item = (&str, &CodexToolCall)> {
        self.open.iter().filter_map(|(id, open)| match open {
            OpenItem::Tool(tool) => Some((id.as_str(), tool)),
            OpenItem::Message(_) | OpenItem::Reasoning(_) => None,
        })
    }

    pub fn has_running_commands(&self) -> bool {
        self.tools().any(|(_, tool)| tool.is_command)
    }

    /// Whether any command was started in this turn.
    pub fn has_started_commands(&self) -> bool {
        self.has_started_commands
    }

    pub fn apply(&mut self, method: &str, params: &Value) -> ParsedNotification {
        let turn = text(params, "turnId").or_else(|| text(params.get("turn")?, "id"));
        if method == "turn/started" && self.turn.is_none() {
            self.turn = turn.map(str::to_owned);
        }
        if turn.is_some() && turn != self.turn.as_deref() {
            if method == "thread/tokenUsage/updated" {
                self.meter.set_total(params);
            }
            return ParsedNotification::default();
        }
        let item = params.get("item").unwrap_or(&Value::Null);
        match method {
            "turn/started" if !std::mem::replace(&mut self.begun, true) => TurnEvent::ModelCall.into(),
            "item/started" => self.started(item).into(),
            "item/completed" => self.completed(item).into(),
            "item/agentMessage/delta" | "item/plan/delta" => self.message_delta(params),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => self.reasoning_delta(params),
            "item/reasoning/summaryPartAdded" => self.next_part(params),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => output(params, "delta", ""),
            "item/mcpToolCall/progress" => output(params, "message", "\n"),
            "item/fileChange/patchUpdated" => {
                self.patch(params);
                ParsedNotification::default()
            }
            "thread/tokenUsage/updated" => self.usage(params),
            "error" => self.error(params),
            "turn/completed" => self.ended(params.get("turn").unwrap_or(&Value::Null)),
            "turn/plan/updated" => plan(params),
            "model/rerouted" => self.rerouted(params),
            "mcpServer/startupStatus/updated" => mcp_server(params),
            _ => {
                if !IGNORED.contains(&method) {
                    self.skipped += 1;
                    tracing::debug!(method, "unknown notification");
                }
                ParsedNotification::default()
            }
        }
    }

    fn message_delta(&mut self, params: &Value) -> ParsedNotification {
        let (Some(item), Some(delta)) = (text(params, "itemId"), text(params, "delta")) else {
            return ParsedNotification::default();
        };
        match self.open_item(item) {
            Some(OpenItem::Message(so_far)) => so_far.push_str(delta),
            Some(_) => return ParsedNotification::default(),
            None => self.open.push((item.to_owned(), OpenItem::Message(delta.to_owned()))),
        }
        TurnEvent::Text { delta: delta.to_owned(), item: Some(item.to_owned()) }.into()
    }

    fn reasoning_delta(&mut self, params: &Value) -> ParsedNotification {
        let (Some(item), Some(delta)) = (text(params, "itemId"), text(params, "delta")) else {
            return ParsedNotification::default();
        };
        match self.open_item(item) {
            Some(OpenItem::Reasoning(so_far)) => so_far.push_str(delta),
            Some(_) => return ParsedNotification::default(),
            None => self.open.push((item.to_owned(), OpenItem::Reasoning(delta.to_owned()))),
        }
        TurnEvent::Thinking { delta: delta.to_owned(), item: Some(item.to_owned()) }.into()
    }

    /// The parts of a summary are paragraphs and have no separator of their own.
    fn next_part(&mut self, params: &Value) -> ParsedNotification {
        let Some(item) = text(params, "itemId") else { return ParsedNotification::default() };
        match self.open_item(item) {
            Some(OpenItem::Reasoning(so_far)) if !so_far.is_empty() => {
                so_far.push_str("\n\n");
                TurnEvent::Thinking { delta: "\n\n".into(), item: Some(item.to_owned()) }.into()
            }
            _ => ParsedNotification::default(),
        }
    }

    fn open_item(&mut self, id: &str) -> Option<&mut OpenItem> {
        self.open.iter_mut().rev().find(|(open, _)| open == id).map(|(_, open)| open)
    }

    fn close(&mut self, id: &str) -> Option<OpenItem> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// The stream broke: on a retry, open messages are retracted and sent again under another id.
    fn error(&mut self, params: &Value) -> ParsedNotification {
        let error = params.get("error").unwrap_or(&Value::Null);
        let failed = failure(error);
        if !params.get("willRetry").and_then(Value::as_bool).unwrap_or_default() {
            self.last_error = Some(failed);
            return ParsedNotification::default();
        }
        let mut events: Vec<TurnEvent> = Vec::new();
        self.open.retain(|(id, open)| {
            let stays = matches!(open, OpenItem::Tool(_));
            if !stays {
                events.push(TurnEvent::Retract { item: id.clone() });
            }
            stays
        });
        let message =
            failure::shortened(text(error, "message").unwrap_or("Codex is retrying"), text(error, "additionalDetails"));
        events.push(TurnEvent::Status { status: "retrying".into(), message });
        let hopeless = (failed.code == failure::AUTHENTICATION).then_some(failed);
        ParsedNotification { events, end: None, hopeless }
    }

    fn usage(&mut self, params: &Value) -> ParsedNotification {
        let Some(usage) = self.meter.update(params) else { return ParsedNotification::default() };
        self.metered = true;
        TurnEvent::Usage { usage, model: self.model.clone(), cost: None }.into()
    }

    fn rerouted(&mut self, params: &Value) -> ParsedNotification {
        let Some(model) = text(params, "toModel") else { return ParsedNotification::default() };
        self.model = Some(model.to_owned());
        status("model_rerouted", format!("Codex switched to the model {model}."))
    }

    fn ended(&mut self, turn: &Value) -> ParsedNotification {
        let mut events = Vec::new();
        for item in turn.get("items").and_then(Value::as_array).into_iter().flatten() {
            // The summary repeats all messages; only those that were not shown yet are added.
            let is_message = text(item, "type") == Some("agentMessage");
            if is_message && !text(item, "id").is_some_and(|id| self.done.contains(id)) {
                events.extend(self.completed(item));
            }
        }
        let error = turn.get("error").filter(|error| !error.is_null()).map(failure).or(self.last_error.take());
        let end = match (text(turn, "status"), error) {
            (Some("completed"), _) => CodexTurnEnd::Completed,
            (Some("interrupted"), _) => CodexTurnEnd::Interrupted,
            (_, Some(error)) => CodexTurnEnd::Failed(error),
            (status, None) => CodexTurnEnd::Failed(RunError::new(
                "api_error",
                format!("Codex ended the turn with status {status:?} and gave no reason."),
            )),
        };
        ParsedNotification { events, end: Some(end), hopeless: None }
    }
}

/// Known notifications that are not used.
const IGNORED: &[&str] = &[
    "account/rateLimits/updated",
    "account/updated",
    "configWarning",
    "deprecationNotice",
    "item/commandExecution/terminalInteraction",
    "remoteControl/status/changed",
    "serverRequest/resolved",
    "skills/changed",
    "thread/closed",
    "thread/compacted",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "turn/started",
    "warning",
];

fn output(params: &Value, field: &str, end: &str) -> ParsedNotification {
    let (Some(id), Some(delta)) = (text(params, "itemId"), text(params, field)) else {
        return ParsedNotification::default();
    };
    TurnEvent::ToolOutput { id: id.to_owned(), delta: format!("{delta}{end}") }.into()
}

fn plan(params: &Value) -> ParsedNotification {
    let steps = params.get("plan").and_then(Value::as_array).into_iter().flatten();
    let lines: Vec<String> = steps
        .filter_map(|step| Some(format!("{}: {}", text(step, "status").unwrap_or("pending"), text(step, "step")?)))
        .collect();
    if lines.is_empty() { ParsedNotification::default() } else { status("plan", lines.join("\n")) }
}

fn mcp_server(params: &Value) -> ParsedNotification {
    if text(params, "status") != Some("failed") {
        return ParsedNotification::default();
    }
    let name = text(params, "name").unwrap_or("?");
    let error = text(params, "error").unwrap_or("no reason given");
    status("mcp_server_failed", format!("The MCP server {name} could not be started: {error}"))
}

fn status(status: &str, message: String) -> ParsedNotification {
    TurnEvent::Status { status: status.into(), message }.into()
}

pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

impl From<TurnEvent> for ParsedNotification {
    fn from(event: TurnEvent) -> Self {
        Self { events: vec![event], ..Self::default() }
    }
}

impl From<Vec<TurnEvent>> for ParsedNotification {
    fn from(events: Vec<TurnEvent>) -> Self {
        Self { events, ..Self::default() }
    }
}
