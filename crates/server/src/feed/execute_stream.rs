//! The event stream of `/api/execute`: status · message · completion · error · cancelled, then `data: done`.

use super::room_reader::{RoomReader, RoomUpdate};
use crate::App;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use domain::{
    actor::Actor,
    event::EventBody,
    ids::{RoomId, RunId},
    run::RunStatus,
};
use engine::commands::{DisconnectGuard, OnDisconnect};
use futures_util::stream;
use serde_json::{Value, json};
use store::journal::Frame;

pub struct ExecuteStream {
    live: RoomReader,
    run: RunId,
    room: RoomId,
    /// The answer, once it has ended.
    text: String,
    started: bool,
    ended: bool,
    disconnect_guard: DisconnectGuard,
}

impl ExecuteStream {
    pub fn new(
        app: &App,
        actor: &Actor,
        live: RoomReader,
        room: RoomId,
        run: RunId,
        on_disconnect: OnDisconnect,
    ) -> Self {
        let disconnect_guard = app.engine.cancel_on_disconnect(actor, run, on_disconnect);
        let live = live.of_run(run);
        Self { live, run, room, text: String::new(), started: false, ended: false, disconnect_guard }
    }

    pub fn respond(self) -> Response {
        super::sse::respond(stream::unfold(self, |mut stream| async move { Some((stream.next().await?, stream)) }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            let queued = json!({"status": RunStatus::Queued, "run_id": self.run, "room_id": self.room,
                                "conversationId": self.room});
            return Some(frame("status", &queued));
        }
        while !self.ended {
            let mut out = BytesMut::new();
            match self.live.next().await {
                RoomUpdate::Frames(frames) => {
                    frames.iter().for_each(|event| self.write_event(event, &mut out));
                }
                RoomUpdate::RunEnded => self.end(&mut out),
                RoomUpdate::Heartbeat { .. } => out.extend_from_slice(b": keep-alive\n\n"),
                // Cannot happen: the stream starts at a position of the current epoch.
                RoomUpdate::Reset { .. } => {}
                RoomUpdate::Stopping => {
                    let error = json!({"code": "server_stopping", "run_id": self.run,
                        "message": "The server is stopping; follow the room's events for the rest of the answer."});
                    out.extend_from_slice(&frame("error", &error));
                    self.end(&mut out);
                }
                RoomUpdate::Failed(problem) => {
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
        self.disconnect_guard.disarm();
        out.extend_from_slice(b"data: done\n\n");
    }

    fn write_event(&mut self, event: &Frame, out: &mut BytesMut) {
        let Some(body) = event.body() else { return };
        let (name, data): (&str, Value) = match body {
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
                return;
            }
            EventBody::RunCompleted(e) => (
                "completion",
                json!({"run_id": self.run, "conversationId": self.room, "text": self.text, "usage": e.usage,
                       "tokens": e.usage.total(), "cost": e.exact_cost(), "duration_ms": e.duration_ms}),
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
    }
}

fn frame(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
