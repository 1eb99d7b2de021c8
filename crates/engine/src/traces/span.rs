//! A span: something that took time, with its place in a trace.

use domain::time::Timestamp;
use uuid::Uuid;

/// The ids of a span, as the header `traceparent` carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub is_sampled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSpanKind {
    Internal,
    Server,
    Client,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Integer(i64),
    Number(f64),
}

/// Why a span counts as failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanError {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    pub context: SpanContext,
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: TraceSpanKind,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Spans of other traces that caused this one.
    pub links: Vec<SpanContext>,
    pub error: Option<SpanError>,
}

impl SpanContext {
    /// A new span beneath another, or at the top of a new trace.
    pub fn beneath(parent: Option<Self>) -> Self {
        let trace_id = parent.map_or_else(|| Uuid::new_v4().into_bytes(), |parent| parent.trace_id);
        Self { trace_id, span_id: new_span_id(), is_sampled: true }
    }

    /// Reads the header `traceparent`; `None` if it is not valid.
    pub fn parse(header: &str) -> Option<Self> {
        let mut fields = header.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_known = version.len() == 2 && version != "ff" && (version != "00" || fields.next().is_none());
        let [flags] = bytes::<1>(flags)?;
        let (trace_id, span_id) = (bytes::<16>(trace)?, bytes::<8>(span)?);
        let is_valid = is_known && bytes::<1>(version).is_some() && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self { trace_id, span_id, is_sampled: flags & 1 == 1 })
    }
}

pub(super) fn new_span_id() -> [u8; 8] {
    let [a, b, c, d, e, f, _, _, _, g, h, ..] = Uuid::new_v4().into_bytes();
    [a, b, c, d, e, f, g, h]
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_plain = text.len() == 2 * N && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_plain) {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    is_plain.then_some(bytes)
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::SpanContext;

    #[test]
    fn only_a_valid_traceparent_is_followed() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parsed = SpanContext::parse(valid).unwrap();
        assert_eq!((parsed.trace_id[0], parsed.span_id[7], parsed.is_sampled), (0x4b, 0xb7, true));
        assert!(!SpanContext::parse(&valid.replace("-01", "-00")).unwrap().is_sampled);
        assert!(SpanContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later").is_some());
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_child_stays_in_the_trace_and_a_root_begins_one() {
        let root = SpanContext::beneath(None);
        let child = SpanContext::beneath(Some(root));
        assert!(child.trace_id == root.trace_id && child.span_id != root.span_id);
        assert_ne!(SpanContext::beneath(None).trace_id, root.trace_id);
    }
}
