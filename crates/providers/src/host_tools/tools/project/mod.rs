//! The tools of agents in a project: commands in its sandbox, and its files. The API for people uses the same storage and the
//! same registry of commands.
//!
//! Every room of a project offers them to all its agents. What changes something waits for an approval, unless the agent's policy
//! decides; what only reads does not.

mod commands;
mod files;
mod ports;
mod search;

use crate::host_tools::{HostCall, HostTool, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use workbench::{
    project_commands::ProjectCommands,
    project_files::{ProjectFiles, ProjectPath, ProjectStorage},
    sandboxes::Sandboxes,
};

/// What the tools work with.
#[derive(Clone, Debug)]
pub struct ProjectToolbox {
    pub storage: Arc<ProjectStorage>,
    pub commands: ProjectCommands,
    pub sandboxes: Arc<dyn Sandboxes>,
}

/// All of them, in the order in which agents see them.
pub fn all(toolbox: &ProjectToolbox) -> Vec<Arc<dyn HostTool>> {
    let tools: [(fn() -> HostToolDefinition, ToolFunction); 10] = [
        (commands::execute_definition, |toolbox, call| Box::pin(commands::execute(toolbox, call))),
        (commands::check_definition, |toolbox, call| Box::pin(commands::check(toolbox, call))),
        (commands::stop_definition, |toolbox, call| Box::pin(commands::stop(toolbox, call))),
        (files::create_definition, |toolbox, call| Box::pin(files::create(toolbox, call))),
        (files::read_definition, |toolbox, call| Box::pin(files::read(toolbox, call))),
        (files::edit_definition, |toolbox, call| Box::pin(files::edit(toolbox, call))),
        (files::delete_definition, |toolbox, call| Box::pin(files::delete(toolbox, call))),
        (files::list_definition, |toolbox, call| Box::pin(files::list(toolbox, call))),
        (search::definition, |toolbox, call| Box::pin(search::search(toolbox, call))),
        (ports::definition, |toolbox, call| Box::pin(ports::expose(toolbox, call))),
    ];
    let tool = |(define, run): (fn() -> HostToolDefinition, ToolFunction)| {
        Arc::new(ProjectTool { define, run, toolbox: toolbox.clone() }) as Arc<dyn HostTool>
    };
    tools.into_iter().map(tool).collect()
}

type ToolFunction = fn(ProjectToolbox, HostCall) -> ToolFuture;
type ToolFuture = std::pin::Pin<Box<dyn Future<Output = ToolResult> + Send>>;
/// Both texts are for the model.
type ToolResult = Result<HostToolOutcome, String>;

struct ProjectTool {
    define: fn() -> HostToolDefinition,
    run: ToolFunction,
    toolbox: ProjectToolbox,
}

impl HostTool for ProjectTool {
    fn definition(&self) -> HostToolDefinition {
        (self.define)()
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        let running = (self.run)(self.toolbox.clone(), call);
        Box::pin(async move { running.await.unwrap_or_else(HostToolOutcome::error) })
    }
}

/// A tool that changes something.
fn changing(name: &str, description: &str, properties: Value, required: &[&str]) -> HostToolDefinition {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    let audience = HostToolAudience::InProject;
    HostToolDefinition { needs_approval: true, audience, ..HostToolDefinition::new(name, description, schema) }
}

fn reading(name: &str, description: &str, properties: Value, required: &[&str]) -> HostToolDefinition {
    let definition = changing(name, description, properties, required);
    HostToolDefinition { is_read_only: true, needs_approval: false, ..definition }
}

/// Does file work on a thread of its own.
async fn in_files<T: Send + 'static>(
    toolbox: ProjectToolbox,
    call: &HostCall,
    work: impl FnOnce(&ProjectFiles) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let space = Arc::clone(&call.agent.workspace.space);
    let done = tokio::task::spawn_blocking(move || {
        let files = toolbox.storage.open(&space).map_err(|error| error.to_string())?;
        work(&files)
    });
    done.await.unwrap_or_else(|error| Err(format!("The tool crashed: {error}")))
}

/// The path in an argument; the folder of the project if it is left out.
fn path(call: &HostCall, argument: &str) -> Result<ProjectPath, String> {
    let text = call.arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
    ProjectPath::parse(text).map_err(|error| format!("{argument}: {error}"))
}

/// A text argument as it is, with its whitespace.
fn exact_text(call: &HostCall, argument: &str) -> Result<String, String> {
    let value = call.arguments.get(argument).and_then(Value::as_str);
    value.map(str::to_owned).ok_or_else(|| format!("{argument}: it is missing; send a text"))
}

fn number(call: &HostCall, argument: &str) -> Option<u64> {
    let value = call.arguments.get(argument)?;
    // Models that write their calls as XML send every argument as text.
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn flag(call: &HostCall, argument: &str) -> bool {
    let value = call.arguments.get(argument);
    value.is_some_and(|value| value.as_bool() == Some(true) || value.as_str().map(str::trim) == Some("true"))
}
