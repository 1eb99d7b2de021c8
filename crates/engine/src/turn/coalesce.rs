//! Neighbouring deltas of one stream that travel together become one event; the text stays byte for byte the same.

use domain::event::EventBody;

/// An event on its way to the journal, with what the provider sent for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub body: EventBody,
    pub raws: Vec<String>,
}

impl Entry {
    pub(crate) fn new(body: impl Into<EventBody>) -> Self {
        Self { body: body.into(), raws: Vec::new() }
    }

    /// One raw as it is, several as a JSON list.
    pub(crate) fn raw(mut self) -> (EventBody, Option<String>) {
        let raw = match self.raws.len() {
            0 | 1 => self.raws.pop(),
            _ => Some(format!("[{}]", self.raws.join(","))),
        };
        (self.body, raw)
    }
}

/// An event stays below this unless a single delta is larger.
const MOST_BYTES: usize = 64 * 1024;

pub(crate) fn coalesce(entries: Vec<Entry>) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len().min(64));
    for entry in entries {
        if let Some(last) = out.last_mut()
            && absorb(&mut last.body, &entry.body)
        {
            last.raws.extend(entry.raws);
        } else {
            out.push(entry);
        }
    }
    out
}

/// Appends `next` to `last` where both are deltas of the same thing.
fn absorb(last: &mut EventBody, next: &EventBody) -> bool {
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
    if text.len() + more.len() > MOST_BYTES {
        return false;
    }
    text.push_str(more);
    true
}
