//! What Codex asks of us in the middle of a turn, and how each kind of question is answered. Pure.
//!
//! Answers are yes or no to this one call. What would write settings or open more than was asked for (accept for the
//! session, amend the policy) is never sent.

use super::parse::{Parser, Tool, mcp_name, text};
use crate::{
    host_tools::{self, Called, Outcome},
    jsonrpc::RpcError,
};
use domain::{event::Decision, time::Timestamp};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The engine or a person decides.
    Approval(Approval),
    /// Nobody has to be asked.
    Answered(Result<Value, RpcError>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub tool_use_id: Option<String>,
    pub name: String,
    pub input: Value,
    pub reply: Reply,
}

/// How the answer is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Decision,
    /// With what was asked for.
    Permissions(Value),
    McpTool,
    /// With (id, text) of each.
    Questions(Vec<(String, String)>),
    HostTool,
}

pub fn ask(method: &str, params: &Value, parser: &Parser, now: Timestamp) -> Ask {
    let item = text(params, "itemId");
    let tool = item.and_then(|item| parser.tool(item));
    let approval = |name: &str, input: Value, reply: Reply| {
        Ask::Approval(Approval { tool_use_id: item.map(str::to_owned), name: name.to_owned(), input, reply })
    };
    match method {
        "item/commandExecution/requestApproval" => approval("shell", command(params, tool), Reply::Decision),
        "item/fileChange/requestApproval" => approval("apply_patch", patch(params, tool), Reply::Decision),
        "item/permissions/requestApproval" => {
            let wanted = params.get("permissions").cloned().unwrap_or_else(|| json!({}));
            let input = there(params, &["permissions", "cwd", "reason"]);
            approval("request_permissions", input, Reply::Permissions(wanted))
        }
        "mcpServer/elicitation/request" => elicitation(params, parser),
        "item/tool/requestUserInput" => {
            let listed = params.get("questions").and_then(Value::as_array).into_iter().flatten();
            let questions = listed.filter_map(|one| Some((text(one, "id")?.into(), text(one, "question")?.into())));
            approval("request_user_input", there(params, &["questions"]), Reply::Questions(questions.collect()))
        }
        "item/tool/call" => host_tool(params, now),
        _ => Ask::Answered(refusal(method)),
    }
}

/// The answer where nobody can be asked: no, as each kind of question says it.
pub fn refusal(method: &str) -> Result<Value, RpcError> {
    match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            Ok(Reply::Decision.answer(Decision::Deny, None))
        }
        "item/permissions/requestApproval" => Ok(Reply::Permissions(Value::Null).answer(Decision::Deny, None)),
        "mcpServer/elicitation/request" => Ok(Reply::McpTool.answer(Decision::Deny, None)),
        "item/tool/requestUserInput" => Ok(Reply::Questions(Vec::new()).answer(Decision::Deny, None)),
        "item/tool/call" => Ok(Reply::HostTool.answer(Decision::Expired, None)),
        _ => Err(RpcError::unknown_method(method)),
    }
}

impl Reply {
    /// Whether the answer is what a person says, and not only yes or no.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Questions(_) | Self::HostTool)
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
            Self::HostTool => tool_result(&host_tools::answered(decision, input)),
        }
    }
}

/// By question, as Codex wants them. People's answers come by id or by the question's text, or as one for all.
fn answers(questions: &[(String, String)], input: Option<&Value>) -> Map<String, Value> {
    let given = input.and_then(|input| input.get("answers"));
    let one = input.and_then(|input| input.get("answer"));
    let answer = |id: &str, question: &str| {
        let by_key = given.and_then(|given| given.get(id).or_else(|| given.get(question)));
        let answer = by_key.or(one)?;
        // It may come in Codex's own shape already.
        Some(match answer.get("answers").unwrap_or(answer) {
            Value::Array(several) => Value::Array(several.clone()),
            single => json!([single]),
        })
    };
    let answered = questions.iter().filter_map(|(id, question)| Some((id, answer(id, question)?)));
    answered.map(|(id, answers)| (id.clone(), json!({"answers": answers}))).collect()
}

fn host_tool(params: &Value, now: Timestamp) -> Ask {
    let (name, nothing) = (text(params, "tool").unwrap_or_default(), json!({}));
    match host_tools::call(name, params.get("arguments").unwrap_or(&nothing), now) {
        Called::Done(outcome) => Ask::Answered(Ok(tool_result(&outcome))),
        Called::Ask { input } => Ask::Approval(Approval {
            tool_use_id: text(params, "callId").map(str::to_owned),
            name: name.to_owned(),
            input,
            reply: Reply::HostTool,
        }),
    }
}

fn tool_result(outcome: &Outcome) -> Value {
    json!({"contentItems": [{"type": "inputText", "text": outcome.text}], "success": !outcome.is_error})
}

/// An MCP server may ask the person anything; only Codex's own "may this tool run?" is passed on.
fn elicitation(params: &Value, parser: &Parser) -> Ask {
    let nothing = Value::Null;
    let meta = params.get("_meta").unwrap_or(&nothing);
    if text(meta, "codex_approval_kind") != Some("mcp_tool_call") {
        return Ask::Answered(refusal("mcpServer/elicitation/request"));
    }
    // The request names the server and the arguments; which tool it is stands in the call that waits.
    let (server, arguments) = (text(params, "serverName").unwrap_or_default(), meta.get("tool_params"));
    let of_server: Vec<(&str, &Tool)> =
        parser.tools().filter(|(_, tool)| tool.server.as_deref() == Some(server)).collect();
    let same = of_server.iter().find(|(_, tool)| Some(&tool.input) == arguments);
    let (tool_use_id, name, input) = match same.or(of_server.last().filter(|_| of_server.len() == 1)) {
        Some((id, tool)) => (Some((*id).to_owned()), tool.name.clone(), tool.input.clone()),
        None => (None, mcp_name(server, "unknown"), arguments.cloned().unwrap_or_else(|| json!({}))),
    };
    Ask::Approval(Approval { tool_use_id, name, input, reply: Reply::McpTool })
}

/// The exact command, with what Codex says about why.
fn command(params: &Value, tool: Option<&Tool>) -> Value {
    let mut input =
        there(params, &["command", "cwd", "reason", "kind", "networkApprovalContext", "additionalPermissions"]);
    if let (Value::Object(input), Some(Value::Object(known))) = (&mut input, tool.map(|tool| &tool.input)) {
        // A plain command is what it is asked for mostly; only another kind is worth a word.
        if input.get("kind").and_then(Value::as_str) == Some("command") {
            input.remove("kind");
        }
        for (name, value) in known {
            input.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    input
}

/// The request does not say what would change; the item that began before it does.
fn patch(params: &Value, tool: Option<&Tool>) -> Value {
    let mut input = there(params, &["reason", "grantRoot"]);
    if let (Value::Object(input), Some(Value::Object(known))) = (&mut input, tool.map(|tool| &tool.input)) {
        input.extend(known.clone());
    }
    input
}

fn there(params: &Value, fields: &[&str]) -> Value {
    let found = fields.iter().filter_map(|field| Some((*field, params.get(*field).filter(|value| !value.is_null())?)));
    Value::Object(found.map(|(field, value)| (field.to_owned(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::{Approval, Ask, Reply, ask, refusal};
    use crate::codex::parse::Parser;
    use domain::{event::Decision, time::Timestamp};
    use serde_json::{Value, json};

    fn parser_with(items: &[Value]) -> Parser {
        let mut parser = Parser::new(None, None);
        parser.turn_is("t");
        for item in items {
            parser.apply("item/started", &json!({"turnId": "t", "item": item}));
        }
        parser
    }

    fn asked(method: &str, params: &Value, items: &[Value]) -> Approval {
        match ask(method, params, &parser_with(items), Timestamp::from_millis(0)) {
            Ask::Approval(approval) => approval,
            Ask::Answered(answer) => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_command_is_asked_with_its_exact_input_and_never_with_codexs_own_suggestions() {
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
    fn a_patch_is_asked_with_the_changes_that_came_before() {
        let changes = json!([{"path": "/srv/a", "kind": {"type": "add"}, "diff": "hello\n"}]);
        let known = json!({"type": "fileChange", "id": "f", "changes": changes});
        let approval = asked("item/fileChange/requestApproval", &json!({"itemId": "f", "reason": null}), &[known]);
        assert_eq!((approval.name.as_str(), approval.input), ("apply_patch", json!({"changes": changes})));
    }

    #[test]
    fn an_mcp_tool_is_found_by_its_server_and_arguments() {
        let call = |id: &str, tool: &str, x: u64| json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": tool, "arguments": {"x": x}});
        let params =
            json!({"serverName": "s", "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"x": 2}}});
        let both = [call("one", "read", 1), call("two", "write", 2)];
        let approval = asked("mcpServer/elicitation/request", &params, &both);
        assert_eq!((approval.name.as_str(), approval.tool_use_id.as_deref()), ("mcp__s__write", Some("two")));
        assert_eq!(approval.reply.answer(Decision::Allow, None)["action"], "accept");
        let stranger = asked("mcpServer/elicitation/request", &params, &[]);
        assert_eq!((stranger.name.as_str(), stranger.tool_use_id), ("mcp__s__unknown", None));
    }

    #[test]
    fn other_questions_of_an_mcp_server_are_declined() {
        let params = json!({"serverName": "s", "message": "Your password?", "mode": "form"});
        let Ask::Answered(Ok(answer)) =
            ask("mcpServer/elicitation/request", &params, &parser_with(&[]), Timestamp::from_millis(0))
        else {
            panic!()
        };
        assert_eq!(answer["action"], "decline");
    }

    #[test]
    fn host_tools_answer_at_once_or_ask() {
        let now = Timestamp::from_millis(0);
        let time = ask("item/tool/call", &json!({"callId": "c", "tool": "current_time"}), &parser_with(&[]), now);
        let Ask::Answered(Ok(answer)) = time else { panic!() };
        assert_eq!((&answer["success"], &answer["contentItems"][0]["type"]), (&json!(true), &json!("inputText")));
        let question = json!({"callId": "c", "tool": "ask_user", "arguments": {"question": "Which?"}});
        let approval = asked("item/tool/call", &question, &[]);
        assert!(approval.reply.is_question() && approval.tool_use_id.as_deref() == Some("c"));
        let answer = approval.reply.answer(Decision::Allow, Some(&json!({"answer": "both"})));
        assert_eq!(answer["contentItems"][0]["text"], "both");
    }

    #[test]
    fn answers_to_questions_are_taken_by_id_by_text_or_as_one() {
        let reply = Reply::Questions(vec![("q1".into(), "Which?".into()), ("q2".into(), "Why?".into())]);
        let both = json!({"answers": {"q1": {"answers": ["Blue"]}, "q2": {"answers": ["so"]}}});
        assert_eq!(reply.answer(Decision::Allow, Some(&both)), both);
        let by_text = json!({"answers": {"Which?": "Blue", "q2": ["so"]}});
        assert_eq!(reply.answer(Decision::Allow, Some(&by_text)), both);
        let one = reply.answer(Decision::Allow, Some(&json!({"answer": "x"})));
        assert_eq!(one, json!({"answers": {"q1": {"answers": ["x"]}, "q2": {"answers": ["x"]}}}));
        assert_eq!(reply.answer(Decision::Deny, Some(&both)), json!({"answers": {}}));
    }

    #[test]
    fn more_rights_are_given_for_this_turn_or_not_at_all() {
        let wanted = json!({"network": {"enabled": true}});
        let params = json!({"itemId": "p", "permissions": wanted, "cwd": "/srv"});
        let approval = asked("item/permissions/requestApproval", &params, &[]);
        assert_eq!(approval.reply.answer(Decision::Allow, None), json!({"permissions": wanted, "scope": "turn"}));
        assert_eq!(approval.reply.answer(Decision::Deny, None), json!({"permissions": {}, "scope": "turn"}));
    }

    #[test]
    fn what_is_not_known_is_refused_not_ignored() {
        assert!(refusal("attestation/generate").is_err());
        assert_eq!(refusal("item/fileChange/requestApproval"), Ok(json!({"decision": "decline"})));
    }
}
