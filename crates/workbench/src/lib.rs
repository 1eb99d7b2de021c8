//! What an agent works with: supervised processes, folders, skills and MCP servers.
//!
//! Must not know rooms, journals or provider protocols.

pub mod egress;
pub mod event_stream;
pub mod files;
pub mod mcp;
pub mod outside;
pub mod process;
pub mod project_commands;
pub mod project_files;
pub mod project_sandbox;
pub mod sandboxes;
pub mod skills;
