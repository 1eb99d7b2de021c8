//! The MCP servers of an agent: where they are configured, which tier wins, and why one cannot be used.
//!
//! ```text
//!  skill ─┐
//!  agent ─┼─▶ domain::mcp::merge_tiers ─▶ may it be used? ─▶ variables ─▶ AgentWorkspace.mcp_servers
//!  project┘     (tiers)                    (resolve)          (variables)
//! ```
//!
//! Start at `resolve`. A problem with one server is reported for that server and does not stop the agent. Must not
//! start servers: `workbench::mcp` does.

mod calling_agent;
mod catalog;
mod mask;
mod mcp_file;
mod resolve;
mod variables;

pub(crate) use calling_agent::introduce_caller;
pub(crate) use catalog::CatalogServer;
pub use catalog::McpServerSource;
pub(crate) use domain::mcp::McpSecrets;
pub(crate) use mask::{MaskError, mask_entry, restore_masked};
pub(crate) use mcp_file::WorkspaceMcpFile;
pub(crate) use resolve::{
    ResolvedServer, ResolvedServers, RunNotice, ServerUnavailable, config_error_text, folder_tier, is_from_operator,
};
pub use resolve::{ServerProblem, skill_tier};
pub use variables::{McpVariables, VariableUse};
