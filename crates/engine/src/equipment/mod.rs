//! The MCP servers that an agent is given: where they are written down, which tier has its way, and what keeps one of them
//! from being used.
//!
//! ```text
//!  skill ─┐
//!  agent ─┼─▶ domain::mcp::merge ─▶ may it be used? ─▶ variables ─▶ Place.mcp_servers
//!  project┘     (tiers)              (gather)           (variables)
//! ```
//!
//! Start at `gather`. What is wrong with one server is told of that server and keeps no agent from working. Nothing here
//! starts a server: that is the business of `workbench::mcp`.

mod catalog;
mod gather;
mod mask;
mod project;
mod variables;

pub(crate) use catalog::Known;
pub use catalog::Source;
pub(crate) use domain::mcp::Secrets;
pub(crate) use gather::{Equipped, Outfit, Remark, Unused, folder_key, folder_layer, is_operators, said};
pub use gather::{ServerProblem, skill_layer};
pub(crate) use mask::{KeepError, keep, masked};
pub(crate) use project::{Project, ProjectState};
pub use variables::{VariableUse, Variables};

/// What becomes of a name in the tools that agents see, as Claude Code has it.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}
