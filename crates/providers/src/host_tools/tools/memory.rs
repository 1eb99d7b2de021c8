//! `memory`: the agent's notes across rooms.

use crate::{
    host_tools::{
        HostCall, HostTool, HostToolAgent, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome,
    },
    memory::Note,
};
use serde_json::json;

#[derive(Debug)]
pub struct Memory;

impl HostTool for Memory {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
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
        });
        let description = "Your own notes, which you keep from one conversation to the next. Save what you will want to know \
                           again: what people prefer, what was decided, what you found out the hard way. Recall before you \
                           ask for what you may have been told.";
        let definition = HostToolDefinition::new("memory", description, schema);
        HostToolDefinition { audience: HostToolAudience::ModelApiAgents, ..definition }
    }

    fn definition_for(&self, agent: &HostToolAgent) -> Option<HostToolDefinition> {
        agent.memory.notes().map(|_| self.definition())
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let Some(notes) = call.agent.memory.notes() else {
                return HostToolOutcome::error("No memory is available.");
            };
            match (call.text("action"), call.text("text")) {
                (Some("save"), None) => HostToolOutcome::error("text: say what to remember"),
                (Some("save"), Some(text)) => match notes.save(text.to_owned()).await {
                    Ok(()) => HostToolOutcome::success("Saved."),
                    Err(error) => HostToolOutcome::error(error),
                },
                (Some("recall"), about) => match notes.recall(about.unwrap_or_default().to_owned()).await {
                    Ok(found) if found.is_empty() => HostToolOutcome::success("There are no such notes."),
                    Ok(found) => HostToolOutcome::success(found.iter().map(line).collect::<Vec<_>>().join("\n")),
                    Err(error) => HostToolOutcome::error(error),
                },
                _ => HostToolOutcome::error("action: save or recall"),
            }
        })
    }
}

fn line(note: &Note) -> String {
    format!("- ({}) {}", note.saved_at, note.text)
}
