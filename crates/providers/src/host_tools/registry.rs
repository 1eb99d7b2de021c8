//! The registry of host tools, and the limits within which each call runs.

use super::{ASK_PEOPLE, HostCall, HostTool, HostToolAgent, HostToolDefinition, HostToolOutcome};
use crate::truncate::truncate_middle;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::time::timeout;

/// With the server's name before it (`mcp__greenroom__`), a name has at most the 64 characters that model APIs accept.
const MAX_NAME_CHARS: usize = 48;
/// The maximum text of one outcome.
pub(super) const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// How long a canceled call may take to clean up.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// The host tools of this server, in the order in which agents see them. Cheap to clone.
#[derive(Clone, Default)]
pub struct HostTools(Arc<[RegisteredTool]>);

struct RegisteredTool {
    definition: HostToolDefinition,
    tool: Arc<dyn HostTool>,
}

/// Why the tools cannot be registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostToolsError {
    #[error(
        "{0:?} cannot be the name of a host tool: use at most {MAX_NAME_CHARS} lowercase letters, digits and single \
         underscores, beginning with a letter"
    )]
    Name(String),
    #[error("two host tools have the name {0}")]
    Duplicate(String),
    #[error("the host tool {0} needs a JSON schema with \"type\": \"object\"")]
    Schema(String),
}

impl HostTools {
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn HostTool>>) -> Result<Self, HostToolsError> {
        // Its other name over MCP must not be taken either.
        let mut names = BTreeSet::from([ASK_PEOPLE.to_owned()]);
        let mut registered = Vec::new();
        for tool in tools {
            let definition = tool.definition();
            let name = definition.name.clone();
            if !is_name(&name) {
                return Err(HostToolsError::Name(name));
            }
            if definition.schema.get("type").and_then(Value::as_str) != Some("object") {
                return Err(HostToolsError::Schema(name));
            }
            if !names.insert(name.clone()) {
                return Err(HostToolsError::Duplicate(name));
            }
            registered.push(RegisteredTool { definition, tool });
        }
        Ok(Self(registered.into()))
    }

    /// The same tools and others after them.
    pub fn with(&self, more: impl IntoIterator<Item = Arc<dyn HostTool>>) -> Result<Self, HostToolsError> {
        Self::new(self.0.iter().map(|registered| Arc::clone(&registered.tool)).chain(more))
    }

    pub fn definitions(&self) -> impl Iterator<Item = &HostToolDefinition> {
        self.0.iter().map(|registered| &registered.definition)
    }

    /// The tools that this agent is offered.
    pub fn offered(&self, agent: &HostToolAgent) -> Vec<HostToolDefinition> {
        let mine = self.0.iter().filter(|registered| agent.is_in(registered.definition.audience));
        mine.filter_map(|registered| registered.tool.definition_for(agent)).collect()
    }

    /// Runs a call of the tool with this name. Returns in bounded time, with bounded output; a panic of the tool is a
    /// failed call.
    pub(crate) async fn call(&self, mut call: HostCall) -> HostToolOutcome {
        let offered = |registered: &&RegisteredTool| {
            registered.definition.name == call.tool
                && call.agent.is_in(registered.definition.audience)
                && registered.tool.definition_for(&call.agent).is_some()
        };
        let Some(RegisteredTool { definition, tool }) = self.0.iter().find(offered) else {
            return unknown_tool(&call.tool, &self.offered(&call.agent), |name| name);
        };
        if definition.needs_approval {
            match call.approve().await {
                Ok(true) => {}
                Ok(false) => return HostToolOutcome::error("The call was denied."),
                Err(error) => return HostToolOutcome::error(error.to_string()),
            }
        }
        let (tool, cancel, name) = (Arc::clone(tool), call.cancel.clone(), definition.name.as_str());
        // Also for work that the tool has moved elsewhere, if this future is dropped.
        let _canceled_at_the_end = cancel.clone().drop_guard();
        let mut work = pin!(async move { tool.call(call).await });
        let mut work = pin!(poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(poll) => poll,
                Err(_) => {
                    tracing::error!(tool = name, "a host tool panicked");
                    Poll::Ready(HostToolOutcome::error("The tool crashed; its effects are unknown."))
                }
            }
        }));
        let stopped = tokio::select! {
            outcome = &mut work => return bounded(outcome),
            () = cancel.cancelled() => "The call was canceled.".to_owned(),
            () = tokio::time::sleep(definition.timeout) => {
                format!("The tool did not finish within {} s; its effects are unknown.", definition.timeout.as_secs())
            }
        };
        cancel.cancel();
        timeout(CANCEL_GRACE, work).await.map_or_else(|_| HostToolOutcome::error(stopped), bounded)
    }
}

/// The outcome of a call of a tool that the agent does not have.
pub(crate) fn unknown_tool(
    name: &str,
    offered: &[HostToolDefinition],
    shown_name: fn(&str) -> &str,
) -> HostToolOutcome {
    let names: Vec<&str> = offered.iter().map(|definition| shown_name(&definition.name)).collect();
    HostToolOutcome::error(format!("there is no tool {name:?}; there are: {}", names.join(", ")))
}

fn bounded(mut outcome: HostToolOutcome) -> HostToolOutcome {
    if outcome.text.len() > MAX_OUTPUT_BYTES {
        outcome.text = truncate_middle(&outcome.text, MAX_OUTPUT_BYTES);
    }
    outcome
}

/// Without `__`, which separates the server from the tool in the names of MCP tools.
fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.len() <= MAX_NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(letter)
        && !name.contains("__")
}

/// Two registries are equal if they are the same.
impl PartialEq for HostTools {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for HostTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.definitions().map(|definition| &definition.name)).finish()
    }
}
