//! `skip`, `whisper` and `end_round`: what an agent does in a room with other agents. An agent that is alone has none of
//! them.

use crate::{
    RoomRequest,
    host_tools::{HostCall, HostTool, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome},
};
use serde_json::{Value, json};

/// A whisper is a note, not an answer.
const MAX_WHISPER_CHARS: usize = 2000;

#[derive(Debug)]
pub struct Skip;

#[derive(Debug)]
pub struct EndRound;

#[derive(Debug)]
pub struct Whisper;

fn in_company(name: &str, description: &str, schema: Value) -> HostToolDefinition {
    let audience = HostToolAudience::InCompany;
    HostToolDefinition { audience, ..HostToolDefinition::new(name, description, schema) }
}

async fn ask_room(call: &HostCall, request: RoomRequest, done: &str) -> HostToolOutcome {
    match call.ask_room(request).await {
        true => HostToolOutcome::success(done),
        false => HostToolOutcome::error("The turn has ended."),
    }
}

impl HostTool for Skip {
    fn definition(&self) -> HostToolDefinition {
        let description = "Says nothing in this turn. Use it, without writing anything, when you have nothing to add to what \
                           the others have said.";
        in_company("skip", description, HostToolDefinition::no_arguments())
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            ask_room(&call, RoomRequest::Skip, "Your turn is skipped. End it now, without a text.").await
        })
    }
}

impl HostTool for EndRound {
    fn definition(&self) -> HostToolDefinition {
        let description = "Ends the discussion after your turn: no other agent speaks until a person does. Use it when the \
                           question is settled.";
        in_company("end_round", description, HostToolDefinition::no_arguments())
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move { ask_room(&call, RoomRequest::EndRound, "The round ends with your turn.").await })
    }
}

impl HostTool for Whisper {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "At most 2000 characters."}},
            "required": ["text"],
            "additionalProperties": false
        });
        let description = "Tells the people in the room something that the other agents do not read.";
        in_company("whisper", description, schema)
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            match call.text("text") {
                None => HostToolOutcome::error("text: say what people should know"),
                Some(text) if text.chars().count() > MAX_WHISPER_CHARS => {
                    HostToolOutcome::error(format!("text: at most {MAX_WHISPER_CHARS} characters"))
                }
                Some(text) => ask_room(&call, RoomRequest::Whisper(text.to_owned()), "Only people read it.").await,
            }
        })
    }
}
