//! `skill`: loads a skill on demand. The prompt contains only the names and descriptions of the agent's skills.

use crate::{
    host_tools::{
        HostCall, HostTool, HostToolAgent, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome,
    },
    skill_files,
};
use domain::skill::document;
use serde_json::{Value, json};
use std::{io, path::Path};

pub const SKILL: &str = "skill";

#[derive(Debug)]
pub struct LoadSkill;

impl HostTool for LoadSkill {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "file": {"type": "string", "description": "One of the skill's further files, instead of its instructions."}
            },
            "required": ["name"],
            "additionalProperties": false
        });
        let description = "Loads a skill: instructions for a kind of task. Load it before you begin such a task.";
        HostToolDefinition {
            audience: HostToolAudience::ModelApiAgents,
            is_read_only: true,
            ..HostToolDefinition::new(SKILL, description, schema)
        }
    }

    fn definition_for(&self, agent: &HostToolAgent) -> Option<HostToolDefinition> {
        let names = names(agent);
        let mut definition = self.definition();
        definition.schema["properties"]["name"]["enum"] = names.iter().copied().map(Value::from).collect();
        (!names.is_empty()).then_some(definition)
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let skills = &call.agent.workspace.skills;
            let Some(skill) = call.text("name").and_then(|name| skills.iter().find(|skill| skill.name == name)) else {
                return HostToolOutcome::error(format!("name: one of {}", names(&call.agent).join(", ")));
            };
            let (name, folder, file) = (skill.name.clone(), skill.path.clone(), call.text("file").map(str::to_owned));
            let loaded = tokio::task::spawn_blocking(move || match file {
                Some(file) => skill_files::read_file(&folder, &file),
                None => instructions(&name, &folder),
            });
            match loaded.await {
                Ok(Ok(text)) => HostToolOutcome::success(text),
                Ok(Err(error)) => HostToolOutcome::error(format!("the skill cannot be read: {error}")),
                Err(error) => HostToolOutcome::error(format!("the skill cannot be read: {error}")),
            }
        })
    }
}

fn names(agent: &HostToolAgent) -> Vec<&str> {
    agent.workspace.skills.iter().map(|skill| skill.name.as_str()).collect()
}

/// The instructions of a skill and the names of its other files. Blocks.
fn instructions(name: &str, folder: &Path) -> io::Result<String> {
    let text = skill_files::read_document(folder)?;
    let files = skill_files::other_files(folder)?;
    let files = match files.is_empty() {
        true => String::new(),
        false => format!("\n\nFurther files of this skill, to be loaded one by one: {}", files.join(", ")),
    };
    Ok(format!("<skill name=\"{name}\">\n{}\n</skill>{files}", document::summary(&text).1.trim()))
}
