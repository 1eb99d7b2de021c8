//! `cargo xtask ci`: everything that has to be green before a commit, in the order that fails fastest.

use std::process::{Command, ExitCode};

use crate::repository::{Repository, XtaskResult, cannot_run, spell};
use crate::test;

pub fn command(_arguments: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    succeed(repository.cargo().args(["fmt", "--all", "--check"]))?;
    succeed(repository.cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    test::command(&[])
}

/// With the terminal's own input and output: cargo shows its progress itself.
fn succeed(command: &mut Command) -> XtaskResult<()> {
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` ended with {status}", spell(command))),
    }
}
