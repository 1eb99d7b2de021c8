//! A run in the simple words of `/api/execute`: status · message · completion · error · cancelled, then `data: done`.

use super::live::{Live, Next};
use crate::App;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use domain::{
    event::EventBody,
    ids::{RoomId, RunId},
    owner::Owner,
    run::RunStatus,
};
use engine::commands::{Attendance, OnDisconnect};
use futures_util::stream;
use serde_json::{Value, json};
use store::journal::Frame;

pub struct Dialect {
    live: Live,
    run: RunId,
    room: RoomId,
    text: String,
    greeted: bool,
    ended: bool,
    attendance: Attendance,
}

impl Dialect {
    pub fn new(app: &App, owner: &Owner, live: Live, room: RoomId, run: RunId, on_disconnect: OnDisconnect) -> Self {
        let attendance = app.engine.attend(owner, run, on_disconnect);
        Self { live, run, room, text: String::new(), greeted: false, ended: false, attendance }
    }

    pub fn respond(self) -> Response {
        super::sse::respond(stream::unfold(self, |mut dialect| async move { Some((dialect.next().await?, dialect)) }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            let hello = json!({"status": RunStatus::Queued, "run_id": self.run, "room_id": self.room,
                               "conversationId": self.room});
            return Some(frame("status", &hello));
        }
        while !self.ended {
            let mut out = BytesMut::new();
            match self.live.next().await {
                Next::Frames(frames) => {
                    let run = Some(self.run);
                    for event in frames.iter().filter(|event| event.run_id == run) {
                        self.tell(event, &mut out);
                    }
                }
                Next::Heartbeat { .. } => out.extend_from_slice(b": keep-alive\n\n"),
                // The run's room was opened a moment ago at a position of this epoch.
                Next::Reset { .. } => {}
                Next::Stopping => {
                    let error = json!({"code": "server_stopping", "run_id": self.run,
                        "message": "The server is stopping; the answer goes on in the room, read it there."});
                    out.extend_from_slice(&frame("error", &error));
                    self.end(&mut out);
                }
                Next::Failed(problem) => {
                    problem.log("execute");
                    out.extend_from_slice(&frame(
                        "error",
                        &json!({"code": problem.code(), "message": problem.detail()}),
                    ));
                    self.end(&mut out);
                }
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
        None
    }

    fn end(&mut self, out: &mut BytesMut) {
        self.ended = true;
        self.attendance.end();
        out.extend_from_slice(b"data: done\n\n");
    }

    fn tell(&mut self, event: &Frame, out: &mut BytesMut) {
        let Some(body) = event.body() else { return };
        let (name, data): (&str, Value) = match body {
            EventBody::RunStarted(e) => {
                ("status", json!({"status": RunStatus::Running, "provider": e.provider, "model": e.model}))
            }
            EventBody::Status(e) => ("status", json!({"status": e.status, "message": e.message})),
            EventBody::ContentDelta(e) => {
                self.text.push_str(&e.delta);
                ("message", json!({"type": "assistant", "delta": e.delta}))
            }
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
            // Retracted text is not in it: this is what the answer is, whatever the deltas said.
            EventBody::StreamEnd(e) => {
                self.text = e.response_text;
                return;
            }
            EventBody::RunCompleted(e) => (
                "completion",
                json!({"run_id": self.run, "conversationId": self.room, "text": self.text, "usage": e.usage,
                       "tokens": e.usage.total(), "cost": e.cost, "duration_ms": e.duration_ms}),
            ),
            EventBody::RunFailed(e) => {
                ("error", json!({"code": e.error.code, "message": e.error.message, "run_id": self.run}))
            }
            EventBody::RunCancelled(e) => (
                "cancelled",
                json!({"run_id": self.run, "status": RunStatus::Cancelled, "text": self.text, "receipt": e.receipt}),
            ),
            EventBody::RunInterrupted(e) => (
                "cancelled",
                json!({"run_id": self.run, "status": RunStatus::Interrupted, "text": self.text, "reason": e.reason}),
            ),
            _ => return,
        };
        out.extend_from_slice(&frame(name, &data));
        if event.kind.ends_a_run() {
            self.end(out);
        }
    }
}

fn frame(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
