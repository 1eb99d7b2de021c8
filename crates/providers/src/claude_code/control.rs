//! Parses the control channel: the program's requests, and its responses to ours.

use super::parse::{ClaudeOutput, text};
use serde_json::{Map, Value};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum ControlRequest {
    Permission { tool: String, input: Value, tool_use_id: Option<String>, is_question: bool },
    Hook { tool: Option<String>, event: String },
    Mcp { server: String, message: Value },
    Elicitation { server: String, message: String },
    Unknown { subtype: String },
}

pub(super) fn parse_request(value: &Value, line: &str) -> Option<ClaudeOutput> {
    let id = text(value, "request_id")?.to_owned();
    let request = &value["request"];
    let owned = |name: &str| text(request, name).unwrap_or_default().to_owned();
    let ask = match text(request, "subtype").unwrap_or_default() {
        "can_use_tool" => {
            let tool = owned("tool_name");
            ControlRequest::Permission {
                is_question: request["requires_user_interaction"] == true || tool == "AskUserQuestion",
                tool,
                input: request.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new())),
                tool_use_id: text(request, "tool_use_id").map(str::to_owned),
            }
        }
        "hook_callback" => ControlRequest::Hook {
            tool: text(&request["input"], "tool_name").map(str::to_owned),
            event: text(&request["input"], "hook_event_name").unwrap_or_default().to_owned(),
        },
        "mcp_message" => ControlRequest::Mcp { server: owned("server_name"), message: request["message"].clone() },
        "elicitation" => ControlRequest::Elicitation { server: owned("mcp_server_name"), message: owned("message") },
        _ => ControlRequest::Unknown { subtype: owned("subtype") },
    };
    Some(ClaudeOutput::Request { id, request: ask, raw: line.to_owned() })
}

pub(super) fn parse_response(value: &Value) -> Option<ClaudeOutput> {
    let response = &value["response"];
    let id = text(response, "request_id")?.to_owned();
    let answer = if response["subtype"] == "success" {
        Ok(response.get("response").cloned().unwrap_or(Value::Null))
    } else {
        Err(text(response, "error").unwrap_or("no reason given").to_owned())
    };
    Some(ClaudeOutput::Response { id, answer })
}
