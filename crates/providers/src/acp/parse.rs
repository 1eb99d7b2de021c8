//! What an agent says during a prompt, as events. Pure, and tolerant: what is not known is counted and skipped, and every
//! field but the kind of an update may be missing.
//!
//! An agent tells of a tool call in pieces: some announce it with an empty input and fill that in later, some only ask
//! for permission and never announce it, some never say that it ended. [`Fold`] makes of all that one `ToolUse` and at
//! most one `ToolResult` for each call.

use super::calls::{Calls, Naming, text_of};
use crate::{Reported, TurnEvent};
use domain::usage::Cost;
use serde_json::Value;
use std::collections::BTreeMap;

/// So many different kinds of unknown updates are counted by name.
const MAX_UNKNOWN_KINDS: usize = 32;
const MAX_ERROR_BYTES: usize = 4096;

/// One prompt's updates, folded.
#[derive(Debug)]
pub struct Fold {
    pub calls: Calls,
    /// The vendor's own total for the session, as last said.
    pub cost: Option<Cost>,
    pub model: Option<String>,
    /// Whether the agent has said or done anything.
    pub spoke: bool,
    /// The last message that had an id.
    last: Option<Said>,
    /// The agent said that its own engine failed; what it says from then on is why.
    broken: Option<String>,
    pub skipped: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Said {
    item: String,
    /// As far as an error would go.
    text: String,
    whole: bool,
}

/// What an agent wants to be allowed.
#[derive(Clone, PartialEq, Debug)]
pub struct Permission {
    pub call: String,
    pub name: String,
    pub input: Value,
    /// The options that hold for this one call. Those that hold for longer are never taken: the tool policy is asked
    /// each time.
    pub allow_once: Option<String>,
    pub reject_once: Option<String>,
}

impl Fold {
    pub fn new(naming: Naming) -> Self {
        Self {
            calls: Calls::new(naming),
            cost: None,
            model: None,
            spoke: false,
            last: None,
            broken: None,
            skipped: BTreeMap::new(),
        }
    }

    /// One `session/update`. `raw` is the line it came in.
    pub fn update(&mut self, params: &Value, raw: &str) -> Vec<Reported> {
        let update = &params["update"];
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.text(update),
            "agent_thought_chunk" => self.thought(update),
            "tool_call" | "tool_call_update" => {
                self.spoke = true;
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
            // The agent's own list of what it means to do: progress that its text and its tools show as well.
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

    /// A `session/request_permission`: the call it is about, and what is asked.
    pub fn permission(&mut self, params: &Value, raw: &str) -> (Vec<Reported>, Permission) {
        self.spoke = true;
        let option = |kind: &str| {
            let options = params["options"].as_array().into_iter().flatten();
            let found = options.filter(|option| option["kind"] == kind).find_map(|option| option["optionId"].as_str());
            found.map(str::to_owned)
        };
        let (events, call) = self.calls.asked(&params["toolCall"], raw);
        let permission = Permission {
            name: call.name.clone(),
            input: call.input.clone(),
            call: call.id.clone(),
            allow_once: option("allow_once"),
            reject_once: option("reject_once"),
        };
        (events, permission)
    }

    fn text(&mut self, update: &Value) -> Vec<Reported> {
        let (item, delta) = chunk(update);
        if let Some(why) = &mut self.broken {
            if why.len() + delta.len() <= MAX_ERROR_BYTES {
                why.push_str(&delta);
            }
            return Vec::new();
        }
        if delta.is_empty() {
            return Vec::new();
        }
        self.spoke = true;
        if let Some(item) = &item {
            self.remember(item, &delta);
        }
        let mut events = self.calls.release();
        events.push(TurnEvent::Text { delta, item }.into());
        events
    }

    fn remember(&mut self, item: &str, delta: &str) {
        if self.last.as_ref().is_none_or(|said| said.item != item) {
            self.last = Some(Said { item: item.to_owned(), text: String::new(), whole: true });
        }
        if let Some(said) = &mut self.last {
            said.whole &= said.text.len() + delta.len() <= MAX_ERROR_BYTES;
            if said.whole {
                said.text.push_str(delta);
            }
        }
    }

    /// Some agents say an error first as if it were an answer. The message that `error` repeats, to be taken back.
    pub fn said_as_text(&self, error: &str) -> Option<TurnEvent> {
        let said = self.last.as_ref().filter(|said| said.whole && error.contains(said.text.trim()))?;
        Some(TurnEvent::Retract { item: said.item.clone() })
    }

    /// Why the agent's engine failed, where it did: such an agent ends its turn as if all were well.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    fn thought(&mut self, update: &Value) -> Vec<Reported> {
        let (item, delta) = chunk(update);
        if delta.is_empty() {
            return Vec::new();
        }
        self.spoke = true;
        let mut events = self.calls.release();
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
            Some("systemError") => self.broken = Some(String::new()),
            Some("active") => self.broken = None,
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

/// The message a chunk belongs to, where the agent says it, and its text. Version 1 has no such id; some send one.
fn chunk(update: &Value) -> (Option<String>, String) {
    let content = &update["content"];
    let text = match content["type"].as_str() {
        Some("text") | None => text_of(content),
        Some("resource_link") => content["uri"].as_str().unwrap_or_default().to_owned(),
        Some(other) => format!("({other})"),
    };
    (update["messageId"].as_str().map(str::to_owned), text)
}

fn status(status: &str, update: &Value, raw: &str) -> Vec<Reported> {
    let said = ["message", "text", "title", "status"].iter().find_map(|field| update[*field].as_str());
    let message = said.map_or_else(|| text_of(&update["content"]), str::to_owned);
    if message.is_empty() {
        return Vec::new();
    }
    vec![Reported { event: TurnEvent::Status { status: status.into(), message }, raw: Some(raw.to_owned()) }]
}
