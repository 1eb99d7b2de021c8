//! What Claude Code asks of us, and how each is answered. Pure.

use super::{control::Ask, parse::text, wire};
use crate::host_tools::{
    self, Called,
    mcp::{self, Step},
};
use domain::{
    agent::{ToolPolicy, Verdict},
    event::Decision,
    time::Timestamp,
};
use serde_json::{Value, json};

/// What is to be done about an ask.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Reaction {
    /// Say this at once.
    Say(String),
    /// Say this at once, and tell the room.
    SayAndTell(String, String),
    Ask(Question),
    /// An earlier call of a host tool is not waited for any more.
    CallCancelled {
        call: Value,
        say: String,
    },
}

/// Something that only the room can answer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Question {
    pub to: ReplyTo,
    pub name: String,
    pub input: Value,
    pub tool_use_id: Option<String>,
    pub is_question: bool,
}

/// Where its answer goes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ReplyTo {
    Permission { id: String, input: Value },
    HostTool { id: String, call: Value },
}

pub(super) fn react(id: String, ask: Ask, policy: &ToolPolicy, now: Timestamp) -> Reaction {
    match ask {
        Ask::Permission { tool, input, tool_use_id, is_question } => Reaction::Ask(Question {
            to: ReplyTo::Permission { id, input: input.clone() },
            name: tool,
            input,
            tool_use_id,
            is_question,
        }),
        Ask::Hook { tool, event } => Reaction::Say(wire::reply(&id, &hook(tool.as_deref(), &event, policy))),
        Ask::Mcp { server, message } if server == host_tools::SERVER => host(id, &message, now),
        Ask::Mcp { server, .. } => Reaction::Say(wire::refuse(&id, &format!("there is no server {server:?} here"))),
        Ask::Elicitation { server, message } => Reaction::SayAndTell(
            wire::reply(&id, &json!({"action": "decline"})),
            format!("the MCP server {server} asked for input and was told that there is none: {message}"),
        ),
        Ask::Unknown { subtype } => Reaction::Say(wire::refuse(&id, &format!("{subtype:?} is not known here"))),
    }
}

/// The program itself decides which tools need asking; reading, for one, does not. Here the agent's policy gets its say
/// about those too: what it denies is denied, what it names to be asked about is asked about.
fn hook(tool: Option<&str>, event: &str, policy: &ToolPolicy) -> Value {
    let decide = |decision: &str, reason: String| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }})
    };
    let Some(tool) = tool.filter(|_| event == "PreToolUse") else { return json!({"continue": true}) };
    // With everything else allowed, only what is named is left to ask about.
    let named = ToolPolicy { allow: vec!["*".into()], ask: policy.ask.clone(), deny: policy.deny.clone() };
    let asks_itself = tool == format!("mcp__{}__ask_user", host_tools::SERVER);
    match named.verdict(tool) {
        Verdict::Deny => decide("deny", format!("{tool} is not allowed for this agent.")),
        Verdict::Ask if !asks_itself => decide("ask", format!("{tool} needs a person's yes for this agent.")),
        Verdict::Ask | Verdict::Allow => json!({"continue": true}),
    }
}

fn host(id: String, message: &Value, now: Timestamp) -> Reaction {
    let say = |response: &Value| wire::reply(&id, &json!({"mcp_response": response}));
    match mcp::step(message) {
        Step::Reply(reply) => Reaction::Say(say(&reply)),
        Step::Nothing => {
            // The control request wants an answer even where the message in it does not.
            let say = say(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
            match message["params"].get("requestId") {
                Some(call) if text(message, "method") == Some("notifications/cancelled") => {
                    Reaction::CallCancelled { call: call.clone(), say }
                }
                _ => Reaction::Say(say),
            }
        }
        Step::Call { id: call, name, arguments } => match host_tools::call(&name, &arguments, now) {
            Called::Done(outcome) => Reaction::Say(say(&mcp::result(&call, &outcome))),
            Called::Ask { input } => {
                let tool_use_id = text(&message["params"]["_meta"], "claudecode/toolUseId").map(str::to_owned);
                Reaction::Ask(Question {
                    to: ReplyTo::HostTool { id, call },
                    name,
                    input,
                    tool_use_id,
                    is_question: true,
                })
            }
        },
    }
}

/// The line that answers a question. The program's own suggestions for its settings are never taken up.
pub(super) fn answer(to: ReplyTo, decision: Decision, input: Option<Value>) -> String {
    match to {
        ReplyTo::HostTool { id, call } => {
            let outcome = host_tools::answered(decision, input.as_ref());
            wire::reply(&id, &json!({"mcp_response": mcp::result(&call, &outcome)}))
        }
        ReplyTo::Permission { id, input: asked } => {
            let deny = |message: &str| json!({"behavior": "deny", "message": message});
            let answer = match decision {
                Decision::Allow => json!({"behavior": "allow", "updatedInput": updated(asked, input)}),
                Decision::Deny => deny("The person said no."),
                Decision::Expired => deny("Nobody answered in time, so it was not done."),
            };
            wire::reply(&id, &answer)
        }
    }
}

/// Answers to the program's own questions go into the question: `{"answers": {"Which colour?": "Blue"}}`, or just
/// `{"answer": "Blue"}`. Any other input takes the place of what was asked for.
fn updated(asked: Value, input: Option<Value>) -> Value {
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
    use super::{ReplyTo, answer, hook};
    use domain::{agent::ToolPolicy, event::Decision};
    use serde_json::{Value, json};

    fn said(line: &str) -> Value {
        serde_json::from_str::<Value>(line).unwrap()["response"]["response"].clone()
    }

    fn permission(input: Value) -> ReplyTo {
        ReplyTo::Permission { id: "r".into(), input }
    }

    #[test]
    fn the_policy_has_its_say_about_every_tool() {
        let policy = ToolPolicy { allow: vec!["*".into()], ask: vec!["Web*".into()], deny: vec!["Bash".into()] };
        let decision =
            |tool: &str| hook(Some(tool), "PreToolUse", &policy)["hookSpecificOutput"]["permissionDecision"].clone();
        assert_eq!(decision("Bash"), "deny");
        assert_eq!(decision("WebFetch"), "ask");
        assert_eq!(decision("Read"), Value::Null);
        assert_eq!(hook(Some("Bash"), "PostToolUse", &policy), json!({"continue": true}));
    }

    #[test]
    fn what_no_pattern_names_is_left_to_the_program() {
        assert_eq!(hook(Some("Read"), "PreToolUse", &ToolPolicy::default()), json!({"continue": true}));
    }

    #[test]
    fn to_ask_whether_to_ask_would_be_silly_but_no_is_no() {
        let all = || vec!["*".to_owned()];
        let ask = ToolPolicy { ask: all(), ..ToolPolicy::default() };
        assert_eq!(hook(Some("mcp__greenroom__ask_user"), "PreToolUse", &ask), json!({"continue": true}));
        let deny = ToolPolicy { deny: all(), ..ToolPolicy::default() };
        let decided = hook(Some("mcp__greenroom__ask_user"), "PreToolUse", &deny);
        assert_eq!(decided["hookSpecificOutput"]["permissionDecision"], "deny");
    }

    #[test]
    fn permission_is_given_for_what_was_asked_or_for_what_it_was_changed_to() {
        let asked = json!({"command": "rm x"});
        let yes = said(&answer(permission(asked.clone()), Decision::Allow, None));
        assert_eq!(yes, json!({"behavior": "allow", "updatedInput": asked}));
        let changed = json!({"command": "ls"});
        let yes = said(&answer(permission(asked.clone()), Decision::Allow, Some(changed.clone())));
        assert_eq!(yes["updatedInput"], changed);
        for no in [Decision::Deny, Decision::Expired] {
            let no = said(&answer(permission(asked.clone()), no, None));
            assert!(no["behavior"] == "deny" && no["message"].is_string());
        }
    }

    #[test]
    fn the_programs_own_questions_are_answered_in_any_of_three_ways() {
        let asked = json!({"questions": [{"question": "Which colour?", "options": []}]});
        let whole = json!({"questions": asked["questions"], "answers": {"Which colour?": "Blue"}});
        for input in [json!({"answer": "Blue"}), json!({"answers": {"Which colour?": "Blue"}}), whole.clone()] {
            let yes = said(&answer(permission(asked.clone()), Decision::Allow, Some(input)));
            assert_eq!(yes["updatedInput"], whole);
        }
    }
}
