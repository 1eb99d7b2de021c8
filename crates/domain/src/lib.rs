//! Domain types: ids, agents, rooms, runs, messages, usage, and the event vocabulary that is stored and streamed.
//!
//! This crate has no async code and no IO, and does not know how anything is stored or served. Start at [`event`]: the
//! journal is the source of truth; everything else is folded from it or points into it.

pub mod actor;
pub mod agent;
pub mod agent_files;
pub mod approval;
pub mod audit;
pub mod budget;
pub mod calling_agent;
pub mod event;
pub mod fold;
pub mod hex;
pub mod ids;
pub mod limits;
pub mod mcp;
pub mod message;
pub mod name;
pub mod owner;
pub mod permission;
pub mod position;
pub mod prices;
pub mod project;
pub mod project_command;
pub mod provider_settings;
pub mod room;
pub mod run;
pub mod run_tree;
pub mod scope;
pub mod search;
pub mod signal;
pub mod skill;
pub mod tape;
pub mod time;
pub mod timeline;
pub mod upload;
pub mod usage;
