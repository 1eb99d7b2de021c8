//! What a notification of `codex app-server` means for one turn. Pure: method and parameters in, events out.
//!
//! Text is keyed by item, because a broken stream begins again under a new item and the old one is taken back. Unknown
//! methods and items are counted and skipped.

mod failure;
mod item;
mod meter;
#[cfg(test)]
mod tests;

pub use failure::{failure, not_logged_in};
pub use item::{Tool, mcp_name};

use crate::TurnEvent;
use domain::{run::RunError, usage::Usage};
use meter::Meter;
use serde_json::Value;
use std::collections::HashSet;

/// What one notification brought.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    pub events: Vec<TurnEvent>,
    pub end: Option<End>,
    /// Codex means to try again, but nothing will come of it.
    pub hopeless: Option<RunError>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Completed,
    Interrupted,
    Failed(RunError),
}

/// Everything a turn has to remember between two notifications.
#[derive(Debug)]
pub struct Parser {
    turn: Option<String>,
    begun: bool,
    model: Option<String>,
    meter: Meter,
    /// What began and did not end, oldest first.
    open: Vec<(String, Open)>,
    done: HashSet<String>,
    /// A model call has been metered: the next item is the work of another one.
    metered: bool,
    last_error: Option<RunError>,
    has_run_commands: bool,
    skipped: u64,
}

#[derive(Debug)]
enum Open {
    Said(String),
    Thought(String),
    Tool(Tool),
}

impl Parser {
    /// `total` is what the thread had used before, where that is known.
    pub fn new(model: Option<String>, total: Option<Usage>) -> Self {
        Self {
            turn: None,
            begun: false,
            model,
            meter: Meter::new(total),
            open: Vec::new(),
            done: HashSet::new(),
            metered: false,
            last_error: None,
            has_run_commands: false,
            skipped: 0,
        }
    }

    pub fn turn(&self) -> Option<&str> {
        self.turn.as_deref()
    }

    /// The turn's id as its starter was told it; the notification with the same may come before or after.
    pub fn turn_is(&mut self, id: &str) {
        self.turn = Some(id.to_owned());
    }

    /// What the thread has used in all.
    pub fn total(&self) -> Option<Usage> {
        self.meter.total()
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// A tool call that runs or waits to be allowed.
    pub fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools().find(|(open, _)| *open == id).map(|(_, tool)| tool)
    }

    pub fn tools(&self) -> impl Iterator<Item = (&str, &Tool)> {
        self.open.iter().filter_map(|(id, open)| match open {
            Open::Tool(tool) => Some((id.as_str(), tool)),
            Open::Said(_) | Open::Thought(_) => None,
        })
    }

    pub fn commands_run(&self) -> bool {
        self.tools().any(|(_, tool)| tool.is_command)
    }

    /// Whether any was to run, now or before.
    pub fn has_run_commands(&self) -> bool {
        self.has_run_commands
    }

    pub fn apply(&mut self, method: &str, params: &Value) -> Parsed {
        let turn = text(params, "turnId").or_else(|| text(params.get("turn")?, "id"));
        if method == "turn/started" && self.turn.is_none() {
            self.turn = turn.map(str::to_owned);
        }
        if turn.is_some() && turn != self.turn.as_deref() {
            if method == "thread/tokenUsage/updated" {
                self.meter.known(params);
            }
            return Parsed::default();
        }
        let item = params.get("item").unwrap_or(&Value::Null);
        match method {
            "turn/started" if !std::mem::replace(&mut self.begun, true) => TurnEvent::ModelCall.into(),
            "item/started" => self.started(item).into(),
            "item/completed" => self.completed(item).into(),
            "item/agentMessage/delta" | "item/plan/delta" => self.said(params),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => self.thought(params),
            "item/reasoning/summaryPartAdded" => self.next_part(params),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => output(params, "delta", ""),
            "item/mcpToolCall/progress" => output(params, "message", "\n"),
            "item/fileChange/patchUpdated" => {
                self.patch(params);
                Parsed::default()
            }
            "thread/tokenUsage/updated" => self.used(params),
            "error" => self.error(params),
            "turn/completed" => self.ended(params.get("turn").unwrap_or(&Value::Null)),
            "turn/plan/updated" => plan(params),
            "model/rerouted" => self.rerouted(params),
            "mcpServer/startupStatus/updated" => mcp_server(params),
            _ => {
                if !IGNORED.contains(&method) {
                    self.skipped += 1;
                    tracing::debug!(method, "a notification this does not know");
                }
                Parsed::default()
            }
        }
    }

    fn said(&mut self, params: &Value) -> Parsed {
        let (Some(item), Some(delta)) = (text(params, "itemId"), text(params, "delta")) else {
            return Parsed::default();
        };
        match self.opened(item) {
            Some(Open::Said(so_far)) => so_far.push_str(delta),
            Some(_) => return Parsed::default(),
            None => self.open.push((item.to_owned(), Open::Said(delta.to_owned()))),
        }
        TurnEvent::Text { delta: delta.to_owned(), item: Some(item.to_owned()) }.into()
    }

    fn thought(&mut self, params: &Value) -> Parsed {
        let (Some(item), Some(delta)) = (text(params, "itemId"), text(params, "delta")) else {
            return Parsed::default();
        };
        match self.opened(item) {
            Some(Open::Thought(so_far)) => so_far.push_str(delta),
            Some(_) => return Parsed::default(),
            None => self.open.push((item.to_owned(), Open::Thought(delta.to_owned()))),
        }
        TurnEvent::Thinking { delta: delta.to_owned(), item: Some(item.to_owned()) }.into()
    }

    /// Parts of a summary are paragraphs; nothing else parts them.
    fn next_part(&mut self, params: &Value) -> Parsed {
        let Some(item) = text(params, "itemId") else { return Parsed::default() };
        match self.opened(item) {
            Some(Open::Thought(so_far)) if !so_far.is_empty() => {
                so_far.push_str("\n\n");
                TurnEvent::Thinking { delta: "\n\n".into(), item: Some(item.to_owned()) }.into()
            }
            _ => Parsed::default(),
        }
    }

    fn opened(&mut self, id: &str) -> Option<&mut Open> {
        self.open.iter_mut().rev().find(|(open, _)| open == id).map(|(_, open)| open)
    }

    fn close(&mut self, id: &str) -> Option<Open> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// The end of the stream that was read: what was being said begins anew, under another id.
    fn error(&mut self, params: &Value) -> Parsed {
        let error = params.get("error").unwrap_or(&Value::Null);
        let failed = failure(error);
        if !params.get("willRetry").and_then(Value::as_bool).unwrap_or_default() {
            self.last_error = Some(failed);
            return Parsed::default();
        }
        let mut events: Vec<TurnEvent> = Vec::new();
        self.open.retain(|(id, open)| {
            let stays = matches!(open, Open::Tool(_));
            if !stays {
                events.push(TurnEvent::Retract { item: id.clone() });
            }
            stays
        });
        let message =
            failure::told(text(error, "message").unwrap_or("Codex tries again"), text(error, "additionalDetails"));
        events.push(TurnEvent::Status { status: "retrying".into(), message });
        let hopeless = (failed.code == failure::AUTHENTICATION).then_some(failed);
        Parsed { events, end: None, hopeless }
    }

    fn used(&mut self, params: &Value) -> Parsed {
        let Some(usage) = self.meter.update(params) else { return Parsed::default() };
        self.metered = true;
        TurnEvent::Usage { usage, model: self.model.clone(), cost: None }.into()
    }

    fn rerouted(&mut self, params: &Value) -> Parsed {
        let Some(model) = text(params, "toModel") else { return Parsed::default() };
        self.model = Some(model.to_owned());
        status("model_rerouted", format!("The answer comes from the model {model}."))
    }

    fn ended(&mut self, turn: &Value) -> Parsed {
        let mut events = Vec::new();
        for item in turn.get("items").and_then(Value::as_array).into_iter().flatten() {
            // The summary repeats what was said; what was never shown is shown now.
            let is_message = text(item, "type") == Some("agentMessage");
            if is_message && !text(item, "id").is_some_and(|id| self.done.contains(id)) {
                events.extend(self.completed(item));
            }
        }
        let error = turn.get("error").filter(|error| !error.is_null()).map(failure).or(self.last_error.take());
        let end = match (text(turn, "status"), error) {
            (Some("completed"), _) => End::Completed,
            (Some("interrupted"), _) => End::Interrupted,
            (_, Some(error)) => End::Failed(error),
            (status, None) => End::Failed(RunError::new(
                "api_error",
                format!("Codex ended its turn as {status:?} and did not say why."),
            )),
        };
        Parsed { events, end: Some(end), hopeless: None }
    }
}

/// Known, and of no use to a room.
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

fn output(params: &Value, field: &str, end: &str) -> Parsed {
    let (Some(id), Some(delta)) = (text(params, "itemId"), text(params, field)) else { return Parsed::default() };
    TurnEvent::ToolOutput { id: id.to_owned(), delta: format!("{delta}{end}") }.into()
}

fn plan(params: &Value) -> Parsed {
    let steps = params.get("plan").and_then(Value::as_array).into_iter().flatten();
    let lines: Vec<String> = steps
        .filter_map(|step| Some(format!("{}: {}", text(step, "status").unwrap_or("pending"), text(step, "step")?)))
        .collect();
    if lines.is_empty() { Parsed::default() } else { status("plan", lines.join("\n")) }
}

fn mcp_server(params: &Value) -> Parsed {
    if text(params, "status") != Some("failed") {
        return Parsed::default();
    }
    let name = text(params, "name").unwrap_or("?");
    let error = text(params, "error").unwrap_or("it did not say why");
    status("mcp_server_failed", format!("The MCP server {name} could not be started: {error}"))
}

fn status(status: &str, message: String) -> Parsed {
    TurnEvent::Status { status: status.into(), message }.into()
}

pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

impl From<TurnEvent> for Parsed {
    fn from(event: TurnEvent) -> Self {
        Self { events: vec![event], ..Self::default() }
    }
}

impl From<Vec<TurnEvent>> for Parsed {
    fn from(events: Vec<TurnEvent>) -> Self {
        Self { events, ..Self::default() }
    }
}
