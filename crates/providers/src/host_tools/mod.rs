//! Tools that Greenroom itself gives to an agent. One definition, three ways to carry it: Claude Code's host-hosted MCP
//! server ([`mcp`]), Codex's dynamic tools, and for any other agent the server's own door for MCP, which it opens with a
//! [`pass`].
//!
//! Calling is pure and in two steps, because some tools wait for a person: [`call`] says at once what came of it or what
//! to ask, [`answered`] turns the person's answer into a result.

pub(crate) mod mcp;
pub mod pass;
pub mod questions;
#[cfg(test)]
mod tests;

use domain::{event::Decision, time::Timestamp};
use serde_json::{Value, json};

/// The name under which agents see the server that brings these tools.
pub const SERVER: &str = "greenroom";

#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub description: &'static str,
    pub schema: fn() -> Value,
}

/// Every host tool there is.
pub const TOOLS: &[Definition] = &[
    Definition {
        name: "current_time",
        description: "The current date and time in UTC.",
        schema: || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    },
    Definition {
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

/// What became of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Called {
    Done(Outcome),
    /// To be asked as an approval with `is_question`; the answer goes to [`answered`].
    Ask {
        input: Value,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub text: String,
    pub is_error: bool,
}

impl Outcome {
    fn said(text: impl Into<String>) -> Called {
        Called::Done(Self { text: text.into(), is_error: false })
    }

    fn wrong(text: impl Into<String>) -> Called {
        Called::Done(Self { text: text.into(), is_error: true })
    }
}

pub fn call(name: &str, arguments: &Value, now: Timestamp) -> Called {
    match name {
        "current_time" => Outcome::said(now.to_string()),
        "ask_user" => match arguments.get("question").and_then(Value::as_str).map(str::trim) {
            Some(question) if !question.is_empty() => Called::Ask { input: arguments.clone() },
            _ => Outcome::wrong("question: say what you want to know"),
        },
        unknown => {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            Outcome::wrong(format!("there is no tool {unknown:?}; there are: {}", names.join(", ")))
        }
    }
}

/// `input` is what the person sent along: `{"answer": "…"}`.
pub fn answered(decision: Decision, input: Option<&Value>) -> Outcome {
    match decision {
        Decision::Allow => match input.and_then(|input| input.get("answer")) {
            Some(Value::String(answer)) => Outcome { text: answer.clone(), is_error: false },
            Some(answer) => Outcome { text: answer.to_string(), is_error: false },
            None => Outcome { text: "The person agreed without saying more.".into(), is_error: false },
        },
        Decision::Deny => Outcome { text: "The person does not want to answer.".into(), is_error: true },
        Decision::Expired => Outcome { text: "Nobody answered in time.".into(), is_error: true },
    }
}
