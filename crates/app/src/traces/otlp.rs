//! Encodes spans as an `ExportTraceServiceRequest` of OTLP. The messages have a dozen fields of four wire types, so the
//! encoder is written here: the usual crates would add 29 others (docs/decisions/traces.md). Pure.

use domain::time::Timestamp;
use engine::traces::{AttributeValue, SpanContext, TraceSpan, TraceSpanKind};

const SCOPE: &str = "greenroom";
/// In `Status.code`.
const STATUS_ERROR: u64 = 2;

pub(super) fn encode(resource: &[(String, String)], spans: &[TraceSpan]) -> Vec<u8> {
    let mut request = ProtobufMessage::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |message| {
            for (key, value) in resource {
                message.message(1, |pair| key_value(pair, key, &AttributeValue::Text(value.clone())));
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.text(1, SCOPE);
                scope.text(2, env!("CARGO_PKG_VERSION"));
            });
            spans.iter().for_each(|span| scope_spans.message(2, |message| encode_span(message, span)));
        });
    });
    request.0
}

fn encode_span(message: &mut ProtobufMessage, span: &TraceSpan) {
    message.bytes(1, &span.context.trace_id);
    message.bytes(2, &span.context.span_id);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(
        6,
        match span.kind {
            TraceSpanKind::Internal => 1,
            TraceSpanKind::Server => 2,
            TraceSpanKind::Client => 3,
        },
    );
    message.fixed64(7, nanos(span.started_at));
    message.fixed64(8, nanos(span.ended_at));
    for (key, value) in &span.attributes {
        message.message(9, |pair| key_value(pair, key, value));
    }
    for SpanContext { trace_id, span_id, .. } in &span.links {
        message.message(13, |link| {
            link.bytes(1, trace_id);
            link.bytes(2, span_id);
        });
    }
    if let Some(error) = &span.error {
        message.message(9, |pair| key_value(pair, "error.type", &AttributeValue::Text(error.code.clone())));
        message.message(15, |status| {
            status.text(2, &error.message);
            status.number(3, STATUS_ERROR);
        });
    }
}

fn key_value(pair: &mut ProtobufMessage, key: &str, value: &AttributeValue) {
    pair.text(1, key);
    pair.message(2, |any| match value {
        AttributeValue::Text(text) => any.text(1, text),
        // Negative numbers have all 64 bits, as protobuf wants it.
        AttributeValue::Integer(number) => any.number(3, number.cast_unsigned()),
        AttributeValue::Number(number) => any.fixed64(4, number.to_bits()),
    });
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0).saturating_mul(1_000_000)
}

/// A protobuf message that is being written.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn number(&mut self, field: u32, number: u64) {
        self.tag(field, 0);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, 1);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::encode;
    use domain::time::Timestamp;
    use engine::traces::{AttributeValue, SpanContext, SpanError, TraceSpan, TraceSpanKind};

    /// The bytes that protoc writes for the same message.
    #[test]
    fn a_span_is_encoded_as_the_protocol_defines_it() {
        let context = |byte| SpanContext { trace_id: [byte; 16], span_id: [byte; 8], is_sampled: true };
        let span = TraceSpan {
            context: context(1),
            parent: Some([2; 8]),
            name: "chat m".into(),
            kind: TraceSpanKind::Client,
            started_at: Timestamp::from_millis(1),
            ended_at: Timestamp::from_millis(2),
            attributes: vec![("n", AttributeValue::Integer(-1)), ("f", AttributeValue::Number(0.5))],
            links: vec![context(3)],
            error: Some(SpanError { code: "c".into(), message: "bad".into() }),
        };
        let encoded = encode(&[("service.name".into(), "x".into())], &[span]);
        let resource = [0x0a, 21, 0x0a, 19, 0x0a, 12].into_iter().chain(*b"service.name");
        let resource: Vec<u8> = resource.chain([0x12, 3, 0x0a, 1, b'x']).collect();
        assert_eq!(encoded[..1], [0x0a]);
        let position = |bytes: &[u8]| encoded.windows(bytes.len()).position(|window| window == bytes);
        assert_eq!(position(&resource), Some(3), "{encoded:x?}");
        let mut expected = vec![0x0a, 16];
        expected.extend([1; 16]);
        expected.extend([0x12, 8]);
        expected.extend([1; 8]);
        expected.extend([0x22, 8]);
        expected.extend([2; 8]);
        expected.extend([0x2a, 6]);
        expected.extend(b"chat m");
        expected.extend([0x30, 3, 0x39]);
        expected.extend(1_000_000_u64.to_le_bytes());
        expected.push(0x41);
        expected.extend(2_000_000_u64.to_le_bytes());
        expected.extend([0x4a, 16, 0x0a, 1, b'n', 0x12, 11, 0x18]);
        expected.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        expected.extend([0x4a, 14, 0x0a, 1, b'f', 0x12, 9, 0x21]);
        expected.extend(0.5_f64.to_bits().to_le_bytes());
        expected.extend([0x6a, 28, 0x0a, 16]);
        expected.extend([3; 16]);
        expected.extend([0x12, 8]);
        expected.extend([3; 8]);
        expected.extend([0x4a, 17, 0x0a, 10]);
        expected.extend(b"error.type");
        expected.extend([0x12, 3, 0x0a, 1, b'c', 0x7a, 7, 0x12, 3]);
        expected.extend(b"bad");
        expected.extend([0x18, 2]);
        assert!(encoded.ends_with(&expected), "{encoded:x?}\n{expected:x?}");
    }
}
