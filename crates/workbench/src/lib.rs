//! What an agent works with: programs that are started and really end, folders, skills, MCP
//! servers.
//!
//! Knows nothing of rooms, journals or providers' protocols.

pub mod events;
pub mod mcp;
pub mod process;
pub mod skills;
