//! Answers the control requests of Claude Code. Pure.

use super::{control::ControlRequest, parse::text, wire};
use crate::host_tools::{
    self, HostToolDefinition, HostToolOutcome,
    mcp_server::{self, HostMcpStep},
};
use domain::{
    agent::{PolicyDecision, ToolPolicy},
    event::Decision,
    mcp::tool_of,
};
use serde_json::{Map, Value, json};

/// How to react to a control request.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ControlReaction {
    /// Send this line now.
    Reply(String),
    /// Send this line now and report the message to the room.
    ReplyAndReport(String, String),
    RequestApproval(ClaudeApprovalRequest),
    CallHostTool(ClaudeHostToolCall),
    /// The program cancelled an earlier call of a host tool.
    CallCancelled {
        call: Value,
        reply: String,
    },
}

/// A request that only the room can answer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ClaudeApprovalRequest {
    pub reply_to: PermissionReply,
    pub name: String,
    pub input: Value,
    pub tool_use_id: Option<String>,
    pub is_question: bool,
}

/// Where the answer to a permission request goes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PermissionReply {
    pub id: String,
    input: Value,
}

/// A call of a host tool; [`host_tool_line`] answers it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ClaudeHostToolCall {
    pub reply_to: HostToolReply,
    pub name: String,
    pub arguments: Map<String, Value>,
    pub tool_use_id: Option<String>,
}

/// Where the outcome of a host tool goes: the control request, and the MCP request in it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct HostToolReply {
    id: String,
    pub call: Value,
}

/// `tools` are the host tools that the program is offered.
pub(super) fn react(
    id: String,
    ask: ControlRequest,
    policy: &ToolPolicy,
    tools: &[HostToolDefinition],
) -> ControlReaction {
    match ask {
        ControlRequest::Permission { tool, input, tool_use_id, is_question } => {
            ControlReaction::RequestApproval(ClaudeApprovalRequest {
                reply_to: PermissionReply { id, input: input.clone() },
                name: tool,
                input,
                tool_use_id,
                is_question,
            })
        }
        ControlRequest::Hook { tool, event } => {
            ControlReaction::Reply(wire::reply(&id, &hook_response(tool.as_deref(), &event, policy)))
        }
        ControlRequest::Mcp { server, message } if server == host_tools::SERVER_NAME => {
            host_tools_message(id, &message, tools)
        }
        ControlRequest::Mcp { server, .. } => {
            ControlReaction::Reply(wire::error_reply(&id, &format!("no MCP server named {server:?}")))
        }
        ControlRequest::Elicitation { server, message } => ControlReaction::ReplyAndReport(
            wire::reply(&id, &json!({"action": "decline"})),
            format!("the MCP server {server} asked for input; the request was declined: {message}"),
        ),
        ControlRequest::Unknown { subtype } => {
            ControlReaction::Reply(wire::error_reply(&id, &format!("unsupported control request {subtype:?}")))
        }
    }
}

/// The program asks permission only for some tools (not for reading, for example). This hook applies the agent's policy
/// to all tools: `deny` patterns are denied, and `ask` patterns need approval.
fn hook_response(tool: Option<&str>, event: &str, policy: &ToolPolicy) -> Value {
    let decide = |decision: &str, reason: String| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }})
    };
    let Some(tool) = tool.filter(|_| event == "PreToolUse") else { return json!({"continue": true}) };
    // Everything else is allowed here, so that only tools matched by `ask` need approval.
    let named = ToolPolicy { allow: vec!["*".into()], ask: policy.ask.clone(), deny: policy.deny.clone() };
    let is_ask_user = tool_of(host_tools::SERVER_NAME, tool) == Some(host_tools::tools::ASK_USER);
    match named.decide(tool) {
        PolicyDecision::Deny => decide("deny", format!("{tool} is not allowed for this agent.")),
        PolicyDecision::Ask if !is_ask_user => decide("ask", format!("{tool} needs approval for this agent.")),
        PolicyDecision::Ask | PolicyDecision::Allow => json!({"continue": true}),
    }
}

fn host_tools_message(id: String, message: &Value, tools: &[HostToolDefinition]) -> ControlReaction {
    let reply_line = |response: &Value| wire::reply(&id, &json!({"mcp_response": response}));
    match mcp_server::handle_message(message, tools) {
        HostMcpStep::Reply(reply) => ControlReaction::Reply(reply_line(&reply)),
        HostMcpStep::Ignore => {
            // The control request needs a response even when the MCP message in it does not.
            let say = reply_line(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
            match message["params"].get("requestId") {
                Some(call) if text(message, "method") == Some("notifications/cancelled") => {
                    ControlReaction::CallCancelled { call: call.clone(), reply: say }
                }
                _ => ControlReaction::Reply(say),
            }
        }
        HostMcpStep::Call { id: call, name, arguments } => {
            let tool_use_id = text(&message["params"]["_meta"], "claudecode/toolUseId").map(str::to_owned);
            let reply_to = HostToolReply { id, call };
            ControlReaction::CallHostTool(ClaudeHostToolCall { reply_to, name, arguments, tool_use_id })
        }
    }
}

/// Returns the line with the outcome of a host tool.
pub(super) fn host_tool_line(to: &HostToolReply, outcome: &HostToolOutcome) -> String {
    wire::reply(&to.id, &json!({"mcp_response": mcp_server::tool_result(&to.call, outcome)}))
}

/// Returns the line that answers a permission request. The rules that the program suggests are never applied.
pub(super) fn answer_line(to: PermissionReply, decision: Decision, input: Option<Value>) -> String {
    let deny = |message: &str| json!({"behavior": "deny", "message": message});
    let answer = match decision {
        Decision::Allow => json!({"behavior": "allow", "updatedInput": updated_input(to.input, input)}),
        Decision::Deny => deny("The user denied this."),
        Decision::Expired => deny("Nobody answered in time, so it was not run."),
    };
    wire::reply(&to.id, &answer)
}

/// Answers to `AskUserQuestion` are added to its input: `{"answers": {"Which colour?": "Blue"}}`, or just
/// `{"answer": "Blue"}`. Any other input replaces the requested input.
fn updated_input(asked: Value, input: Option<Value>) -> Value {
    let Some(input) = input else { return asked };
    let Some(questions) = asked.get("questions").and_then(Value::as_array) else { return input };
    let answers = match (input.get("questions"), input.get("answers"), input.get("answer")) {
        (Some(_), _, _) => return input,
        (None, Some(answers), _) => answers.clone(),
        (None, None, Some(answer)) => {
            let all = questions.iter().filter_map(|question| text(question, "question"));
            Value::Object(all.map(|question| (question.to_owned(), answer.clone())).collect())
        }
        (None, None, None) => return input,
    };
    let mut whole = asked;
    whole["answers"] = answers;
    whole
}

#[cfg(test)]
mod tests {
    use super::{PermissionReply, answer_line, hook_response};
    use domain::{agent::ToolPolicy, event::Decision};
    use serde_json::{Value, json};

    fn response(line: &str) -> Value {
        serde_json::from_str::<Value>(line).unwrap()["response"]["response"].clone()
    }

    fn permission(input: Value) -> PermissionReply {
        PermissionReply { id: "r".into(), input }
    }

    #[test]
    fn policy_applies_to_every_tool() {
        let policy = ToolPolicy { allow: vec!["*".into()], ask: vec!["Web*".into()], deny: vec!["Bash".into()] };
        let decision = |tool: &str| {
            hook_response(Some(tool), "PreToolUse", &policy)["hookSpecificOutput"]["permissionDecision"].clone()
        };
        assert_eq!(decision("Bash"), "deny");
        assert_eq!(decision("WebFetch"), "ask");
        assert_eq!(decision("Read"), Value::Null);
        assert_eq!(hook_response(Some("Bash"), "PostToolUse", &policy), json!({"continue": true}));
    }

    #[test]
    fn tools_without_a_matching_pattern_are_left_to_the_program() {
        assert_eq!(hook_response(Some("Read"), "PreToolUse", &ToolPolicy::default()), json!({"continue": true}));
    }

    #[test]
    fn ask_user_needs_no_approval_but_can_be_denied() {
        let all = || vec!["*".to_owned()];
        let ask = ToolPolicy { ask: all(), ..ToolPolicy::default() };
        assert_eq!(hook_response(Some("mcp__greenroom__ask_user"), "PreToolUse", &ask), json!({"continue": true}));
        let deny = ToolPolicy { deny: all(), ..ToolPolicy::default() };
        let decided = hook_response(Some("mcp__greenroom__ask_user"), "PreToolUse", &deny);
        assert_eq!(decided["hookSpecificOutput"]["permissionDecision"], "deny");
    }

    #[test]
    fn allow_returns_the_requested_or_the_changed_input() {
        let asked = json!({"command": "rm x"});
        let yes = response(&answer_line(permission(asked.clone()), Decision::Allow, None));
        assert_eq!(yes, json!({"behavior": "allow", "updatedInput": asked}));
        let changed = json!({"command": "ls"});
        let yes = response(&answer_line(permission(asked.clone()), Decision::Allow, Some(changed.clone())));
        assert_eq!(yes["updatedInput"], changed);
        for no in [Decision::Deny, Decision::Expired] {
            let no = response(&answer_line(permission(asked.clone()), no, None));
            assert!(no["behavior"] == "deny" && no["message"].is_string());
        }
    }

    #[test]
    fn questions_accept_three_answer_formats() {
        let asked = json!({"questions": [{"question": "Which colour?", "options": []}]});
        let whole = json!({"questions": asked["questions"], "answers": {"Which colour?": "Blue"}});
        for input in [json!({"answer": "Blue"}), json!({"answers": {"Which colour?": "Blue"}}), whole.clone()] {
            let yes = response(&answer_line(permission(asked.clone()), Decision::Allow, Some(input)));
            assert_eq!(yes["updatedInput"], whole);
        }
    }
}
