//! The description of a host tool, for models and for the code that carries its calls.

use serde_json::{Value, json};
use std::time::Duration;

/// Longer than any tool that waits only for a machine.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Debug)]
pub struct HostToolDefinition {
    /// Lowercase letters, digits and single underscores.
    pub name: String,
    /// For the model: what the tool does, and when to use it.
    pub description: String,
    /// A JSON schema of the arguments, which are an object.
    pub schema: Value,
    pub audience: HostToolAudience,
    /// Whether it changes nothing; shown to MCP clients.
    pub is_read_only: bool,
    /// Whether a call waits for an approval, unless the agent's policy decides.
    pub needs_approval: bool,
    /// How long a call may take.
    pub timeout: Duration,
}

/// Which agents are offered a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostToolAudience {
    EveryAgent,
    /// Only agents in a room with other agents.
    InCompany,
    /// Only agents in a room of a project.
    InProject,
    /// Only agents on a model API: a program has something of its own for the same purpose.
    ModelApiAgents,
}

impl HostToolDefinition {
    /// A tool for every agent, which may change something, with a timeout of a minute.
    pub fn new(name: &str, description: &str, schema: Value) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            audience: HostToolAudience::EveryAgent,
            is_read_only: false,
            needs_approval: false,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The schema of a tool without arguments.
    pub fn no_arguments() -> Value {
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    }
}
