//! The wiring: command line, configuration, telemetry, start and stop. The only crate that reads the environment and
//! the only one that names every other.
//!
//! Start at [`cli`]: each command is one file. [`serve`] puts the server together from [`config`]; all other commands
//! are clients of a server that runs already, or work on its data directory.

mod agents;
pub mod cli;
pub mod config;
mod planted;
pub mod serve;
pub mod telemetry;
pub mod terminal;
