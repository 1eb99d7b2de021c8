//! `memory`: what an agent wants to know in other rooms too.

use crate::{
    Memory,
    direct::{machine::Outcome, wire::Offer},
    memory::Note,
};
use serde_json::{Map, Value, json};

pub const NAME: &str = "memory";

pub fn offer() -> Offer {
    Offer {
        name: NAME.to_owned(),
        description: "Your own notes, which you keep from one conversation to the next. Save what you will want to know \
                      again: what people prefer, what was decided, what you found out the hard way. Recall before you ask \
                      for what you may have been told."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["save", "recall"]},
                "text": {
                    "type": "string",
                    "description": "save: the note, in a few sentences. recall: words to look for; empty for the newest notes."
                }
            },
            "required": ["action"],
            "additionalProperties": false
        }),
    }
}

pub async fn run(memory: &Memory, input: &Map<String, Value>) -> Outcome {
    let Some(notes) = memory.notes() else { return Outcome::text("There is no memory here.", true) };
    let text = input.get("text").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    match input.get("action").and_then(Value::as_str) {
        Some("save") if text.is_empty() => Outcome::text("text: say what to remember", true),
        Some("save") => match notes.save(text).await {
            Ok(()) => Outcome::text("Saved.", false),
            Err(error) => Outcome::text(error, true),
        },
        Some("recall") => match notes.recall(text).await {
            Ok(found) if found.is_empty() => Outcome::text("There are no such notes.", false),
            Ok(found) => Outcome::text(found.iter().map(line).collect::<Vec<_>>().join("\n"), false),
            Err(error) => Outcome::text(error, true),
        },
        _ => Outcome::text("action: save or recall", true),
    }
}

fn line(note: &Note) -> String {
    format!("- ({}) {}", note.saved_at, note.text)
}
