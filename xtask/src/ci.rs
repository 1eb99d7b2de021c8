//! `cargo xtask ci`: everything that has to be green before a commit, in the order that fails
//! fastest.

use std::process::ExitCode;

use crate::test;
use crate::workspace::{Outcome, Workspace, succeed};

pub fn command(_arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    succeed(workspace.cargo().args(["fmt", "--all", "--check"]))?;
    succeed(workspace.cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    test::command(&[])
}
