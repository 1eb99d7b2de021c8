//! `memory`: the agent's notes across rooms.

use crate::{
    MemoryHandle,
    direct::{tool_loop::ToolCallOutcome, wire::OfferedTool},
    memory::Note,
};
use serde_json::{Map, Value, json};

pub const NAME: &str = "memory";

pub fn offered_tool() -> OfferedTool {
    OfferedTool {
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

pub async fn run(memory: &MemoryHandle, input: &Map<String, Value>) -> ToolCallOutcome {
    let Some(notes) = memory.notes() else { return ToolCallOutcome::text("No memory is available.", true) };
    let text = input.get("text").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    match input.get("action").and_then(Value::as_str) {
        Some("save") if text.is_empty() => ToolCallOutcome::text("text: say what to remember", true),
        Some("save") => match notes.save(text).await {
            Ok(()) => ToolCallOutcome::text("Saved.", false),
            Err(error) => ToolCallOutcome::text(error, true),
        },
        Some("recall") => match notes.recall(text).await {
            Ok(found) if found.is_empty() => ToolCallOutcome::text("There are no such notes.", false),
            Ok(found) => ToolCallOutcome::text(found.iter().map(line).collect::<Vec<_>>().join("\n"), false),
            Err(error) => ToolCallOutcome::text(error, true),
        },
        _ => ToolCallOutcome::text("action: save or recall", true),
    }
}

fn line(note: &Note) -> String {
    format!("- ({}) {}", note.saved_at, note.text)
}
