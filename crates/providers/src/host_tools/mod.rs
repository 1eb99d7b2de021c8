//! Host tools: tools that Greenroom itself gives to an agent. One definition, three transports: Claude Code's SDK MCP
//! server ([`mcp`]), Codex's dynamic tools, and for other agents the server's MCP endpoint, which they open with an
//! [`agent_token`].
//!
//! A call is pure and has two steps, because some tools wait for a person: [`call`] returns an outcome or a question,
//! [`outcome_of_answer`] turns the person's answer into an outcome.

pub mod agent_token;
pub(crate) mod mcp;
pub mod questions;
#[cfg(test)]
mod tests;

use domain::{event::Decision, time::Timestamp};
use serde_json::{Value, json};

/// The name of the MCP server that provides these tools, as agents see it.
pub const SERVER_NAME: &str = "greenroom";

#[derive(Clone, Copy, Debug)]
pub struct HostTool {
    pub name: &'static str,
    pub description: &'static str,
    pub schema: fn() -> Value,
}

/// All host tools.
pub const HOST_TOOLS: &[HostTool] = &[
    HostTool {
        name: "current_time",
        description: "The current date and time in UTC.",
        schema: || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    },
    HostTool {
        name: "ask_user",
        description: "Asks the people in the room a question and waits for their answer. Use it when you cannot go on \
                      without a decision that only they can make.",
        schema: || {
            json!({
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "What you need to know, in one or two sentences."},
                    "options": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The answers to choose from, where there are such. Others may be given too."
                    }
                },
                "required": ["question"],
                "additionalProperties": false
            })
        },
    },
];

/// The result of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum HostToolReply {
    Done(HostToolOutcome),
    /// Request an approval with `is_question`; the answer goes to [`outcome_of_answer`].
    Ask {
        input: Value,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostToolOutcome {
    pub text: String,
    pub is_error: bool,
}

impl HostToolOutcome {
    fn success(text: impl Into<String>) -> HostToolReply {
        HostToolReply::Done(Self { text: text.into(), is_error: false })
    }

    fn error(text: impl Into<String>) -> HostToolReply {
        HostToolReply::Done(Self { text: text.into(), is_error: true })
    }
}

pub fn call(name: &str, arguments: &Value, now: Timestamp) -> HostToolReply {
    match name {
        "current_time" => HostToolOutcome::success(now.to_string()),
        "ask_user" => match arguments.get("question").and_then(Value::as_str).map(str::trim) {
            Some(question) if !question.is_empty() => HostToolReply::Ask { input: arguments.clone() },
            _ => HostToolOutcome::error("question: say what you want to know"),
        },
        unknown => {
            let names: Vec<&str> = HOST_TOOLS.iter().map(|tool| tool.name).collect();
            HostToolOutcome::error(format!("there is no tool {unknown:?}; there are: {}", names.join(", ")))
        }
    }
}

/// `input` is the person's answer: `{"answer": "…"}`.
pub fn outcome_of_answer(decision: Decision, input: Option<&Value>) -> HostToolOutcome {
    match decision {
        Decision::Allow => match input.and_then(|input| input.get("answer")) {
            Some(Value::String(answer)) => HostToolOutcome { text: answer.clone(), is_error: false },
            Some(answer) => HostToolOutcome { text: answer.to_string(), is_error: false },
            None => HostToolOutcome { text: "The person agreed without saying more.".into(), is_error: false },
        },
        Decision::Deny => HostToolOutcome { text: "The person does not want to answer.".into(), is_error: true },
        Decision::Expired => HostToolOutcome { text: "Nobody answered in time.".into(), is_error: true },
    }
}
