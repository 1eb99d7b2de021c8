//! The commands of projects: started in the sandbox of a project, read to their end, and remembered for a while, so that
//! people and agents can ask for their state and output. Both use the same registry.
//!
//! `registry` starts and finds commands, `command` is one of them, `drive` reads it to its end, `output` is what is kept of
//! its text, `follower` reads that live. Knows nothing of HTTP and tools. Start at `registry`.

mod command;
mod drive;
mod follower;
mod output;
mod registry;
#[cfg(test)]
mod tests;

pub use command::ProjectCommand;
pub use follower::{CommandFollower, CommandStep};
pub use output::OutputPart;
pub use registry::{CommandRequest, ProjectCommandError, ProjectCommands, ReservedCommand};
