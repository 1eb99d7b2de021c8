//! Host tools: tools that Greenroom itself gives to an agent.
//!
//! A tool implements [`HostTool`] and is registered in [`HostTools`], which the app passes to the engine and the engine
//! to every agent workspace. The transports only carry calls: Claude Code's SDK MCP server (`mcp_server`), Codex's
//! dynamic tools, the tool loop of the model APIs, and for other agents the server's MCP endpoint, which they open with
//! an agent token (`crate::agent_tokens`). `turn_calls` runs the calls of one turn.
//!
//! A call runs inside a turn, never in pure code. Through [`HostCall`] it reports progress and asks the people in the
//! room. To add a tool, see `docs/host-tools.md`.

mod call;
mod definition;
pub(crate) mod mcp_server;
mod questions;
mod registry;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tool;
pub mod tools;
mod turn_calls;

pub use call::{AskError, HostCall, HostToolSignal, UserAnswer, UserQuestion};
pub(crate) use call::{SignalReceiver, SignalSender, signal_channel};
pub use definition::{HostToolAudience, HostToolDefinition};
pub(crate) use questions::OpenQuestions;
pub(crate) use registry::unknown_tool;
pub use registry::{HostTools, HostToolsError};
pub use tool::{HostTool, HostToolAgent, HostToolFuture, HostToolOutcome};
pub(crate) use turn_calls::{CallOrigin, HostToolCalls, HostToolEvent};

/// The name of the MCP server that provides these tools, as agents see it.
pub const SERVER_NAME: &str = "greenroom";

/// The name of `ask_user` at the server's MCP endpoint: Gemini CLI has a tool `ask_user` of its own, and in headless
/// mode it hides every tool of that name from its model.
pub const ASK_PEOPLE: &str = "ask_people";

/// Returns the name of a host tool at the server's MCP endpoint.
pub fn name_over_mcp(tool: &str) -> &str {
    if tool == tools::ASK_USER { ASK_PEOPLE } else { tool }
}
