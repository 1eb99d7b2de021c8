//! What Claude Code says, line by line, as events. Pure and tolerant: what is not known is counted and skipped, and
//! every field but the one that names the kind may be missing.
//!
//! Text is keyed by message and block (`msg_…#0`), because a block may be taken back: when the model's stream breaks,
//! the program says from which block on its words do not count, and says them anew under another id.

use super::{
    blocks::{Kind, Streamed, item},
    control::{self, Ask},
    failure::{self, Finished},
    meter::Meter,
};
use crate::{Reported, TurnEvent};
use domain::run::RunError;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a line means to whoever holds the conversation.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Parsed {
    Event(Reported),
    /// A turn begins; the program has taken a prompt.
    Began,
    /// A message of ours stands in the program's own line, or is being answered.
    Message {
        uuid: String,
        taken: bool,
    },
    /// The program waits for an answer to this.
    Asked {
        id: String,
        ask: Ask,
        raw: String,
    },
    /// It does not wait any more.
    Withdrawn {
        id: String,
    },
    /// The answer to a request of ours.
    Answered {
        id: String,
        answer: Result<Value, String>,
    },
    /// The program goes on trying, but it cannot end well.
    Hopeless(RunError),
    Finished(Finished),
    /// Not a line of this protocol.
    Garbage,
}

/// Keeps what has to be known from line to line. Lives as long as the process; [`Parser::begin`] starts a turn.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// The message that is being streamed.
    open: Option<Streamed>,
    /// How many finished blocks each message of this turn has.
    finished: HashMap<String, usize>,
    tools: HashSet<String>,
    meter: Meter,
    /// The word for the last failure of the model's API in this turn.
    error: Option<String>,
    said: bool,
    session: Option<String>,
    told_session: bool,
    failed_servers: BTreeSet<String>,
    /// How many tasks go on beside the conversation.
    background: usize,
    /// Lines of a kind that is not known here.
    pub skipped: u64,
}

/// Kinds that are known and of no interest. The rest is counted.
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

impl Parser {
    /// Forgets the last turn.
    pub fn begin(&mut self) {
        self.open = None;
        self.finished.clear();
        self.tools.clear();
        self.meter = Meter::default();
        self.error = None;
        self.said = false;
        self.told_session = false;
    }

    /// The program's own conversation id, once it was said.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether something goes on that will outlive the turn.
    pub fn has_work_in_background(&self) -> bool {
        self.background > 0
    }

    /// What was used in a turn whose result never came.
    pub fn unmetered(&mut self) -> Option<TurnEvent> {
        std::mem::take(&mut self.meter).streamed()
    }

    pub fn line(&mut self, line: &str) -> Vec<Parsed> {
        let mut out = Vec::new();
        let Ok(value) = serde_json::from_str::<Value>(line) else { return vec![Parsed::Garbage] };
        let Some(kind) = value.get("type").and_then(Value::as_str) else { return vec![Parsed::Garbage] };
        match kind {
            "stream_event" => self.stream(&value, line, &mut out),
            "assistant" => self.assistant(&value, line, &mut out),
            "user" => tool_results(&value, line, &mut out),
            "system" => self.system(&value, line, &mut out),
            "result" => self.result(&value, line, &mut out),
            // It names an id that is not the session's; that one comes with the next line that begins a turn.
            "conversation_reset" => {
                let message = "the agent has forgotten what was said in this conversation".to_owned();
                out.push(told(TurnEvent::Status { status: "conversation_cleared".into(), message }, line));
            }
            "command_lifecycle" => {
                out.extend(text(&value, "command_uuid").map(|uuid| Parsed::Message {
                    uuid: uuid.to_owned(),
                    taken: text(&value, "state") != Some("queued"),
                }))
            }
            "control_request" => out.extend(control::asked(&value, line)),
            "control_response" => out.extend(control::answered(&value)),
            "control_cancel_request" => {
                out.extend(text(&value, "request_id").map(|id| Parsed::Withdrawn { id: id.to_owned() }));
            }
            ignored if IGNORED.contains(&ignored) => {}
            unknown => self.skip(unknown),
        }
        out
    }

    fn skip(&mut self, kind: &str) {
        self.skipped += 1;
        tracing::debug!(kind, "Claude Code said something this version does not know");
    }

    fn stream(&mut self, value: &Value, line: &str, out: &mut Vec<Parsed>) {
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
                self.call(&id, out);
                self.open = Some(Streamed::new(id));
            }
            "content_block_start" => {
                let (index, block) = (index_of(event), &event["content_block"]);
                let kind = Kind::of(block);
                let start = kind.text_in(block).unwrap_or_default().to_owned();
                if let Some(open) = &mut self.open {
                    open.begin(index, kind);
                }
                self.delta(index, kind, start, out);
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let (kind, said) = match text(delta, "type").unwrap_or_default() {
                    "text_delta" => (Kind::Text, text(delta, "text")),
                    "thinking_delta" => (Kind::Thinking, text(delta, "thinking")),
                    _ => return,
                };
                self.delta(index_of(event), kind, said.unwrap_or_default().to_owned(), out);
            }
            "message_delta" => self.meter.more(&event["usage"]),
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

    fn delta(&mut self, index: u64, kind: Kind, delta: String, out: &mut Vec<Parsed>) {
        let Some(open) = &mut self.open else { return };
        if delta.is_empty() {
            return;
        }
        open.push(index, kind, &delta);
        self.said |= kind == Kind::Text;
        out.push(kind.event(delta, item(&open.id, index)));
    }

    /// One finished block, or several. Words that were streamed already are not said again.
    fn assistant(&mut self, value: &Value, line: &str, out: &mut Vec<Parsed>) {
        let message = &value["message"];
        if let Some(error) = text(value, "error") {
            self.error = Some(error.to_owned());
        }
        if value.get("error").is_some_and(|error| !error.is_null()) || value["is_api_error_message"] == true {
            // Its words are the failure's, not the agent's; the result says them again.
            return;
        }
        let id = text(message, "id").unwrap_or_default().to_owned();
        let subagent = is_subagent(value);
        if !subagent && self.open.as_ref().is_some_and(|open| open.id != id) {
            // Old versions fall back to a plain request without a word about what they had streamed.
            self.retract_unfinished(line, out);
            self.open = None;
        }
        if text(message, "model") != Some("<synthetic>") {
            self.call(&id, out);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match Kind::of(block) {
                Kind::Other if block["type"] == "tool_use" => self.tool_use(block, line, out),
                kind if !subagent => self.block(&id, kind, kind.text_in(block).unwrap_or_default(), line, out),
                _ => {}
            }
            *self.finished.entry(id.clone()).or_default() += 1;
        }
    }

    fn block(&mut self, id: &str, kind: Kind, whole: &str, line: &str, out: &mut Vec<Parsed>) {
        if kind == Kind::Other {
            return;
        }
        let index = match self.open.as_mut().filter(|open| open.id == id).and_then(|open| open.finish(kind)) {
            None => self.finished.get(id).copied().unwrap_or(0) as u64,
            // Thinking may be shown in another shape than it was streamed in; what was streamed stands.
            Some((_, streamed)) if kind == Kind::Thinking && !streamed.is_empty() => return,
            Some((index, streamed)) => match whole.strip_prefix(streamed.as_str()) {
                Some("") => return,
                Some(rest) => {
                    self.said |= kind == Kind::Text;
                    return out.push(kind.event(rest.to_owned(), item(id, index)));
                }
                None => {
                    out.push(retract(item(id, index), line));
                    index
                }
            },
        };
        if !whole.is_empty() {
            self.said |= kind == Kind::Text;
            out.push(kind.event(whole.to_owned(), item(id, index)));
        }
    }

    fn tool_use(&mut self, block: &Value, line: &str, out: &mut Vec<Parsed>) {
        let id = text(block, "id").unwrap_or_default().to_owned();
        if self.tools.insert(id.clone()) {
            let name = text(block, "name").unwrap_or_default().to_owned();
            let input = block.get("input").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            out.push(told(TurnEvent::ToolUse { id, name, input }, line));
        }
    }

    /// A model call, once for each message.
    fn call(&mut self, id: &str, out: &mut Vec<Parsed>) {
        if !self.finished.contains_key(id) {
            self.finished.insert(id.to_owned(), 0);
            out.push(Parsed::Event(TurnEvent::ModelCall.into()));
        }
    }

    fn retract_unfinished(&mut self, line: &str, out: &mut Vec<Parsed>) {
        if let Some(open) = &mut self.open {
            out.extend(open.unfinished().into_iter().map(|item| retract(item, line)));
        }
    }

    fn system(&mut self, value: &Value, line: &str, out: &mut Vec<Parsed>) {
        let status =
            |status: &str, message: String| told(TurnEvent::Status { status: status.to_owned(), message }, line);
        match text(value, "subtype").unwrap_or_default() {
            "init" => {
                out.push(Parsed::Began);
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
                Some(error) => Parsed::Hopeless(error),
                None => status("retrying", failure::retrying(value)),
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

    /// Told once in each turn, and again when it changes in the middle of one.
    fn set_session(&mut self, id: Option<&str>, line: &str, out: &mut Vec<Parsed>) {
        let Some(id) = id else { return };
        if !self.told_session || self.session.as_deref() != Some(id) {
            self.told_session = true;
            self.session = Some(id.to_owned());
            out.push(told(TurnEvent::Session { id: id.to_owned() }, line));
        }
    }

    fn result(&mut self, value: &Value, line: &str, out: &mut Vec<Parsed>) {
        if self.told_session {
            self.set_session(text(value, "session_id"), line, out);
        }
        let finished = Finished::of(value, self.error.take());
        let unsaid = text(value, "result").filter(|text| finished.is_success() && !self.said && !text.is_empty());
        if let Some(text) = unsaid {
            out.push(Kind::Text.event(text.to_owned(), "result".to_owned()));
        }
        // One line, several models: what it says is kept with the first.
        let mut raw = Some(line.to_owned());
        for event in std::mem::take(&mut self.meter).result(value) {
            out.push(Parsed::Event(Reported { event, raw: raw.take() }));
        }
        self.open = None;
        out.push(Parsed::Finished(finished));
    }
}

/// What tools gave back. All else in these lines is said by the program to its model.
fn tool_results(value: &Value, line: &str, out: &mut Vec<Parsed>) {
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
            out.push(told(event, line));
        }
    }
}

fn told(event: TurnEvent, line: &str) -> Parsed {
    Parsed::Event(Reported { event, raw: Some(line.to_owned()) })
}

fn retract(item: String, line: &str) -> Parsed {
    told(TurnEvent::Retract { item }, line)
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
