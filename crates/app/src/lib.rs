//! The wiring: command line, configuration, telemetry, start and stop. The only crate that reads the environment and
//! the only one that names every other.
//!
//! Start at [`cli`]: each command is one file. [`serve`] builds the server from [`config`]; all other commands are
//! clients of a running server, or work on its data directory.

mod agent_sandbox;
pub mod cli;
pub mod config;
pub mod data_folder;
mod gauges;
mod machine_sandboxes;
mod provider_setup;
mod recorded_launcher;
pub mod serve;
mod sign_in;
pub mod telemetry;
pub mod terminal;
mod test_hooks;
pub mod tls;
mod traces;
