//! The driver for this machine, on the server's side: it starts the helper, and talks to the broker inside.
//!
//! Start at `driver`; `connection` has the conversation with one sandbox.

mod cgroup;
mod connection;
mod driver;
mod host_user;
mod running_command;
mod sandbox;
mod start;

pub use driver::LocalDriver;
pub use running_command::RunningCommand;
pub use sandbox::LocalSandbox;
