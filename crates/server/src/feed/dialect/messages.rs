//! The dialect `messages`: every frame has its type in its data, and a text or a thought is sent when it is complete. So
//! a part that the provider retracts is never shown.

use super::{DialectFrame, RunEvent};
use domain::{event::EventBody, time::Timestamp};
use serde_json::{Value, json};

#[derive(Default)]
pub(in crate::feed) struct MessagesTranslator {
    open: Option<OpenBlock>,
}

/// A text or a thought that is not complete yet.
struct OpenBlock {
    kind: BlockKind,
    pieces: Vec<BlockPiece>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
}

struct BlockPiece {
    text: String,
    item: Option<String>,
}

impl MessagesTranslator {
    pub(in crate::feed) fn translate(&mut self, event: RunEvent) -> Vec<DialectFrame> {
        let at = event.created_at;
        match event.body {
            EventBody::RunQueued(_) => vec![status("Loading agent...", at)],
            EventBody::RunStarted(_) => vec![status("Running agent...", at)],
            EventBody::Status(e) => vec![status(&e.message, at)],
            EventBody::ApprovalRequested(e) => vec![status(&format!("Waiting for approval: {}", e.name), at)],
            EventBody::ContentDelta(e) => self.add(BlockKind::Text, e.delta, e.item),
            EventBody::ThinkingDelta(e) => self.add(BlockKind::Thinking, e.delta, e.item),
            EventBody::Retract(e) => {
                if let Some(open) = &mut self.open {
                    open.pieces.retain(|piece| piece.item.as_ref() != Some(&e.item));
                }
                Vec::new()
            }
            EventBody::ToolUse(e) => self.close_with(message(
                json!({"type": "tool_use", "id": e.tool_use_id, "name": e.name, "input": e.input}),
            )),
            EventBody::ToolResult(e) => {
                let mut result = json!({"type": "tool_result", "tool_use_id": e.tool_use_id, "content": e.content});
                if e.is_error {
                    result["is_error"] = true.into();
                }
                self.close_with(message(result))
            }
            EventBody::StreamEnd(_) => self.close().into_iter().collect(),
            EventBody::RunCompleted(e) => {
                let tokens = json!({"input": e.usage.input_tokens, "output": e.usage.output_tokens});
                self.close_with(DialectFrame::new(
                    "completion",
                    json!({"type": "completion", "tokens": tokens, "cost": e.exact_cost(), "duration": seconds(e.duration_ms)}),
                ))
            }
            EventBody::RunFailed(e) => self.close_with(Self::failure(&e.error.code, &e.error.message)),
            EventBody::RunCancelled(_) | EventBody::RunInterrupted(_) => {
                self.close_with(DialectFrame::new("cancelled", json!({"type": "cancelled"})))
            }
            EventBody::MessagePosted(_)
            | EventBody::MessageCopied(_)
            | EventBody::TapePlanned(_)
            | EventBody::StreamStart(_)
            | EventBody::ToolOutputDelta(_)
            | EventBody::RunDelegated(_)
            | EventBody::ApprovalResolved(_)
            | EventBody::UsageReported(_)
            | EventBody::ParticipantJoined(_)
            | EventBody::ParticipantLeft(_)
            | EventBody::FileChanged(_)
            | EventBody::ErrorReported(_) => Vec::new(),
        }
    }

    pub(super) fn failure(code: &str, message: &str) -> DialectFrame {
        DialectFrame::new("error", json!({"type": "error", "error": message, "details": code}))
    }

    /// Adds a piece to the open block. A piece of the other kind closes it first.
    fn add(&mut self, kind: BlockKind, text: String, item: Option<String>) -> Vec<DialectFrame> {
        let closed = match &self.open {
            Some(open) if open.kind != kind => self.close(),
            _ => None,
        };
        let open = self.open.get_or_insert_with(|| OpenBlock { kind, pieces: Vec::new() });
        open.pieces.push(BlockPiece { text, item });
        closed.into_iter().collect()
    }

    fn close_with(&mut self, frame: DialectFrame) -> Vec<DialectFrame> {
        self.close().into_iter().chain([frame]).collect()
    }

    fn close(&mut self) -> Option<DialectFrame> {
        let OpenBlock { kind, pieces } = self.open.take()?;
        let text: String = pieces.into_iter().map(|piece| piece.text).collect();
        if text.is_empty() {
            return None;
        }
        Some(message(match kind {
            BlockKind::Text => json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}),
            BlockKind::Thinking => json!({"type": "thinking", "thinking": text}),
        }))
    }
}

fn status(text: &str, at: Timestamp) -> DialectFrame {
    DialectFrame::new("status", json!({"type": "status", "status": text, "timestamp": at}))
}

fn message(content: Value) -> DialectFrame {
    DialectFrame::new("message", json!({"type": "message", "content": content}))
}

#[expect(clippy::cast_precision_loss, reason = "a duration that people read")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::{MessagesTranslator, RunEvent};
    use domain::{
        event::{ContentDelta, EventBody, Retract, RunCompleted, Status, StreamEnd, ThinkingDelta, ToolUse},
        ids::MessageId,
        time::Timestamp,
        usage::{Cost, Usage},
    };
    use serde_json::{Value, json};

    fn translate(bodies: Vec<EventBody>) -> Vec<Value> {
        let mut translator = MessagesTranslator::default();
        let event = |(seq, body)| RunEvent { seq, agent_id: None, created_at: Timestamp::default(), body };
        let frames = (1..).zip(bodies).map(event).flat_map(|event| translator.translate(event));
        frames.map(|frame| frame.data).collect()
    }

    #[test]
    fn a_block_is_sent_whole_and_without_what_was_retracted() {
        let stream_id = MessageId::generate();
        let text = |delta: &str, item: Option<&str>| {
            EventBody::from(ContentDelta { stream_id, delta: delta.into(), item: item.map(Into::into) })
        };
        let usage = Usage { input_tokens: 100, output_tokens: 50, ..Usage::default() };
        let frames = translate(vec![
            ThinkingDelta { stream_id, delta: "hm".into(), item: None }.into(),
            text("Hel", None),
            text("wrong", Some("x")),
            Status::new("retrying", "Trying again").into(),
            Retract { stream_id, item: "x".into() }.into(),
            text("lo", Some("y")),
            ToolUse { stream_id, tool_use_id: "t".into(), name: "look".into(), input: json!({"at": 1}) }.into(),
            text("gone", Some("z")),
            Retract { stream_id, item: "z".into() }.into(),
            StreamEnd {
                stream_id,
                response_text: "Hello".into(),
                thinking_text: "hm".into(),
                session_id: None,
                memory_entries: Vec::new(),
                model_calls: Vec::new(),
                skipped: false,
            }
            .into(),
            RunCompleted { usage, cost: Some(Cost::from_nanos(2_500_000)), cost_nanos: None, duration_ms: 5200 }.into(),
        ]);
        assert_eq!(
            frames,
            [
                json!({"type": "message", "content": {"type": "thinking", "thinking": "hm"}}),
                json!({"type": "status", "status": "Trying again", "timestamp": "1970-01-01T00:00:00.000Z"}),
                json!({"type": "message", "content":
                       {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello"}]}}}),
                json!({"type": "message", "content":
                       {"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}}}),
                json!({"type": "completion", "tokens": {"input": 100, "output": 50}, "cost": 0.0025, "duration": 5.2}),
            ]
        );
    }
}
