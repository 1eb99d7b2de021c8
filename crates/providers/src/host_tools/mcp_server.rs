//! The host tools as an MCP server, without a transport: one message in, at most one out.

use super::{HostToolDefinition, HostToolOutcome};
use serde_json::{Map, Value, json};

/// The newest supported protocol revision; an older one is accepted if the client requests it.
const REVISION: &str = "2025-06-18";

/// What to do with a message.
#[derive(Clone, PartialEq, Debug)]
pub enum HostMcpStep {
    /// Send this reply.
    Reply(Value),
    /// No reply is expected.
    Ignore,
    /// Call the tool, then reply with [`tool_result`].
    Call { id: Value, name: String, arguments: Map<String, Value> },
}

pub fn handle_message(message: &Value, tools: &[HostToolDefinition]) -> HostMcpStep {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let Some(id) = message.get("id").filter(|id| !id.is_null()).cloned() else { return HostMcpStep::Ignore };
    let params = message.get("params").unwrap_or(&Value::Null);
    match method {
        "initialize" => {
            let revision = params.get("protocolVersion").and_then(Value::as_str).unwrap_or(REVISION);
            HostMcpStep::Reply(success(
                &id,
                json!({
                    "protocolVersion": revision,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": super::SERVER_NAME, "version": env!("CARGO_PKG_VERSION")},
                }),
            ))
        }
        "ping" => HostMcpStep::Reply(success(&id, json!({}))),
        "tools/list" => HostMcpStep::Reply(success(&id, json!({"tools": list(tools)}))),
        "tools/call" => HostMcpStep::Call {
            id,
            name: params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default(),
        },
        // A response to a request that we never sent.
        "" => HostMcpStep::Ignore,
        unknown => HostMcpStep::Reply(json!({
            "jsonrpc": "2.0", "id": id,
            "error": {"code": -32601, "message": format!("unknown method {unknown:?}")},
        })),
    }
}

/// The reply to a tool call.
pub fn tool_result(id: &Value, outcome: &HostToolOutcome) -> Value {
    success(id, json!({"content": [{"type": "text", "text": outcome.text}], "isError": outcome.is_error}))
}

fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn list(tools: &[HostToolDefinition]) -> Vec<Value> {
    let entry = |tool: &HostToolDefinition| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.schema});
    tools.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::{HostMcpStep, handle_message, tool_result};
    use crate::host_tools::{HostTool as _, HostToolOutcome, tools::AskUser};
    use serde_json::{Map, json};

    #[test]
    fn handshake_list_and_call() {
        let HostMcpStep::Reply(hello) =
            handle_message(&json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}), &[])
        else {
            panic!()
        };
        assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(handle_message(&json!({"method": "notifications/initialized"}), &[]), HostMcpStep::Ignore);
        let tools = [AskUser.definition()];
        let HostMcpStep::Reply(list) = handle_message(&json!({"id": 1, "method": "tools/list"}), &tools) else {
            panic!()
        };
        assert_eq!(list["result"]["tools"][0]["name"], "ask_user");
        assert_eq!(list["result"]["tools"][0]["inputSchema"], tools[0].schema);
        let call = json!({"id": "x", "method": "tools/call", "params": {"name": "current_time"}});
        assert_eq!(
            handle_message(&call, &[]),
            HostMcpStep::Call { id: json!("x"), name: "current_time".into(), arguments: Map::new() }
        );
        let reply = tool_result(&json!("x"), &HostToolOutcome::success("now"));
        assert_eq!(reply["result"]["content"][0]["text"], "now");
    }

    #[test]
    fn unknown_method_returns_an_error() {
        let HostMcpStep::Reply(reply) = handle_message(&json!({"id": 1, "method": "resources/list"}), &[]) else {
            panic!()
        };
        assert_eq!(reply["error"]["code"], -32601);
    }
}
