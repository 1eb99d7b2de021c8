//! `ask_user`: a question to the people in the room. It is shown as an approval that only a person can answer.

use crate::host_tools::{HostCall, HostTool, HostToolDefinition, HostToolFuture, HostToolOutcome};
use domain::event::Decision;
use serde_json::{Value, json};
use std::time::Duration;

pub const ASK_USER: &str = "ask_user";

/// The engine expires every approval much sooner; this is only an upper bound.
const TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[derive(Debug)]
pub struct AskUser;

impl HostTool for AskUser {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
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
        });
        let description = "Asks the people in the room a question and waits for their answer. Use it when you cannot go on \
                           without a decision that only they can make.";
        let definition = HostToolDefinition::new(ASK_USER, description, schema);
        HostToolDefinition { is_read_only: true, timeout: TIMEOUT, ..definition }
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            if call.text("question").is_none() {
                return HostToolOutcome::error("question: say what you want to know");
            }
            match call.ask(Value::Object(call.arguments.clone())).await {
                Ok((decision, input)) => outcome_of_answer(decision, input.as_ref()),
                Err(error) => HostToolOutcome::error(error.to_string()),
            }
        })
    }
}

fn outcome_of_answer(decision: Decision, input: Option<&Value>) -> HostToolOutcome {
    match decision {
        Decision::Allow => match input.and_then(|input| input.get("answer")) {
            Some(Value::String(answer)) => HostToolOutcome::success(answer),
            Some(answer) => HostToolOutcome::success(answer.to_string()),
            None => HostToolOutcome::success("The person agreed without saying more."),
        },
        Decision::Deny => HostToolOutcome::error("The person does not want to answer."),
        Decision::Expired => HostToolOutcome::error("Nobody answered in time."),
    }
}

#[cfg(test)]
mod tests {
    use super::outcome_of_answer;
    use domain::event::Decision;
    use serde_json::json;

    #[test]
    fn the_answer_is_the_outcome() {
        assert_eq!(outcome_of_answer(Decision::Allow, Some(&json!({"answer": "b"}))).text, "b");
        assert_eq!(outcome_of_answer(Decision::Allow, Some(&json!({"answer": [1, 2]}))).text, "[1,2]");
        assert!(!outcome_of_answer(Decision::Allow, None).is_error);
        assert!(
            outcome_of_answer(Decision::Deny, None).is_error && outcome_of_answer(Decision::Expired, None).is_error
        );
    }
}
