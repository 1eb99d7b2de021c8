//! Claude Code's stream-json.

use super::{FakeProtocol, LineAction};
use serde_json::{Value, json};

const SESSION: &str = "5e551011-0000-4000-8000-000000000001";

#[derive(Default)]
pub struct FakeClaude {
    turns: usize,
    uuid: Option<Value>,
}

impl FakeClaude {
    fn message(&self) -> String {
        format!("msg_replay{}", self.turns)
    }

    fn event(&self, event: Value) -> Value {
        json!({
            "type": "stream_event", "event": event, "session_id": SESSION, "parent_tool_use_id": null,
            "api_message_id": self.message(),
        })
    }

    fn message_with(&self, content: Value) -> Value {
        json!({
            "id": self.message(), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": content, "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        })
    }
}

impl FakeProtocol for FakeClaude {
    fn handle_line(&mut self, line: &Value) -> LineAction {
        match line["type"].as_str() {
            Some("user") => {
                self.turns += 1;
                self.uuid = line.get("uuid").cloned();
                LineAction::Prompt
            }
            Some("control_request") => {
                let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {}});
                LineAction::Reply(vec![json!({"type": "control_response", "response": response})])
            }
            _ => LineAction::Ignore,
        }
    }

    fn begin(&mut self) -> Vec<Value> {
        vec![
            json!({
                "type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-sonnet-4-5", "tools": [],
                "mcp_servers": [], "skills": [], "slash_commands": [], "permissionMode": "default",
                "claude_code_version": "2.1.325",
            }),
            self.event(json!({"type": "message_start", "message": self.message_with(json!([]))})),
            self.event(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
        ]
    }

    fn delta(&self, text: &str) -> Value {
        let delta = json!({"type": "text_delta", "text": text});
        self.event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    }

    fn end(&mut self, text: &str) -> Vec<Value> {
        let message = self.message_with(json!([{"type": "text", "text": text}]));
        let usage = json!({"input_tokens": 10, "output_tokens": 5});
        let uuids: Vec<Value> = self.uuid.take().into_iter().collect();
        vec![
            json!({"type": "assistant", "message": message, "session_id": SESSION, "parent_tool_use_id": null}),
            self.event(json!({"type": "content_block_stop", "index": 0})),
            self.event(json!({
                "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                "usage": {"output_tokens": 5},
            })),
            self.event(json!({"type": "message_stop"})),
            json!({
                "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                "result": text, "session_id": SESSION, "num_turns": 1, "duration_ms": 1, "usage": usage,
                "total_cost_usd": 0, "modelUsage": {}, "model_usage_since_last_result": {}, "permission_denials": [],
                "user_message_uuids": uuids,
            }),
        ]
    }
}
