//! Answers the requests that Codex sends during a turn. Pure.
//!
//! Each answer allows or denies a single call. Answers that would change settings or grant more than was requested
//! (accept for the session, amend the policy) are never sent.

use super::parse::{CodexParser, CodexToolCall, text};
use crate::{host_tools::HostToolOutcome, jsonrpc::RpcError};
use domain::{event::Decision, mcp::tool_name};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub enum CodexRequest {
    /// The engine or a user decides.
    Approval(Approval),
    /// A host tool; [`tool_result`] is the answer.
    HostTool { call_id: Option<String>, name: String, arguments: Map<String, Value> },
    /// No decision is needed.
    Answered(Result<Value, RpcError>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub tool_use_id: Option<String>,
    pub name: String,
    pub input: Value,
    pub reply: CodexReplyFormat,
}

/// The format of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum CodexReplyFormat {
    Decision,
    /// With the requested permissions.
    Permissions(Value),
    McpTool,
    /// With the id and text of each question.
    Questions(Vec<(String, String)>),
}

pub fn classify(method: &str, params: &Value, parser: &CodexParser) -> CodexRequest {
    let item = text(params, "itemId");
    let tool = item.and_then(|item| parser.tool(item));
    let approval = |name: &str, input: Value, reply: CodexReplyFormat| {
        CodexRequest::Approval(Approval { tool_use_id: item.map(str::to_owned), name: name.to_owned(), input, reply })
    };
    match method {
        "item/commandExecution/requestApproval" => {
            approval("shell", command_input(params, tool), CodexReplyFormat::Decision)
        }
        "item/fileChange/requestApproval" => {
            approval("apply_patch", patch_input(params, tool), CodexReplyFormat::Decision)
        }
        "item/permissions/requestApproval" => {
            let wanted = params.get("permissions").cloned().unwrap_or_else(|| json!({}));
            let input = present_fields(params, &["permissions", "cwd", "reason"]);
            approval("request_permissions", input, CodexReplyFormat::Permissions(wanted))
        }
        "mcpServer/elicitation/request" => elicitation(params, parser),
        "item/tool/requestUserInput" => {
            let listed = params.get("questions").and_then(Value::as_array).into_iter().flatten();
            let questions = listed.filter_map(|one| Some((text(one, "id")?.into(), text(one, "question")?.into())));
            approval(
                "request_user_input",
                present_fields(params, &["questions"]),
                CodexReplyFormat::Questions(questions.collect()),
            )
        }
        "item/tool/call" => CodexRequest::HostTool {
            call_id: text(params, "callId").map(str::to_owned),
            name: text(params, "tool").unwrap_or_default().to_owned(),
            arguments: params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default(),
        },
        _ => CodexRequest::Answered(refusal(method)),
    }
}

/// Returns the denial for a request, in the format of its method.
pub fn refusal(method: &str) -> Result<Value, RpcError> {
    match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            Ok(CodexReplyFormat::Decision.answer(Decision::Deny, None))
        }
        "item/permissions/requestApproval" => {
            Ok(CodexReplyFormat::Permissions(Value::Null).answer(Decision::Deny, None))
        }
        "mcpServer/elicitation/request" => Ok(CodexReplyFormat::McpTool.answer(Decision::Deny, None)),
        "item/tool/requestUserInput" => Ok(CodexReplyFormat::Questions(Vec::new()).answer(Decision::Deny, None)),
        "item/tool/call" => Ok(tool_result(&HostToolOutcome::error("The tool was not called."))),
        _ => Err(RpcError::unknown_method(method)),
    }
}

impl CodexReplyFormat {
    /// Whether the answer is text from a user instead of allow or deny.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Questions(_))
    }

    pub fn answer(&self, decision: Decision, input: Option<&Value>) -> Value {
        let allowed = decision == Decision::Allow;
        match self {
            Self::Decision => json!({"decision": if allowed { "accept" } else { "decline" }}),
            Self::Permissions(wanted) if allowed => json!({"permissions": wanted, "scope": "turn"}),
            Self::Permissions(_) => json!({"permissions": {}, "scope": "turn"}),
            Self::McpTool if allowed => json!({"action": "accept", "content": {}, "_meta": null}),
            Self::McpTool => json!({"action": "decline", "content": null, "_meta": null}),
            Self::Questions(questions) if allowed => json!({"answers": answers(questions, input)}),
            Self::Questions(_) => json!({"answers": {}}),
        }
    }
}

/// Returns the answers by question id, as Codex expects. Users answer by id, by the question's text, or once for all.
fn answers(questions: &[(String, String)], input: Option<&Value>) -> Map<String, Value> {
    let by_question = input.and_then(|input| input.get("answers"));
    let one = input.and_then(|input| input.get("answer"));
    let answer = |id: &str, question: &str| {
        let by_key = by_question.and_then(|answers| answers.get(id).or_else(|| answers.get(question)));
        let answer = by_key.or(one)?;
        // The answer may already have Codex's format.
        Some(match answer.get("answers").unwrap_or(answer) {
            Value::Array(several) => Value::Array(several.clone()),
            single => json!([single]),
        })
    };
    let answered = questions.iter().filter_map(|(id, question)| Some((id, answer(id, question)?)));
    answered.map(|(id, answers)| (id.clone(), json!({"answers": answers}))).collect()
}

/// The answer to a call of a host tool.
pub fn tool_result(outcome: &HostToolOutcome) -> Value {
    json!({"contentItems": [{"type": "inputText", "text": outcome.text}], "success": !outcome.is_error})
}

/// An MCP server may ask the user anything; only Codex's own tool approvals are passed on.
fn elicitation(params: &Value, parser: &CodexParser) -> CodexRequest {
    let nothing = Value::Null;
    let meta = params.get("_meta").unwrap_or(&nothing);
    if text(meta, "codex_approval_kind") != Some("mcp_tool_call") {
        return CodexRequest::Answered(refusal("mcpServer/elicitation/request"));
    }
    // The request has the server and the arguments; the tool name is in the pending call.
    let (server, arguments) = (text(params, "serverName").unwrap_or_default(), meta.get("tool_params"));
    let of_server: Vec<(&str, &CodexToolCall)> =
        parser.tools().filter(|(_, tool)| tool.server.as_deref() == Some(server)).collect();
    let same = of_server.iter().find(|(_, tool)| Some(&tool.input) == arguments);
    let (tool_use_id, name, input) = match same.or(of_server.last().filter(|_| of_server.len() == 1)) {
        Some((id, tool)) => (Some((*id).to_owned()), tool.name.clone(), tool.input.clone()),
        None => (None, tool_name(server, "unknown"), arguments.cloned().unwrap_or_else(|| json!({}))),
    };
    CodexRequest::Approval(Approval { tool_use_id, name, input, reply: CodexReplyFormat::McpTool })
}

/// The exact command, with Codex's reason.
fn command_input(params: &Value, tool: Option<&CodexToolCall>) -> Value {
    let mut input = present_fields(
        params,
        &["command", "cwd", "reason", "kind", "networkApprovalContext", "additionalPermissions"],
    );
    if let (Value::Object(input), Some(Value::Object(known))) = (&mut input, tool.map(|tool| &tool.input)) {
        // `command` is the usual kind; only other kinds are shown.
        if input.get("kind").and_then(Value::as_str) == Some("command") {
            input.remove("kind");
        }
        for (name, value) in known {
            input.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    input
}

/// The request does not have the changes; the item that started before it does.
fn patch_input(params: &Value, tool: Option<&CodexToolCall>) -> Value {
    let mut input = present_fields(params, &["reason", "grantRoot"]);
    if let (Value::Object(input), Some(Value::Object(known))) = (&mut input, tool.map(|tool| &tool.input)) {
        input.extend(known.clone());
    }
    input
}

fn present_fields(params: &Value, fields: &[&str]) -> Value {
    let found = fields.iter().filter_map(|field| Some((*field, params.get(*field).filter(|value| !value.is_null())?)));
    Value::Object(found.map(|(field, value)| (field.to_owned(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::{Approval, CodexReplyFormat, CodexRequest, classify, refusal, tool_result};
    use crate::{codex::parse::CodexParser, host_tools::HostToolOutcome};
    use domain::event::Decision;
    use serde_json::{Map, Value, json};

    fn parser_with(items: &[Value]) -> CodexParser {
        let mut parser = CodexParser::new(None, None);
        parser.set_turn("t");
        for item in items {
            parser.apply("item/started", &json!({"turnId": "t", "item": item}));
        }
        parser
    }

    fn asked(method: &str, params: &Value, items: &[Value]) -> Approval {
        match classify(method, params, &parser_with(items)) {
            CodexRequest::Approval(approval) => approval,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn command_approval_has_the_exact_input_without_suggestions() {
        let params = json!({"itemId": "c", "kind": "command", "command": "bash -lc 'rm x'", "cwd": "/srv", "reason": "tidy",
            "proposedExecpolicyAmendment": ["rm"], "availableDecisions": ["accept", "acceptForSession", "cancel"]});
        let known = json!({"type": "commandExecution", "id": "c", "command": "bash -lc 'rm x'", "cwd": "/srv"});
        let approval = asked("item/commandExecution/requestApproval", &params, &[known]);
        assert_eq!(approval.tool_use_id.as_deref(), Some("c"));
        assert_eq!(approval.input, json!({"command": "bash -lc 'rm x'", "cwd": "/srv", "reason": "tidy"}));
        assert_eq!(approval.reply.answer(Decision::Allow, None), json!({"decision": "accept"}));
        for no in [Decision::Deny, Decision::Expired] {
            assert_eq!(approval.reply.answer(no, None), json!({"decision": "decline"}));
        }
    }

    #[test]
    fn patch_approval_has_the_changes_of_its_item() {
        let changes = json!([{"path": "/srv/a", "kind": {"type": "add"}, "diff": "hello\n"}]);
        let known = json!({"type": "fileChange", "id": "f", "changes": changes});
        let approval = asked("item/fileChange/requestApproval", &json!({"itemId": "f", "reason": null}), &[known]);
        assert_eq!((approval.name.as_str(), approval.input), ("apply_patch", json!({"changes": changes})));
    }

    #[test]
    fn mcp_tool_is_found_by_server_and_arguments() {
        let call = |id: &str, tool: &str, x: u64| json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": tool, "arguments": {"x": x}});
        let params =
            json!({"serverName": "s", "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"x": 2}}});
        let both = [call("one", "read", 1), call("two", "write", 2)];
        let approval = asked("mcpServer/elicitation/request", &params, &both);
        assert_eq!((approval.name.as_str(), approval.tool_use_id.as_deref()), ("mcp__s__write", Some("two")));
        assert_eq!(approval.reply.answer(Decision::Allow, None)["action"], "accept");
        let unknown = asked("mcpServer/elicitation/request", &params, &[]);
        assert_eq!((unknown.name.as_str(), unknown.tool_use_id), ("mcp__s__unknown", None));
    }

    #[test]
    fn other_mcp_elicitations_are_declined() {
        let params = json!({"serverName": "s", "message": "Your password?", "mode": "form"});
        let CodexRequest::Answered(Ok(answer)) = classify("mcpServer/elicitation/request", &params, &parser_with(&[]))
        else {
            panic!()
        };
        assert_eq!(answer["action"], "decline");
    }

    #[test]
    fn host_tool_calls_are_passed_on() {
        let params = json!({"callId": "c", "tool": "ask_user", "arguments": {"question": "Which?"}});
        let CodexRequest::HostTool { call_id, name, arguments } =
            classify("item/tool/call", &params, &parser_with(&[]))
        else {
            panic!()
        };
        assert_eq!((call_id.as_deref(), name.as_str()), (Some("c"), "ask_user"));
        assert_eq!(Value::Object(arguments), params["arguments"]);
        let bare = json!({"callId": "c", "tool": "current_time", "arguments": null});
        let without = classify("item/tool/call", &bare, &parser_with(&[]));
        assert!(matches!(without, CodexRequest::HostTool { arguments, .. } if arguments == Map::new()));
        let answer = tool_result(&HostToolOutcome::success("both"));
        assert_eq!(answer, json!({"contentItems": [{"type": "inputText", "text": "both"}], "success": true}));
    }

    #[test]
    fn answers_are_accepted_by_id_by_text_or_for_all() {
        let reply = CodexReplyFormat::Questions(vec![("q1".into(), "Which?".into()), ("q2".into(), "Why?".into())]);
        let both = json!({"answers": {"q1": {"answers": ["Blue"]}, "q2": {"answers": ["so"]}}});
        assert_eq!(reply.answer(Decision::Allow, Some(&both)), both);
        let by_text = json!({"answers": {"Which?": "Blue", "q2": ["so"]}});
        assert_eq!(reply.answer(Decision::Allow, Some(&by_text)), both);
        let one = reply.answer(Decision::Allow, Some(&json!({"answer": "x"})));
        assert_eq!(one, json!({"answers": {"q1": {"answers": ["x"]}, "q2": {"answers": ["x"]}}}));
        assert_eq!(reply.answer(Decision::Deny, Some(&both)), json!({"answers": {}}));
    }

    #[test]
    fn permissions_are_granted_for_one_turn_only() {
        let wanted = json!({"network": {"enabled": true}});
        let params = json!({"itemId": "p", "permissions": wanted, "cwd": "/srv"});
        let approval = asked("item/permissions/requestApproval", &params, &[]);
        assert_eq!(approval.reply.answer(Decision::Allow, None), json!({"permissions": wanted, "scope": "turn"}));
        assert_eq!(approval.reply.answer(Decision::Deny, None), json!({"permissions": {}, "scope": "turn"}));
    }

    #[test]
    fn unknown_requests_are_refused() {
        assert!(refusal("attestation/generate").is_err());
        assert_eq!(refusal("item/fileChange/requestApproval"), Ok(json!({"decision": "decline"})));
    }
}
