//! The host tools as an MCP server, without a transport: one message in, at most one out.

use super::{Outcome, TOOLS};
use serde_json::{Value, json};

/// The newest revision whose handshake this speaks; an older one that is asked for is agreed to.
const REVISION: &str = "2025-06-18";

/// What is to be done with a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Send this back.
    Reply(Value),
    /// Nothing is expected back.
    Nothing,
    /// Call the tool, then reply with [`result`].
    Call { id: Value, name: String, arguments: Value },
}

pub fn step(message: &Value) -> Step {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let Some(id) = message.get("id").filter(|id| !id.is_null()).cloned() else { return Step::Nothing };
    let params = message.get("params").unwrap_or(&Value::Null);
    match method {
        "initialize" => {
            let revision = params.get("protocolVersion").and_then(Value::as_str).unwrap_or(REVISION);
            Step::Reply(success(
                &id,
                json!({
                    "protocolVersion": revision,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": super::SERVER, "version": env!("CARGO_PKG_VERSION")},
                }),
            ))
        }
        "ping" => Step::Reply(success(&id, json!({}))),
        "tools/list" => Step::Reply(success(&id, json!({"tools": list()}))),
        "tools/call" => Step::Call {
            id,
            name: params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: params.get("arguments").cloned().unwrap_or_else(|| json!({})),
        },
        // An answer to something we never asked.
        "" => Step::Nothing,
        unknown => Step::Reply(json!({
            "jsonrpc": "2.0", "id": id,
            "error": {"code": -32601, "message": format!("there is no method {unknown:?}")},
        })),
    }
}

/// The reply to a tool call.
pub fn result(id: &Value, outcome: &Outcome) -> Value {
    success(id, json!({"content": [{"type": "text", "text": outcome.text}], "isError": outcome.is_error}))
}

fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn list() -> Vec<Value> {
    let entry = |tool: &super::Definition| json!({"name": tool.name, "description": tool.description, "inputSchema": (tool.schema)()});
    TOOLS.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::{Step, result, step};
    use crate::host_tools::Outcome;
    use serde_json::json;

    #[test]
    fn a_whole_conversation() {
        let Step::Reply(hello) =
            step(&json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}))
        else {
            panic!()
        };
        assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(step(&json!({"method": "notifications/initialized"})), Step::Nothing);
        let Step::Reply(list) = step(&json!({"id": 1, "method": "tools/list"})) else { panic!() };
        assert_eq!(list["result"]["tools"][1]["name"], "ask_user");
        let call = json!({"id": "x", "method": "tools/call", "params": {"name": "current_time"}});
        assert_eq!(step(&call), Step::Call { id: json!("x"), name: "current_time".into(), arguments: json!({}) });
        let reply = result(&json!("x"), &Outcome { text: "now".into(), is_error: false });
        assert_eq!(reply["result"]["content"][0]["text"], "now");
    }

    #[test]
    fn what_is_not_known_is_answered_not_ignored() {
        let Step::Reply(reply) = step(&json!({"id": 1, "method": "resources/list"})) else { panic!() };
        assert_eq!(reply["error"]["code"], -32601);
    }
}
