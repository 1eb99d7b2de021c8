//! The app-server of Codex: JSON-RPC without the `jsonrpc` field, threads and turns.

use super::{FakeProtocol, LineAction};
use serde_json::{Value, json};

#[derive(Default)]
pub struct FakeCodex {
    threads: usize,
    turns: usize,
    /// The current `turn/start` request.
    request: Value,
    thread: Value,
}

impl FakeCodex {
    fn turn(&self, status: &str) -> Value {
        json!({"id": format!("turn_replay{}", self.turns), "items": [], "status": status, "error": null})
    }

    fn item(&self) -> String {
        format!("msg_replay{}", self.turns)
    }

    /// A notification about the current turn.
    fn turn_notification(&self, method: &str, fields: Value) -> Value {
        let mut params = json!({"threadId": self.thread, "turnId": self.turn("")["id"]});
        if let (Some(params), Value::Object(fields)) = (params.as_object_mut(), fields) {
            params.extend(fields);
        }
        json!({"method": method, "params": params})
    }
}

fn result(request: &Value, result: Value) -> Value {
    json!({"id": request["id"], "result": result})
}

impl FakeProtocol for FakeCodex {
    fn handle_line(&mut self, line: &Value) -> LineAction {
        let (Some(method), Some(_)) = (line["method"].as_str(), line.get("id")) else { return LineAction::Ignore };
        let thread = match method {
            "turn/start" => {
                self.turns += 1;
                self.request = line.clone();
                self.thread = line["params"]["threadId"].clone();
                return LineAction::Prompt;
            }
            "initialize" => {
                let answer = json!({"userAgent": "replay/0.166.0", "platformFamily": "unix", "platformOs": "linux"});
                return LineAction::Reply(vec![result(line, answer)]);
            }
            "thread/start" => {
                self.threads += 1;
                json!(format!("01a1e0e2-0000-7000-8000-{:012}", self.threads))
            }
            "thread/resume" => line["params"]["threadId"].clone(),
            _ => return LineAction::Reply(vec![result(line, json!({}))]),
        };
        let thread = json!({"id": thread, "turns": [], "status": {"type": "idle"}, "cliVersion": "0.166.0"});
        let started = json!({"method": "thread/started", "params": {"thread": thread}});
        let answer = json!({"thread": thread, "model": "gpt-5.5", "modelProvider": "replay"});
        LineAction::Reply(vec![result(line, answer), started])
    }

    fn begin(&mut self) -> Vec<Value> {
        let item = json!({"type": "agentMessage", "id": self.item(), "text": ""});
        vec![
            result(&self.request, json!({"turn": self.turn("inProgress")})),
            self.turn_notification("turn/started", json!({"turn": self.turn("inProgress")})),
            self.turn_notification("item/started", json!({"item": item})),
        ]
    }

    fn delta(&self, text: &str) -> Value {
        self.turn_notification("item/agentMessage/delta", json!({"itemId": self.item(), "delta": text}))
    }

    fn end(&mut self, text: &str) -> Vec<Value> {
        let item = json!({"type": "agentMessage", "id": self.item(), "text": text});
        let tokens = json!({
            "totalTokens": 15, "inputTokens": 10, "cachedInputTokens": 0, "cacheWriteInputTokens": 0,
            "outputTokens": 5, "reasoningOutputTokens": 0,
        });
        let usage = json!({"total": tokens, "last": tokens, "modelContextWindow": 100_000});
        vec![
            self.turn_notification("item/completed", json!({"item": item})),
            self.turn_notification("thread/tokenUsage/updated", json!({"tokenUsage": usage})),
            self.turn_notification("turn/completed", json!({"turn": self.turn("completed")})),
        ]
    }
}
