//! The Agent Client Protocol, version 1.

use super::{FakeProtocol, LineAction};
use serde_json::{Value, json};

pub struct FakeAcp {
    /// Whether the agent supports MCP servers over HTTP.
    http: bool,
    servers: Value,
    sessions: usize,
    /// The current prompt request.
    request: Value,
}

impl FakeAcp {
    pub fn new(http: bool) -> Self {
        Self { http, servers: Value::Null, sessions: 0, request: Value::Null }
    }
}

fn result(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

impl FakeProtocol for FakeAcp {
    fn handle_line(&mut self, line: &Value) -> LineAction {
        let (Some(method), Some(_)) = (line["method"].as_str(), line.get("id")) else { return LineAction::Ignore };
        let answer = match method {
            "session/prompt" => {
                self.request = line.clone();
                return LineAction::Prompt;
            }
            "initialize" => json!({
                "protocolVersion": 1, "authMethods": [], "agentInfo": {"name": "replay", "version": "0.61.0"},
                "agentCapabilities": {"loadSession": true, "promptCapabilities": {}, "mcpCapabilities": {"http": self.http}},
            }),
            "session/new" => {
                self.sessions += 1;
                self.servers = line["params"]["mcpServers"].clone();
                json!({"sessionId": format!("5e551011-0000-4000-8000-{:012}", self.sessions)})
            }
            _ => json!({}),
        };
        LineAction::Reply(vec![result(line, answer)])
    }

    fn begin(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn delta(&self, text: &str) -> Value {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": self.request["params"]["sessionId"], "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    fn end(&mut self, _text: &str) -> Vec<Value> {
        vec![result(&self.request, json!({"stopReason": "end_turn"}))]
    }

    fn servers(&self) -> Value {
        self.servers.clone()
    }
}
