//! The dialect `deltas`: status · message · completion · error · cancelled, one frame for each piece of the answer.

use super::DialectFrame;
use domain::{
    event::EventBody,
    ids::{RoomId, RunId},
    run::RunStatus,
};
use serde_json::json;

pub(super) struct DeltasTranslator {
    run: RunId,
    room: RoomId,
    /// The answer, once it has ended.
    text: String,
}

impl DeltasTranslator {
    pub(super) fn new(run: RunId, room: RoomId) -> Self {
        Self { run, room, text: String::new() }
    }

    pub(super) fn translate(&mut self, body: EventBody) -> Option<DialectFrame> {
        let (run, room) = (self.run, self.room);
        let (event, data) = match body {
            EventBody::RunQueued(_) => {
                ("status", json!({"status": RunStatus::Queued, "run_id": run, "room_id": room, "conversationId": room}))
            }
            EventBody::RunStarted(e) => {
                ("status", json!({"status": RunStatus::Running, "provider": e.provider, "model": e.model}))
            }
            EventBody::Status(e) => ("status", json!({"status": e.status, "message": e.message})),
            EventBody::ContentDelta(e) => ("message", json!({"type": "assistant", "delta": e.delta})),
            EventBody::ThinkingDelta(e) => ("message", json!({"type": "thinking", "delta": e.delta})),
            EventBody::Retract(e) => ("status", json!({"status": "retracted", "item": e.item})),
            EventBody::ToolUse(e) => {
                ("message", json!({"type": "tool_use", "id": e.tool_use_id, "name": e.name, "input": e.input}))
            }
            EventBody::ToolResult(e) => (
                "message",
                json!({"type": "tool_result", "id": e.tool_use_id, "content": e.content, "is_error": e.is_error}),
            ),
            EventBody::ApprovalRequested(e) => (
                "status",
                json!({"status": RunStatus::WaitingForApproval, "approval_id": e.approval_id, "name": e.name,
                       "input": e.input, "expires_at": e.expires_at}),
            ),
            // The text without retracted parts; the terminal event is in the same commit.
            EventBody::StreamEnd(e) => {
                self.text = e.response_text;
                return None;
            }
            EventBody::RunCompleted(e) => (
                "completion",
                json!({"run_id": run, "conversationId": room, "text": self.text, "usage": e.usage,
                       "tokens": e.usage.total(), "cost": e.exact_cost(), "duration_ms": e.duration_ms}),
            ),
            EventBody::RunFailed(e) => return Some(self.failure(&e.error.code, &e.error.message)),
            EventBody::RunCancelled(e) => (
                "cancelled",
                json!({"run_id": run, "status": RunStatus::Cancelled, "text": self.text, "receipt": e.receipt}),
            ),
            EventBody::RunInterrupted(e) => (
                "cancelled",
                json!({"run_id": run, "status": RunStatus::Interrupted, "text": self.text, "reason": e.reason}),
            ),
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
            | EventBody::ErrorReported(_) => return None,
        };
        Some(DialectFrame::new(event, data))
    }

    pub(super) fn failure(&self, code: &str, message: &str) -> DialectFrame {
        DialectFrame::new("error", json!({"code": code, "message": message, "run_id": self.run}))
    }
}
