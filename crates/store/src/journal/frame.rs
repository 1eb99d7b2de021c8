//! An event as bytes, built once and shared by all readers (REST, SSE and WebSocket return the same JSON for a seq).

use bytes::Bytes;
use domain::{
    event::{Event, EventBody, EventType},
    ids::RunId,
    position::{Epoch, Seq},
};
use std::sync::OnceLock;

#[derive(Debug)]
pub struct Frame {
    pub seq: Seq,
    pub kind: EventType,
    pub run_id: Option<RunId>,
    sse: Bytes,
    /// The start of the JSON in `sse`; it ends before the closing blank line.
    json_start: usize,
    /// Built only for rooms that are followed through a WebSocket.
    websocket: OnceLock<Bytes>,
}

const SSE_END: &[u8] = b"\n\n";
/// The frame itself, its entry in the tail and the allocator's overhead.
const OVERHEAD: usize = 256;

/// The name of an event's type in an SSE stream. An EventSource reports a lost connection as `error`, so no event has
/// that name.
pub fn sse_name(kind: EventType) -> &'static str {
    match kind {
        EventType::ErrorReported => "error_reported",
        kind => kind.as_str(),
    }
}

impl Frame {
    pub(crate) fn new(epoch: &Epoch, event: &Event) -> Self {
        let mut bytes = Vec::with_capacity(event.data.len() + 384);
        bytes.extend_from_slice(b"id: ");
        bytes.extend_from_slice(epoch.as_str().as_bytes());
        bytes.push(b'-');
        bytes.extend_from_slice(event.seq.to_string().as_bytes());
        bytes.extend_from_slice(b"\nevent: ");
        bytes.extend_from_slice(sse_name(event.kind).as_bytes());
        bytes.extend_from_slice(b"\ndata: ");
        let json_start = bytes.len();
        event.write_json(&mut bytes, false);
        bytes.extend_from_slice(SSE_END);
        Self {
            seq: event.seq,
            kind: event.kind,
            run_id: event.run_id,
            sse: bytes.into(),
            json_start,
            websocket: OnceLock::new(),
        }
    }

    /// `id: …\nevent: …\ndata: …\n\n`
    pub fn sse(&self) -> &Bytes {
        &self.sse
    }

    pub fn json(&self) -> &[u8] {
        &self.sse[self.json_start..self.sse.len() - SSE_END.len()]
    }

    /// Parses the event. `None` if this version cannot read it.
    pub fn body(&self) -> Option<EventBody> {
        #[derive(serde::Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            data: &'a serde_json::value::RawValue,
        }
        let envelope: Envelope<'_> = serde_json::from_slice(self.json()).ok()?;
        EventBody::parse(self.kind, envelope.data.get()).ok()
    }

    /// `{"type":"event","event":…}`
    pub fn websocket(&self) -> &Bytes {
        self.websocket.get_or_init(|| self.websocket_parts().concat().into())
    }

    /// The same in parts, which share the bytes of the frame: for a large one, which should not be in memory twice.
    pub fn websocket_parts(&self) -> [Bytes; 3] {
        let json = self.sse.slice(self.json_start..self.sse.len() - SSE_END.len());
        [Bytes::from_static(br#"{"type":"event","event":"#), json, Bytes::from_static(b"}")]
    }

    /// The memory use in bytes. Always includes the copy for WebSockets.
    pub(crate) fn weight(&self) -> usize {
        self.sse.len() + self.json().len() + OVERHEAD
    }

    pub fn len(&self) -> usize {
        self.sse.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::sse_name;
    use domain::event::EventType;

    #[test]
    fn no_event_looks_like_a_lost_connection() {
        assert!(EventType::ALL.iter().all(|kind| sse_name(*kind) != "error"));
    }
}
