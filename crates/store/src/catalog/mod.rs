//! The stored objects, one file each: row, queries and conversion. Every query takes the owner; a foreign id and an
//! unknown id look the same (invariant 15). Functions that return a `Statement` are row changes, committed with events.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod browser_sessions;
pub(crate) mod budgets;
pub(crate) mod events;
pub(crate) mod history;
pub(crate) mod idempotency;
pub(crate) mod list_cursor;
pub(crate) mod mcp_servers;
pub(crate) mod mcp_trust;
pub(crate) mod mcp_variables;
pub(crate) mod members;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod operator_sessions;
mod owned;
pub(crate) mod projects;
pub(crate) mod provider_sessions;
pub(crate) mod provider_settings;
pub(crate) mod rooms;
pub(crate) mod run_contexts;
mod run_trees;
pub(crate) mod runs;
pub(crate) mod sealed_configs;
pub(crate) mod signals;
pub(crate) mod skill_files;
pub(crate) mod skill_training;
pub(crate) mod skill_uses;
pub(crate) mod skills;
pub(crate) mod tapes;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod uploads;
pub(crate) mod usage;
pub(crate) mod workspaces;
