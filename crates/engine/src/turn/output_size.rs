//! The size of an event as output of a run: the bytes that somebody else chose. Pure.

use domain::event::EventBody;
use serde_json::Value;
use std::io::{self, Write};

/// Events that the server itself composes have no size: their number is bounded in other ways.
pub(super) fn output_size(body: &EventBody) -> u64 {
    let bytes = match body {
        EventBody::ContentDelta(e) => e.delta.len(),
        EventBody::ThinkingDelta(e) => e.delta.len(),
        EventBody::ToolUse(e) => e.tool_use_id.len() + e.name.len() + json_size(&e.input),
        EventBody::ToolOutputDelta(e) => e.delta.len(),
        EventBody::ToolResult(e) => e.tool_use_id.len() + json_size(&e.content),
        EventBody::ApprovalRequested(e) => e.name.len() + json_size(&e.input),
        EventBody::Status(e) => e.status.len() + e.message.len(),
        EventBody::Retract(e) => e.item.len(),
        EventBody::UsageReported(e) => e.model.as_ref().map_or(0, String::len),
        EventBody::FileChanged(e) => e.path.len() + e.change.len(),
        EventBody::ErrorReported(e) => e.code.len() + e.message.len(),
        EventBody::RunDelegated(e) => e.tool_use_id.as_ref().map_or(0, String::len),
        EventBody::MessagePosted(_)
        | EventBody::MessageCopied(_)
        | EventBody::TapePlanned(_)
        | EventBody::RunQueued(_)
        | EventBody::RunStarted(_)
        | EventBody::StreamStart(_)
        | EventBody::ApprovalResolved(_)
        | EventBody::StreamEnd(_)
        | EventBody::RunCompleted(_)
        | EventBody::RunFailed(_)
        | EventBody::RunCancelled(_)
        | EventBody::RunInterrupted(_)
        | EventBody::ParticipantJoined(_)
        | EventBody::ParticipantLeft(_) => 0,
    };
    bytes as u64
}

/// The length of a value as JSON, without building the text.
fn json_size(value: &Value) -> usize {
    struct Counter(usize);

    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // Counting does not fail; if it did, the value would have no size.
    drop(serde_json::to_writer(&mut counter, value));
    counter.0
}
