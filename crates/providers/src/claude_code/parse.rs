//! Parses the output of Claude Code line by line. Pure and tolerant: unknown lines are counted and skipped, and every
//! field except `type` may be missing.
//!
//! Text is keyed by message and block (`msg_…#0`), because a block may be retracted: when the model's stream breaks,
//! the program reports from which block on the text is invalid, and sends it again under another id.

use super::{
    blocks::{ClaudeBlockKind, StreamedMessage, item_id},
    control::{self, ControlRequest},
    failure::{self, Finished},
    meter::ClaudeUsageMeter,
};
use crate::{ProviderEvent, TurnEvent};
use domain::run::RunError;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The meaning of a line.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ClaudeOutput {
    Event(ProviderEvent),
    /// A turn has started: the program has accepted a prompt.
    Began,
    /// What the program does with one of our messages.
    Message {
        uuid: String,
        state: ClaudeMessageState,
    },
    /// A request that the program waits for.
    Request {
        id: String,
        request: ControlRequest,
        raw: String,
    },
    /// The program cancelled its request.
    RequestCancelled {
        id: String,
    },
    /// The response to one of our requests.
    Response {
        id: String,
        answer: Result<Value, String>,
    },
    /// The program is retrying a request that cannot succeed.
    Hopeless(RunError),
    Finished(Finished),
    /// Not a valid line of this protocol.
    Garbage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClaudeMessageState {
    /// In the program's queue.
    Queued,
    /// Being answered, or answered.
    Taken,
    /// Removed from the queue.
    Cancelled,
}

/// Keeps state between lines. Lives as long as the process; [`ClaudeParser::begin_turn`] starts a turn.
#[derive(Debug, Default)]
pub(super) struct ClaudeParser {
    /// The message that is being streamed.
    open: Option<StreamedMessage>,
    /// The number of finished blocks of each message in this turn.
    finished: HashMap<String, usize>,
    tools: HashSet<String>,
    meter: ClaudeUsageMeter,
    /// The error code of the last API failure in this turn.
    error: Option<String>,
    has_text: bool,
    session: Option<String>,
    session_reported: bool,
    failed_servers: BTreeSet<String>,
    /// The number of background tasks.
    background: usize,
    /// Whether the line of every piece of an answer is kept.
    pub keeps_raw: bool,
    /// The number of lines of an unknown kind.
    pub skipped: u64,
}

/// Known kinds that are not used.
const IGNORED: [&str; 6] =
    ["keep_alive", "rate_limit_event", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion"];
const IGNORED_SYSTEM: [&str; 15] = [
    "thinking_tokens",
    "task_started",
    "task_progress",
    "task_updated",
    "task_notification",
    "commands_changed",
    "session_state_changed",
    "session_title_changed",
    "ui_invalidate",
    "informational",
    "hook_started",
    "hook_progress",
    "hook_response",
    "files_persisted",
    "local_command_output",
];

impl ClaudeParser {
    /// Resets the state of the previous turn.
    pub fn begin_turn(&mut self, keeps_raw: bool) {
        self.keeps_raw = keeps_raw;
        self.open = None;
        self.finished.clear();
        self.tools.clear();
        self.meter = ClaudeUsageMeter::default();
        self.error = None;
        self.has_text = false;
        self.session_reported = false;
    }

    /// The program's session id, once known.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether a task is running that will outlive the turn.
    pub fn has_work_in_background(&self) -> bool {
        self.background > 0
    }

    /// Returns the usage of a turn that ended without a result.
    pub fn take_unmetered(&mut self) -> Option<TurnEvent> {
        std::mem::take(&mut self.meter).into_streamed()
    }

    pub fn parse_line(&mut self, line: &str) -> Vec<ClaudeOutput> {
        let mut out = Vec::new();
        let Ok(value) = serde_json::from_str::<Value>(line) else { return vec![ClaudeOutput::Garbage] };
        let Some(kind) = value.get("type").and_then(Value::as_str) else { return vec![ClaudeOutput::Garbage] };
        match kind {
            "stream_event" => self.stream(&value, line, &mut out),
            "assistant" => self.assistant(&value, line, &mut out),
            "user" => tool_results(&value, line, &mut out),
            "system" => self.system(&value, line, &mut out),
            "result" => self.result(&value, line, &mut out),
            // Its id is not the session id, which comes with the next `init` line.
            "conversation_reset" => {
                let message = "the agent has forgotten what was said in this conversation".to_owned();
                out.push(with_raw(TurnEvent::Status { status: "conversation_cleared".into(), message }, line));
            }
            "command_lifecycle" => out.extend(text(&value, "command_uuid").map(|uuid| ClaudeOutput::Message {
                uuid: uuid.to_owned(),
                state: match text(&value, "state") {
                    Some("queued") => ClaudeMessageState::Queued,
                    Some("cancelled") => ClaudeMessageState::Cancelled,
                    _ => ClaudeMessageState::Taken,
                },
            })),
            "control_request" => out.extend(control::parse_request(&value, line)),
            "control_response" => out.extend(control::parse_response(&value)),
            "control_cancel_request" => {
                out.extend(text(&value, "request_id").map(|id| ClaudeOutput::RequestCancelled { id: id.to_owned() }));
            }
            ignored if IGNORED.contains(&ignored) => {}
            unknown => self.skip(unknown),
        }
        out
    }

    fn skip(&mut self, kind: &str) {
        self.skipped += 1;
        tracing::debug!(kind, "unknown kind of line from Claude Code");
    }

    fn stream(&mut self, value: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
        if is_subagent(value) {
            return;
        }
        let event = &value["event"];
        match text(event, "type").unwrap_or_default() {
            "message_start" => {
                let message = &event["message"];
                let id = text(message, "id").or_else(|| text(value, "api_message_id")).unwrap_or_default().to_owned();
                self.retract_unfinished(line, out);
                self.meter.start(&message["usage"], text(message, "model"));
                self.model_call(&id, out);
                self.open = Some(StreamedMessage::new(id));
            }
            "content_block_start" => {
                let (index, block) = (index_of(event), &event["content_block"]);
                let kind = ClaudeBlockKind::of(block);
                let start = kind.text_in(block).unwrap_or_default().to_owned();
                if let Some(open) = &mut self.open {
                    open.begin(index, kind);
                }
                self.delta(index, kind, start, out);
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let (kind, said) = match text(delta, "type").unwrap_or_default() {
                    "text_delta" => (ClaudeBlockKind::Text, text(delta, "text")),
                    "thinking_delta" => (ClaudeBlockKind::Thinking, text(delta, "thinking")),
                    _ => return,
                };
                self.delta(index_of(event), kind, said.unwrap_or_default().to_owned(), out);
            }
            "message_delta" => self.meter.update(&event["usage"]),
            _ => {}
        }
        if let Some(abandoned) = value.get("abandoned_blocks").filter(|value| value.is_object()) {
            let from = abandoned["from_block_index"].as_u64().unwrap_or(0);
            if let Some(open) =
                self.open.as_mut().filter(|open| text(abandoned, "api_message_id").is_none_or(|id| id == open.id))
            {
                out.extend(open.abandon(from).into_iter().map(|item| retract(item, line)));
            }
        }
    }

    fn delta(&mut self, index: u64, kind: ClaudeBlockKind, delta: String, out: &mut Vec<ClaudeOutput>) {
        let Some(open) = &mut self.open else { return };
        if delta.is_empty() {
            return;
        }
        open.push(index, kind, &delta);
        self.has_text |= kind == ClaudeBlockKind::Text;
        out.push(kind.event(delta, item_id(&open.id, index)));
    }

    /// One or more finished blocks. Text that was already streamed is not repeated.
    fn assistant(&mut self, value: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
        let message = &value["message"];
        if let Some(error) = text(value, "error") {
            self.error = Some(error.to_owned());
        }
        if value.get("error").is_some_and(|error| !error.is_null()) || value["is_api_error_message"] == true {
            // This is an error message, not text of the agent; the result repeats it.
            return;
        }
        let id = text(message, "id").unwrap_or_default().to_owned();
        let subagent = is_subagent(value);
        if !subagent && self.open.as_ref().is_some_and(|open| open.id != id) {
            // Old versions fall back to a request without streaming and do not report the abandoned text.
            self.retract_unfinished(line, out);
            self.open = None;
        }
        if text(message, "model") != Some("<synthetic>") {
            self.model_call(&id, out);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match ClaudeBlockKind::of(block) {
                ClaudeBlockKind::Other if block["type"] == "tool_use" => self.tool_use(block, line, out),
                kind if !subagent => self.block(&id, kind, kind.text_in(block).unwrap_or_default(), line, out),
                _ => {}
            }
            *self.finished.entry(id.clone()).or_default() += 1;
        }
    }

    fn block(&mut self, id: &str, kind: ClaudeBlockKind, whole: &str, line: &str, out: &mut Vec<ClaudeOutput>) {
        if kind == ClaudeBlockKind::Other {
            return;
        }
        let index = match self.open.as_mut().filter(|open| open.id == id).and_then(|open| open.finish(kind)) {
            None => self.finished.get(id).copied().unwrap_or(0) as u64,
            // Finished thinking may differ in form from the streamed thinking; the streamed text is kept.
            Some((_, streamed)) if kind == ClaudeBlockKind::Thinking && !streamed.is_empty() => return,
            Some((index, streamed)) => match whole.strip_prefix(streamed.as_str()) {
                Some("") => return,
                Some(rest) => {
                    self.has_text |= kind == ClaudeBlockKind::Text;
                    return out.push(kind.event(rest.to_owned(), item_id(id, index)));
                }
                None => {
                    out.push(retract(item_id(id, index), line));
                    index
                }
            },
        };
        if !whole.is_empty() {
            self.has_text |= kind == ClaudeBlockKind::Text;
            out.push(kind.event(whole.to_owned(), item_id(id, index)));
        }
    }

    fn tool_use(&mut self, block: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
        let id = text(block, "id").unwrap_or_default().to_owned();
        if self.tools.insert(id.clone()) {
            let name = text(block, "name").unwrap_or_default().to_owned();
            let input = block.get("input").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            out.push(with_raw(TurnEvent::ToolUse { id, name, input }, line));
        }
    }

    /// Reports a model call, once per message.
    fn model_call(&mut self, id: &str, out: &mut Vec<ClaudeOutput>) {
        if !self.finished.contains_key(id) {
            self.finished.insert(id.to_owned(), 0);
            out.push(ClaudeOutput::Event(TurnEvent::ModelCall.into()));
        }
    }

    fn retract_unfinished(&mut self, line: &str, out: &mut Vec<ClaudeOutput>) {
        if let Some(open) = &mut self.open {
            out.extend(open.abandon_unfinished().into_iter().map(|item| retract(item, line)));
        }
    }

    fn system(&mut self, value: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
        let status =
            |status: &str, message: String| with_raw(TurnEvent::Status { status: status.to_owned(), message }, line);
        match text(value, "subtype").unwrap_or_default() {
            "init" => {
                out.push(ClaudeOutput::Began);
                self.set_session(text(value, "session_id"), line, out);
                for server in value["mcp_servers"].as_array().into_iter().flatten() {
                    let name = text(server, "name").unwrap_or_default();
                    if text(server, "status") != Some("failed") {
                        self.failed_servers.remove(name);
                    } else if self.failed_servers.insert(name.to_owned()) {
                        out.push(status(
                            "mcp_server_failed",
                            format!("the MCP server {name} could not be reached; its tools are missing"),
                        ));
                    }
                }
            }
            "api_retry" => out.push(match failure::hopeless(value) {
                Some(error) => ClaudeOutput::Hopeless(error),
                None => status("retrying", failure::retry_message(value)),
            }),
            "permission_denied" => {
                let tool = text(value, "tool_name").unwrap_or("a tool");
                let why = text(value, "message").unwrap_or("it needs permission");
                out.push(status("permission_denied", format!("{tool} was not allowed: {why}")));
            }
            "status" if value["status"] == "compacting" => {
                out.push(status("compacting", "the conversation has grown long and is being summarised".into()));
            }
            "status" => {}
            "background_tasks_changed" => self.background = value["tasks"].as_array().map_or(0, Vec::len),
            "compact_boundary" => {
                let figures = &value["compact_metadata"];
                let tokens = |name| figures[name].as_u64();
                let message = match (tokens("pre_tokens"), tokens("post_tokens")) {
                    (Some(before), Some(after)) => {
                        format!("the conversation was summarised from {before} to {after} tokens")
                    }
                    _ => "the conversation was summarised".to_owned(),
                };
                out.push(status("compacted", message));
            }
            ignored if IGNORED_SYSTEM.contains(&ignored) => {}
            unknown => self.skip(unknown),
        }
    }

    /// Reports the session once per turn, and again if it changes during the turn.
    fn set_session(&mut self, id: Option<&str>, line: &str, out: &mut Vec<ClaudeOutput>) {
        let Some(id) = id else { return };
        if !self.session_reported || self.session.as_deref() != Some(id) {
            self.session_reported = true;
            self.session = Some(id.to_owned());
            out.push(with_raw(TurnEvent::Session { id: id.to_owned() }, line));
        }
    }

    fn result(&mut self, value: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
        if self.session_reported {
            self.set_session(text(value, "session_id"), line, out);
        }
        let finished = Finished::of(value, self.error.take());
        let unsent = text(value, "result").filter(|text| finished.is_success() && !self.has_text && !text.is_empty());
        if let Some(text) = unsent {
            out.push(ClaudeBlockKind::Text.event(text.to_owned(), "result".to_owned()));
        }
        // There may be several models on one line; the raw line is stored with the first event.
        let mut raw = Some(line.to_owned());
        for event in std::mem::take(&mut self.meter).into_result(value) {
            out.push(ClaudeOutput::Event(ProviderEvent { event, raw: raw.take() }));
        }
        self.open = None;
        // A message that waited in the program's queue is answered next, in the same turn.
        self.has_text = false;
        out.push(ClaudeOutput::Finished(finished));
    }
}

/// Parses tool results. The rest of these lines is the program's input to its model.
fn tool_results(value: &Value, line: &str, out: &mut Vec<ClaudeOutput>) {
    if value["isReplay"] == true {
        return;
    }
    for block in value["message"]["content"].as_array().into_iter().flatten() {
        if block["type"] == "tool_result" {
            let event = TurnEvent::ToolResult {
                id: text(block, "tool_use_id").unwrap_or_default().to_owned(),
                content: block.get("content").cloned().unwrap_or(Value::Null),
                is_error: block["is_error"] == true,
            };
            out.push(with_raw(event, line));
        }
    }
}

fn with_raw(event: TurnEvent, line: &str) -> ClaudeOutput {
    ClaudeOutput::Event(ProviderEvent { event, raw: Some(line.to_owned()) })
}

fn retract(item: String, line: &str) -> ClaudeOutput {
    with_raw(TurnEvent::Retract { item }, line)
}

fn is_subagent(value: &Value) -> bool {
    value.get("parent_tool_use_id").is_some_and(|id| !id.is_null())
}

fn index_of(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or(0)
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
