//! Merges adjacent deltas of one stream in a commit into one event; the text stays byte for byte the same.

use domain::event::EventBody;

/// An event that is not stored yet, with the raw provider output that it was made from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingEvent {
    pub body: EventBody,
    pub raw_items: Vec<String>,
}

impl PendingEvent {
    pub(crate) fn new(body: impl Into<EventBody>) -> Self {
        Self { body: body.into(), raw_items: Vec::new() }
    }

    /// Whether it reports what a model call has used.
    pub(crate) fn reports_usage(&self) -> bool {
        matches!(self.body, EventBody::UsageReported(_))
    }

    /// Splits into the body and its raw output: a single item as it is, several as a JSON list.
    pub(crate) fn into_parts(mut self) -> (EventBody, Option<String>) {
        let raw = match self.raw_items.len() {
            0 | 1 => self.raw_items.pop(),
            _ => Some(format!("[{}]", self.raw_items.join(","))),
        };
        (self.body, raw)
    }
}

/// The limit for a merged event; a single larger delta stays as it is.
const MAX_EVENT_BYTES: usize = 64 * 1024;

pub(crate) fn coalesce(entries: Vec<PendingEvent>) -> Vec<PendingEvent> {
    let mut out: Vec<PendingEvent> = Vec::with_capacity(entries.len().min(64));
    for entry in entries {
        if let Some(last) = out.last_mut()
            && try_merge(&mut last.body, &entry.body)
        {
            last.raw_items.extend(entry.raw_items);
        } else {
            out.push(entry);
        }
    }
    out
}

/// Appends `next` to `last` if both are deltas of the same stream and item.
fn try_merge(last: &mut EventBody, next: &EventBody) -> bool {
    let (text, more) = match (last, next) {
        (EventBody::ContentDelta(last), EventBody::ContentDelta(next))
            if last.stream_id == next.stream_id && last.item == next.item =>
        {
            (&mut last.delta, &next.delta)
        }
        (EventBody::ThinkingDelta(last), EventBody::ThinkingDelta(next))
            if last.stream_id == next.stream_id && last.item == next.item =>
        {
            (&mut last.delta, &next.delta)
        }
        (EventBody::ToolOutputDelta(last), EventBody::ToolOutputDelta(next))
            if last.tool_use_id == next.tool_use_id =>
        {
            (&mut last.delta, &next.delta)
        }
        _ => return false,
    };
    if text.len() + more.len() > MAX_EVENT_BYTES {
        return false;
    }
    text.push_str(more);
    true
}
